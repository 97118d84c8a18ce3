"""What is to be looked at next: keys, each at most once in line and never in two hands.

`Backlog` is the rules alone, with time handed in; `WorkQueue` adds the lock and the waiting.
"""

from __future__ import annotations

import heapq
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class BackOff:
    """How long to wait after the n-th failure in a row: doubling, capped, jittered. Seconds."""

    start: float = 0.25
    cap: float = 5.0
    jitter: float = 0.2
    """Up to this part of the delay is taken off, so that many failures don't come back at once."""

    def delay(self, failures: int, chance: float) -> float:
        """failures: at least 1. chance: 0 to 1."""
        whole = min(self.cap, self.start * 2.0 ** min(failures - 1, 60))
        return whole * (1 - self.jitter * chance)


class Backlog:
    """The rules of the queue. Not safe to share between threads.

    A key is in line, in hand (taken, not yet given back), waiting for a time, or unknown. A key
    added while in hand comes back in line when it is given back, so that no change is missed.
    """

    def __init__(self, back_off: BackOff, chance: Callable[[], float] = random.random) -> None:
        self._back_off = back_off
        self._chance = chance
        self._line: deque[str] = deque()
        self._in_line: set[str] = set()
        self._in_hand: set[str] = set()
        self._again: set[str] = set()
        self._due: dict[str, float] = {}
        self._timers: list[tuple[float, str]] = []
        self._failures: dict[str, int] = {}

    def add(self, key: str) -> None:
        """Look at `key` as soon as possible."""
        if key in self._in_hand:
            self._again.add(key)
        elif key not in self._in_line:
            self._due.pop(key, None)
            self._in_line.add(key)
            self._line.append(key)

    def take(self, now: float) -> str | None:
        """The next key, from now on in hand; None when nothing is due."""
        while self._timers and self._timers[0][0] <= now:
            due, key = heapq.heappop(self._timers)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)
        if not self._line:
            return None
        key = self._line.popleft()
        self._in_line.discard(key)
        self._in_hand.add(key)
        return key

    def done(self, key: str, now: float, again: float | None = None) -> None:
        """`key` was dealt with; look again after `again` seconds, or at the next change."""
        self._failures.pop(key, None)
        self._give_back(key, None if again is None else now + again)

    def failed(self, key: str, now: float) -> float:
        """`key` was not dealt with: it comes back after a delay, which is returned (seconds).

        When it changed meanwhile the delay is the shortest one, but never nothing: a failure that
        causes a change of its own must not spin.
        """
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        changed = key in self._again
        self._again.discard(key)
        delay = self._back_off.delay(1 if changed else failures, self._chance())
        self._give_back(key, now + delay)
        return delay

    def failures(self, key: str) -> int:
        """How often in a row `key` failed."""
        return self._failures.get(key, 0)

    def next_due(self) -> float | None:
        """When `take` will find something: 0 for at once, None for not without another `add`."""
        if self._line:
            return 0.0
        while self._timers and self._due.get(self._timers[0][1]) != self._timers[0][0]:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def __len__(self) -> int:
        """Keys in line or in hand."""
        return len(self._in_line) + len(self._in_hand)

    def _give_back(self, key: str, due: float | None) -> None:
        self._in_hand.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)
        elif due is not None:
            self._due[key] = due
            heapq.heappush(self._timers, (due, key))


class WorkQueue:
    """A Backlog that threads share and wait on."""

    def __init__(self, back_off: BackOff | None = None) -> None:
        self._backlog = Backlog(back_off or BackOff())
        self._changed = threading.Condition()
        self._stopped = False

    def add(self, key: str) -> None:
        with self._changed:
            self._backlog.add(key)
            self._changed.notify()

    def take(self) -> str | None:
        """Wait for a key; None once the queue is stopped."""
        with self._changed:
            while not self._stopped:
                now = time.monotonic()
                key = self._backlog.take(now)
                if key is not None:
                    return key
                due = self._backlog.next_due()
                self._changed.wait(None if due is None else max(0.0, due - now))
            return None

    def done(self, key: str, again: float | None = None) -> None:
        with self._changed:
            self._backlog.done(key, time.monotonic(), again)
            self._changed.notify()

    def failed(self, key: str) -> float:
        with self._changed:
            delay = self._backlog.failed(key, time.monotonic())
            self._changed.notify()
            return delay

    def stop(self) -> None:
        """Wake everyone who waits, for good."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def __len__(self) -> int:
        with self._changed:
            return len(self._backlog)
