"""What a person sees at 80 x 24, through a real pseudo-terminal: on the screen and above it.

Delete a file below screens/ to have it written anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.terminal import run_in_terminal, seen

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SCREENS = ("start", "failed_start", "show_status", "watch", "show_doctor", "promote")


def program(name: str) -> list[str]:
    return ["-c", f"from tests.unit.cli.screens import {name}; {name}()"]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "CI")}
    return {**kept, "LC_ALL": "C.UTF-8", **more}


def run(name: str, terminal: str) -> bytes:
    """Every byte that came through the terminal."""
    return run_in_terminal([sys.executable, *program(name)], ROOT, environment(TERM=terminal))


@pytest.mark.parametrize("name", SCREENS)
def test_the_screen_is_as_it_was_reviewed(name: str) -> None:
    found = "\n".join(seen(run(name, "xterm-256color"))) + "\n"
    golden = HERE / "screens" / f"{name}.txt"
    if not golden.exists():
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(found, "utf-8")
    assert found == golden.read_text("utf-8")


def test_every_step_is_on_one_line_and_none_is_left_running() -> None:
    lines = seen(run("start", "xterm-256color"))
    assert len(lines) == 28
    assert all(line.startswith("✓ ") for line in lines)


def test_a_page_is_redrawn_without_clearing_the_screen_or_what_is_above_it() -> None:
    data = run("watch", "xterm-256color")
    assert data.count(b"\x1b[2J") == 1
    assert b"\x1b[3J" not in data


@pytest.mark.parametrize("name", SCREENS)
def test_a_dumb_terminal_and_a_log_get_no_control_characters(name: str) -> None:
    log = subprocess.run(
        [sys.executable, *program(name)],
        cwd=ROOT, env=environment(TERM="xterm-256color"), capture_output=True, check=True,
        stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip
    for data in (run(name, "dumb"), log.stdout + log.stderr):
        assert data
        assert not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", data), data
