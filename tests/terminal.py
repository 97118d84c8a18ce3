"""A real terminal of 80 x 24: runs a program in it and reads what a person would see afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pexpect
import pyte

COLUMNS, LINES = 80, 24


def run_in_terminal(words: Sequence[str], folder: Path, env: Mapping[str, str]) -> bytes:
    """Return every byte that the program wrote to the terminal. The program must succeed."""
    child = pexpect.spawn(
        words[0],
        list(words[1:]),
        cwd=str(folder),
        env={**env},
        dimensions=(LINES, COLUMNS),
        timeout=120,
    )
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.before
    assert isinstance(child.before, bytes)
    return child.before


def seen(data: bytes) -> list[str]:
    """All lines that the terminal shows at the end, including scrolled ones."""
    screen = pyte.HistoryScreen(COLUMNS, LINES, history=1000)
    pyte.ByteStream(screen).feed(data)
    above = ["".join(line[place].data for place in range(COLUMNS)) for line in screen.history.top]
    lines = [line.rstrip() for line in (*above, *screen.display)]
    while lines and not lines[-1]:
        lines.pop()
    return lines
