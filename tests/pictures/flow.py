"""The way of a commit to a running app, as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

FILE = Path(__file__).parents[2] / "docs" / "pictures" / "flow.svg"

YOU, GIT, CORE, APPS = "#0b57d0", "#8250df", "#a97800", "#2e7d4f"
ROWS = (
    (
        "A new version",
        (
            ("A commit", ("newTag: 0.9.3", "in overlays/stage"), YOU),
            ("Push hook", ("renders and checks it;", "refuses what would break"), GIT),
            ("App repository", ("the one place that says", "what runs where"), GIT),
            ("Argo CD", ("hears of the push", "and syncs"), CORE),
            ("stage", ("echo 0.9.3", "Synced, Healthy"), APPS),
        ),
    ),
    (
        "Its promotion",
        (
            ("ucp promote", ("--env prod --from stage,", "you or your pipeline"), YOU),
            ("Gates", ("order, health, soak time;", "holds of bad versions"), GIT),
            ("App repository", ("newTag: 0.9.3", "in overlays/prod"), GIT),
            ("Argo CD", ("hears of the push", "and syncs"), CORE),
            ("prod", ("echo 0.9.3", "Synced, Healthy"), APPS),
        ),
    ),
    (
        "A new environment",
        (
            ("ucp env add eu", ("or a commit to each", "repository"), YOU),
            ("Core repository", ("clusters/overlays/eu", ""), GIT),
            ("Core cluster", ("Crossplane or the", "reconciler makes eu"), CORE),
            ("Reconciler", ("registers it", "with Argo CD"), CORE),
            ("eu", ("every app that has", "an overlay for it"), APPS),
        ),
    ),
)  # fmt: skip

WIDTH, HEIGHT, GAP, ROW, LEFT, TOP = 184, 78, 24, 126, 20, 16


def picture() -> str:
    width = 2 * LEFT + 5 * WIDTH + 4 * GAP
    height = TOP + len(ROWS) * ROW
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" '
            'font-family="system-ui, sans-serif" font-size="12.5">',
            "<title>How a commit becomes a running app</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#52606d"/></marker>'
            "</defs>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
            *(line for number in range(len(ROWS)) for line in _row(number)),
            "</svg>\n",
        ]
    )


def _row(number: int) -> Iterator[str]:
    title, boxes = ROWS[number]
    y = TOP + number * ROW
    yield f'<text x="{LEFT}" y="{y + 14}" font-weight="bold" fill="#1f2933">{escape(title)}</text>'
    y += 22
    for place, (name, words, color) in enumerate(boxes):
        x = LEFT + place * (WIDTH + GAP)
        if place:
            middle = y + HEIGHT / 2
            yield (
                f'<path d="M{x - GAP + 3} {middle:.0f}H{x - 3}" stroke="#52606d" '
                'stroke-width="1.5" marker-end="url(#tip)"/>'
            )
        yield (
            f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#f6f8fa" '
            f'stroke="{color}" stroke-width="2"/>'
        )
        yield (
            f'<text x="{x + 10}" y="{y + 24}" font-weight="bold" fill="{color}">'
            f"{escape(name)}</text>"
        )
        for line, text in enumerate(filter(None, words)):
            below = y + 46 + 18 * line
            yield f'<text x="{x + 10}" y="{below}" fill="#1f2933">{escape(text)}</text>'
