"""Runs a ucp command that is interrupted: `python -m tests.e2e.interrupted_command POINT WORDS…`.

POINT: WHEN:STEP with a step of the command's plan, WHEN:STEP#2 for its second run in the same
command; the step `command` is the whole command. before: the journal has the step as running, and
it has done nothing. inside:N: at its Nth effect (a file opened for writing, renamed or removed, a
folder created, a program started, something sent to a server), or at its end if it has fewer.
after: it has done everything, but the journal doesn't have that yet.

At that point the command gets SIGKILL, as from the kernel's OOM killer. With the variable
UCP_FILLS, the named file is instead grown until its file system is full. With UCP_MARKS, the named
file is instead created, which tells a test that the point was reached.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from k8s_ucp.cli import main
from k8s_ucp.engine import pipeline
from k8s_ucp.engine.journal import Journal
from tests.e2e import newer_ucp

EFFECTS = frozenset(
    {
        "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.fork",
        "os.posix_spawn", "subprocess.Popen", "http.client.send", "http.client.connect",
        "socket.connect",
    }
)  # fmt: skip


class Cut:
    """A point at which the command is interrupted."""

    def __init__(self, point: str, act: Callable[[], None]) -> None:
        self.when, _, step = point.partition(":")
        self.count = 0
        if self.when == "inside":
            number, _, step = step.partition(":")
            self.count = int(number)
        self.step, _, turn = step.partition("#")
        self.turn = int(turn or 1)
        self.act = act
        self.inside = False
        self.pid = os.getpid()
        self.lock = threading.Lock()

    @contextmanager
    def around(self, step: str) -> Iterator[None]:
        """Run a step, and act before, inside or after it."""
        if step == self.step:
            self.turn -= 1
        if step != self.step or self.turn != 0:
            yield
            return
        if self.when == "before":
            self.act()
        self.inside = self.when == "inside"
        yield
        self.inside = False
        if self.when in ("inside", "after"):
            self.act()

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Handle one of Python's audit events."""
        if not self.inside or os.getpid() != self.pid:
            return
        if event == "open":
            mode, flags = arguments[1], arguments[2]
            if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR):
                return
            if isinstance(mode, str) and not set(mode) & set("wax+"):
                return
        elif event not in EFFECTS:
            return
        with self.lock:
            self.count -= 1
            if self.count == 0 and self.inside:
                self.inside = False
                self.act()


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fill() -> None:
    """Write until the file system is full."""
    file = Path(os.environ["UCP_FILLS"])
    with file.open("wb", buffering=0) as stream:
        for size in (2**24, 2**16, 2**9):
            try:
                while True:
                    stream.write(b"\0" * size)
            except OSError:
                continue


def prepare(point: str) -> Cut:
    """Interrupt this process at that point."""
    act = fill if "UCP_FILLS" in os.environ else kill
    if "UCP_MARKS" in os.environ:
        act = Path(os.environ["UCP_MARKS"]).touch
    at = Cut(point, act)
    launch, step = pipeline._Run.work, Journal.step

    def work(self: Any, each: Any) -> None:
        def interrupted(world: Any, report: Any) -> None:
            with at.around(each.id):
                each.run(world, report)

        launch(self, pipeline.Step(each.id, each.title, interrupted, each.preview))

    @contextmanager
    def noted(self: Any, title: str, id: str, *more: Any) -> Iterator[pipeline.Report]:
        with step(self, title, id, *more) as report, at.around(id):
            yield report

    pipeline._Run.work = work  # type: ignore[method-assign]
    Journal.step = noted  # type: ignore[assignment,method-assign]
    sys.addaudithook(at.hear)
    return at


if __name__ == "__main__":
    newer_ucp.take_pins()
    with prepare(sys.argv.pop(1)).around("command"):
        main.main()
