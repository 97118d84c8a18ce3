"""Collects the board's data while a page is open, and distributes it to all open pages."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from k8s_ucp.board.snapshot import Snapshot
from k8s_ucp.errors import UcpError

LINGER_SECONDS = 5.0
"""Kept running after the last page is closed, so that reloading a page is fast."""
SETTLE_SECONDS = 0.1
"""Changes come in bursts; those within this time are combined."""
MOST_VIEWERS = 32


class TooManyViewers(UcpError):
    """More pages are open than the board serves."""


class Source(Protocol):
    """Source of the board's data."""

    def open(
        self, changed: Callable[[], None]
    ) -> contextlib.AbstractContextManager[Callable[[], Snapshot]]:
        """Follow the topology within the block; yields a function that returns the newest snapshot.

        changed: called from any thread when there may be a new snapshot.
        """


class Collector:
    """One thread, from the first viewer until LINGER_SECONDS after the last one."""

    def __init__(self, source: Source, *, linger: float = LINGER_SECONDS) -> None:
        self._source = source
        self._linger = linger
        self._state = threading.Condition()
        self._viewers = 0
        self._thread: threading.Thread | None = None
        self._version = 0
        self._snapshot: Snapshot = {}
        self._wake = threading.Event()
        self._closed = False

    @property
    def working(self) -> bool:
        """Whether data is being collected."""
        with self._state:
            return self._thread is not None

    @contextlib.contextmanager
    def viewer(self) -> Iterator[None]:
        """Register a viewer for the block. Raises TooManyViewers."""
        with self._state:
            if self._viewers >= MOST_VIEWERS:
                raise TooManyViewers(f"{MOST_VIEWERS} pages are open", next="close some of them")
            self._viewers += 1
            if self._thread is None and not self._closed:
                # The last snapshot is outdated after a time without viewers.
                self._version, self._snapshot = self._version + 1, {}
                self._thread = threading.Thread(target=self._collect, name="board", daemon=True)
                self._thread.start()
            self._state.notify_all()
        try:
            yield
        finally:
            with self._state:
                self._viewers -= 1
            self._wake.set()

    def after(self, version: int, timeout: float) -> tuple[int, Snapshot] | None:
        """(version, newest snapshot); None if there is none after `version` within the timeout."""

        def is_newer() -> bool:
            return self._closed or (self._version > version and bool(self._snapshot))

        with self._state:
            self._state.wait_for(is_newer, timeout)
            newer = self._version > version and self._snapshot
            return (self._version, self._snapshot) if newer else None

    @property
    def closed(self) -> bool:
        with self._state:
            return self._closed

    def close(self) -> None:
        """End the collection and all waits."""
        with self._state:
            self._closed = True
            self._state.notify_all()
        self._wake.set()

    def _collect(self) -> None:
        with self._source.open(self._wake.set) as read:
            while True:
                self._wake.clear()
                self._publish(read())
                if self._ends():
                    return
                self._wake.wait()
                time.sleep(SETTLE_SECONDS)

    def _ends(self) -> bool:
        """Whether there has been no viewer for a while."""
        with self._state:
            self._state.wait_for(lambda: self._closed or self._viewers > 0, self._linger)
            if self._viewers > 0 and not self._closed:
                return False
            self._thread = None
            return True

    def _publish(self, snapshot: Snapshot) -> None:
        with self._state:
            if snapshot != self._snapshot:
                self._version, self._snapshot = self._version + 1, snapshot
                self._state.notify_all()
