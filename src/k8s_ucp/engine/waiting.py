"""Waits that end: in the wanted state, at a deadline, or when the plan is canceled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from k8s_ucp import process
from k8s_ucp.errors import DeadlineExceeded, UcpError


class Cancelled(UcpError):
    """A step gave up because another one failed or the user pressed Ctrl-C."""


class Cancel:
    """Tells running steps to give up. Threads can't be killed, so waits have to ask."""

    def __init__(self) -> None:
        self.programs = process.RunningPrograms()
        """Passed to process.run, so that external programs end at once."""
        self._event = threading.Event()

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    def request(self) -> None:
        self._event.set()
        self.programs.end()

    def check(self) -> None:
        """Raises Cancelled if the plan was canceled."""
        if self._event.is_set():
            raise Cancelled("canceled")

    def pause(self, seconds: float) -> None:
        """Sleep. Raises Cancelled as soon as the plan is canceled."""
        if self._event.wait(seconds):
            raise Cancelled("canceled")


def wait_until(
    what: str,
    pending: Callable[[], str],
    *,
    seconds: float,
    cancel: Cancel,
    report: Callable[[str], None] = lambda _: None,
    errors: tuple[type[UcpError], ...] = (),
    pause: float = 0.1,
    next: str | None = None,
) -> None:
    """Wait until `pending` returns "". Until then it returns the state that it sees.

    report: takes each state. errors: those of `pending` whose message is a state.
    Raises DeadlineExceeded with the last state, Cancelled if the plan is canceled.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            state = pending()
        except errors as error:
            state = error.message
        report(state)
        if not state:
            return
        if time.monotonic() >= until:
            raise DeadlineExceeded(what, seconds, state, next=next)
        cancel.pause(pause)
