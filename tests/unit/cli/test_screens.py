"""Output of commands in a pseudo-terminal of 80 x 24: on the screen and in the scrollback.

Delete a file in screens/ to have it regenerated.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.terminal import run_in_terminal, seen

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SCREENS = ("start", "failed_start", "show_status", "watch", "show_doctor", "promote")


BREAK = "--- next ---"


def program(*names: str) -> list[str]:
    """Arguments for Python to show the screens in turn, with BREAK between them."""
    between = f"; print({BREAK!r}, flush=True); print({BREAK!r}, file=sys.stderr, flush=True); "
    shown = between.join(f"{each}()" for each in names)
    return ["-c", f"import sys; from tests.unit.cli.screens import {', '.join(names)}; {shown}"]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "CI")}
    return {**kept, "LC_ALL": "C.UTF-8", **more}


@cache
def run(*names: str, terminal: str = "xterm-256color") -> bytes:
    """All bytes that were written to the terminal."""
    return run_in_terminal([sys.executable, *program(*names)], ROOT, environment(TERM=terminal))


@pytest.mark.parametrize("name", SCREENS)
def test_the_screen_matches_its_golden_file(name: str) -> None:
    found = "\n".join(seen(run(name))) + "\n"
    golden = HERE / "screens" / f"{name}.txt"
    if not golden.exists():
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(found, "utf-8")
    assert found == golden.read_text("utf-8")


def test_every_step_is_on_one_line_and_none_is_left_running() -> None:
    lines = seen(run("start"))
    assert len(lines) == 28
    assert all(line.startswith("✓ ") for line in lines)


def test_a_page_is_redrawn_without_clearing_the_screen_or_the_scrollback() -> None:
    data = run("watch")
    assert data.count(b"\x1b[2J") == 1
    assert b"\x1b[3J" not in data


def test_a_dumb_terminal_and_a_log_get_no_control_characters() -> None:
    log = subprocess.run(
        [sys.executable, *program(*SCREENS)],
        cwd=ROOT, env=environment(TERM="xterm-256color"), capture_output=True, check=True,
        stdin=subprocess.DEVNULL, timeout=120,
    )  # fmt: skip
    line = BREAK.encode() + b"\n"
    logged = zip(log.stdout.split(line), log.stderr.split(line), strict=True)
    # A terminal gets the line of both streams, and ends each with CR LF.
    line = BREAK.encode() + b"\r\n"
    dumb = run(*SCREENS, terminal="dumb").split(line + line)
    for name, (out, errors), screen in zip(SCREENS, logged, dumb, strict=True):
        for data in (screen, out + errors):
            assert data, name
            assert not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", data), (name, data)
