"""Bulk work on the app clusters' copies, in queues of its own so that new changes need not wait.

A change that an informer reports is queued in the controller's work queue. What a new Syncer, a new
cluster or a restart requires, thousands of copies at a time, is queued here and taken in small
batches.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable

BATCH = 16
"""Copies that a thread takes at a time."""


class BulkQueue:
    """One queue of copies, by their references, per cluster. Safe to share between threads."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[str]] = {}
        self._queued: dict[str, set[str]] = {}
        self._processing: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def add(self, cluster: str, refs: Iterable[str]) -> None:
        """Queue copies that are not queued yet."""
        with self._lock:
            line = self._lines.setdefault(cluster, deque())
            queued = self._queued.setdefault(cluster, set())
            for ref in refs:
                if ref not in queued:
                    queued.add(ref)
                    line.append(ref)

    def take(self, cluster: str) -> list[str]:
        """The next batch; empty if the queue is."""
        with self._lock:
            line = self._lines.get(cluster)
            if not line:
                return []
            batch = [line.popleft() for _ in range(min(BATCH, len(line)))]
            self._queued[cluster].difference_update(batch)
            return batch

    def length(self, cluster: str) -> int:
        with self._lock:
            return len(self._lines.get(cluster, ()))

    def forget(self, cluster: str) -> None:
        with self._lock:
            self._lines.pop(cluster, None)
            self._queued.pop(cluster, None)

    def try_acquire(self, cluster: str, ref: str) -> bool:
        """Reserve a copy for this thread; False if another thread processes it."""
        with self._lock:
            if (cluster, ref) in self._processing:
                return False
            self._processing.add((cluster, ref))
            return True

    def release(self, cluster: str, ref: str) -> None:
        with self._lock:
            self._processing.discard((cluster, ref))
