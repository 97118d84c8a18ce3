"""Stops what tests started if their run ends early: by Ctrl-C, SIGKILL or a lost worker.

Control planes outlive the process that starts them. A guard process waits for the end of the run,
however it comes, and then kills all processes of folders that still exist.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from pathlib import Path

import psutil

_guard: list[subprocess.Popen[str]] = []


def ends_with_this_run(folder: Path, *marks: str) -> None:
    """Kill processes at its end whose command, folder or variables contain the folder or a mark."""
    if not _guard:
        guard = subprocess.Popen(
            [sys.executable, "-m", "tests.end_of_run"],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )
        guard.returncode = 0  # It outlives this run, so nothing waits for it.
        _guard.append(guard)
    stream = _guard[0].stdin
    assert stream
    stream.write("\t".join([str(folder), *marks]) + "\n")
    stream.flush()


def end(marks: list[str]) -> None:
    """Kill matching processes until none is left that could restart another one."""
    for _ in range(50):
        found = []
        for each in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                words = [each.cwd(), *each.cmdline(), *each.environ().values()]
                if any(mark in word for mark in marks for word in words):
                    found.append(each)
        for each in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        if not found:
            return
        psutil.wait_procs(found, timeout=3)


def main() -> None:
    lines = [line.rstrip("\n").split("\t") for line in sys.stdin]
    for marks in lines:
        folder = Path(marks[0])
        if folder.exists():
            end(marks)
            if "pytest-of-" not in str(folder):  # pytest keeps its own folders for a while
                shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
