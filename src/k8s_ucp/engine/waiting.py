"""Waiting that ends: by the state that was wanted, by a deadline, or because all is given up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from k8s_ucp import process
from k8s_ucp.errors import DeadlineExceeded, UcpError


class Cancelled(UcpError):
    """A step gave up because another one failed or the user said so."""


class Cancel:
    """Tells running steps to give up. Threads can't be ended from outside: waits must ask."""

    def __init__(self) -> None:
        self.programs = process.RunningPrograms()
        """Handed to process.run, so that external programs end at once."""
        self._event = threading.Event()

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    def request(self) -> None:
        self._event.set()
        self.programs.end()

    def check(self) -> None:
        """Raises Cancelled when the plan has been given up."""
        if self._event.is_set():
            raise Cancelled("canceled")

    def pause(self, seconds: float) -> None:
        """Sleep. Raises Cancelled, at once, when the plan is given up."""
        if self._event.wait(seconds):
            raise Cancelled("canceled")


def wait_until(
    what: str,
    look: Callable[[], str],
    *,
    seconds: float,
    cancel: Cancel,
    pause: float = 0.1,
    next: str | None = None,
) -> None:
    """Wait until `look` returns nothing. What it returns is the state that is seen meanwhile.

    Raises DeadlineExceeded with the last state seen, Cancelled when the plan is given up.
    """
    until = time.monotonic() + seconds
    while state := look():
        if time.monotonic() >= until:
            raise DeadlineExceeded(what, seconds, state, next=next)
        cancel.pause(pause)
