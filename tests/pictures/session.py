"""Draws a recorded terminal session as SVG: text in columns, in whatever font the reader has."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
RECORDING, FILE = FOLDER / "session.txt", FOLDER / "session.svg"
COLUMNS, COLUMN, LINE, SIZE, PAD = 120, 7.8, 19, 13, 16
PROMPT = "$ "
"""Beginning of a line that was typed."""


def picture(recording: str) -> str:
    lines = [part for line in recording.splitlines() for part in _wrapped(line)]
    width, height = COLUMNS * COLUMN + 2 * PAD, len(lines) * LINE + 2 * PAD
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
            f'width="{width:.0f}" height="{height}" role="img" '
            f'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="{SIZE}">',
            "<title>A recorded session: start, promote, status</title>",
            f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#161b22"/>',
            *_texts(lines),
            "</svg>\n",
        ]
    )


def _wrapped(line: str) -> list[str]:
    return [line[at : at + COLUMNS] for at in range(0, len(line), COLUMNS)] or [""]


def _texts(lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        # SVG drops leading spaces, so x positions the columns.
        text = line.lstrip(" ")
        if not text:
            continue
        x = PAD + (len(line) - len(text)) * COLUMN
        typed = line.startswith(PROMPT)
        look = 'fill="#7ee787" font-weight="bold"' if typed else 'fill="#e6edf3"'
        length = "" if len(text) < 2 else f' textLength="{len(text) * COLUMN:.1f}"'
        yield (
            f'<text x="{x:.1f}" y="{PAD + number * LINE - 5}" xml:space="preserve"'
            f"{length} {look}>{escape(text, quote=False)}</text>"
        )
