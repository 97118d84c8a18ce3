"""Bulk work on the app clusters' copies: long lists that fresh changes don't wait behind.

A change that a watch shows goes into the controller's queue at once. What a new Syncer, a new
cluster or a restart brings, thousands at a time, stands here and is taken in small batches.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable

BATCH = 16
"""Places that one thread takes at a time."""


class BulkQueue:
    """One line of places for each cluster. Safe to share between threads."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[str]] = {}
        self._standing: dict[str, set[str]] = {}
        self._in_hand: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def add(self, cluster: str, places: Iterable[str]) -> None:
        """Each place stands in line once."""
        with self._lock:
            line = self._lines.setdefault(cluster, deque())
            standing = self._standing.setdefault(cluster, set())
            for place in places:
                if place not in standing:
                    standing.add(place)
                    line.append(place)

    def take(self, cluster: str) -> list[str]:
        """The next batch; empty when nothing is left."""
        with self._lock:
            line = self._lines.get(cluster)
            if not line:
                return []
            batch = [line.popleft() for _ in range(min(BATCH, len(line)))]
            self._standing[cluster].difference_update(batch)
            return batch

    def depth(self, cluster: str) -> int:
        with self._lock:
            return len(self._lines.get(cluster, ()))

    def forget(self, cluster: str) -> None:
        with self._lock:
            self._lines.pop(cluster, None)
            self._standing.pop(cluster, None)

    def grasp(self, cluster: str, place: str) -> bool:
        """Take a place into this thread's hands; False where another one has it."""
        with self._lock:
            if (cluster, place) in self._in_hand:
                return False
            self._in_hand.add((cluster, place))
            return True

    def let_go(self, cluster: str, place: str) -> None:
        with self._lock:
            self._in_hand.discard((cluster, place))
