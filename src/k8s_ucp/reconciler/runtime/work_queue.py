"""Work queue: each key is queued at most once and processed by one worker at a time.

Keys are queued in lanes, one per app cluster. Lanes take turns, and the number of keys of a lane
that are processed at once is limited, so that a slow cluster delays no other. `RateLimitedQueue`
has the rules, with time as an argument; `WorkQueue` adds locking and waiting.
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
    """Delay after the n-th failure in a row: exponential, capped, with jitter. Seconds."""

    start: float = 0.25
    cap: float = 5.0
    jitter: float = 0.2
    """Part of the delay that is subtracted at most, so that retries spread."""

    def delay(self, failures: int, chance: float) -> float:
        """The delay. failures: at least 1. chance: 0 to 1."""
        longest = min(self.cap, self.start * 2.0 ** min(failures - 1, 60))
        return longest * (1 - self.jitter * chance)


class RetryRate:
    """Token bucket of retries: `burst` at once, then `per_second`. Not thread-safe."""

    def __init__(self, per_second: float = 50.0, burst: int = 200) -> None:
        self._per_second = per_second
        self._burst = burst
        self._full_at = 0.0

    def wait(self, now: float) -> float:
        """Take a token; returns the seconds until it may be used."""
        self._full_at = max(self._full_at, now) + 1 / self._per_second
        return max(0.0, self._full_at - now - self._burst / self._per_second)


Lane = Callable[[str], str]
"""The lane of a key, usually the name of its app cluster."""


class RateLimitedQueue:
    """The rules of the queue. Not thread-safe.

    A key is queued, processing (taken, not yet done or failed), delayed until a time, or unknown. A
    key added while it is processing is queued again afterwards, so that no change is missed.
    """

    def __init__(
        self,
        back_off: BackOff,
        chance: Callable[[], float] = random.random,
        *,
        lane: Lane = lambda key: key,
        width: int = 1,
    ) -> None:
        """width: keys of one lane processed at once."""
        self._back_off = back_off
        self._chance = chance
        self._lane = lane
        self._width = width
        self._rate = RetryRate()
        self._lines: dict[str, deque[str]] = {}
        self._turns: deque[str] = deque()
        """Lanes with queued keys and free width, each once."""
        self._busy: dict[str, int] = {}
        self._in_line: set[str] = set()
        self._processing: set[str] = set()
        self._again: set[str] = set()
        self._due: dict[str, float] = {}
        self._timers: list[tuple[float, str]] = []
        self._failures: dict[str, int] = {}
        self._changed: dict[str, float] = {}
        """Time of the oldest change that a key has not been reconciled with."""
        self._changed_while_processing: dict[str, float] = {}

    def add(self, key: str, now: float = 0.0) -> None:
        """Queue `key` after a change, to be processed as soon as possible."""
        if key in self._processing:
            self._changed_while_processing.setdefault(key, now)
            self._again.add(key)
        else:
            self._changed.setdefault(key, now)
            self._line_up(key)

    def take(self, now: float) -> str | None:
        """The next key, which is processing from now on; None if nothing is due."""
        while self._timers and self._timers[0][0] <= now:
            due, key = heapq.heappop(self._timers)
            if self._due.get(key) == due:
                self._line_up(key)
        if not self._turns:
            return None
        lane = self._turns.popleft()
        key = self._lines[lane].popleft()
        self._in_line.discard(key)
        self._processing.add(key)
        self._busy[lane] = self._busy.get(lane, 0) + 1
        self._take_turns(lane)
        return key

    def done(self, key: str, now: float, again: float | None = None) -> float | None:
        """`key` was reconciled; process it again after `again` seconds, or at the next change.

        Returns the seconds since the oldest change that was reconciled; None without a change.
        """
        self._failures.pop(key, None)
        changed = self._changed.pop(key, None)
        self._finish(key, None if again is None else now + again)
        return None if changed is None else now - changed

    def failed(self, key: str, now: float) -> float:
        """`key` was not reconciled: queue it again after a delay, which is returned (seconds).

        If it changed meanwhile, the delay is the shortest one, but never zero: a failure that
        causes a change itself must not spin.
        """
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        changed = key in self._again
        self._again.discard(key)
        delay = self._back_off.delay(1 if changed else failures, self._chance())
        delay = max(delay, self._rate.wait(now))
        self._finish(key, now + delay)
        return delay

    def failures(self, key: str) -> int:
        """How many times in a row `key` failed."""
        return self._failures.get(key, 0)

    def next_due(self) -> float | None:
        """When `take` will return a key: 0 for now, None for not before another call."""
        if self._turns:
            return 0.0
        while self._timers and self._due.get(self._timers[0][1]) != self._timers[0][0]:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def __len__(self) -> int:
        """Number of keys queued or processing."""
        return len(self._in_line) + len(self._processing)

    def oldest(self, now: float) -> float:
        """Age in seconds of the oldest change that is not reconciled."""
        waiting = [*self._changed.values(), *self._changed_while_processing.values()]
        return now - min(waiting) if waiting else 0.0

    def _line_up(self, key: str) -> None:
        if key in self._in_line:
            return
        self._due.pop(key, None)
        self._in_line.add(key)
        lane = self._lane(key)
        line = self._lines.setdefault(lane, deque())
        line.append(key)
        if len(line) == 1 and self._busy.get(lane, 0) < self._width:
            self._turns.append(lane)

    def _take_turns(self, lane: str) -> None:
        """Give a lane its next turn, after one of its keys was taken or returned."""
        if not self._lines.get(lane):
            self._lines.pop(lane, None)
        elif self._busy.get(lane, 0) < self._width:
            self._turns.append(lane)

    def _finish(self, key: str, due: float | None) -> None:
        lane = self._lane(key)
        self._processing.discard(key)
        if key in self._changed_while_processing:
            self._changed.setdefault(key, self._changed_while_processing.pop(key))
        was_full = self._busy[lane] >= self._width
        self._busy[lane] -= 1
        if not self._busy[lane]:
            del self._busy[lane]
        if was_full:
            self._take_turns(lane)
        if key in self._again:
            self._again.discard(key)
            self._line_up(key)
        elif due is not None:
            self._due[key] = due
            heapq.heappush(self._timers, (due, key))


class WorkQueue:
    """A RateLimitedQueue with locking, on which threads can wait."""

    def __init__(
        self,
        back_off: BackOff | None = None,
        *,
        lane: Lane = lambda key: key,
        width: int = 1,
    ) -> None:
        """See RateLimitedQueue."""
        self._rules = RateLimitedQueue(back_off or BackOff(), lane=lane, width=width)
        self._changed = threading.Condition()
        self._stopped = False
        self._held = False
        self._idle = 0

    def add(self, key: str) -> None:
        with self._changed:
            self._rules.add(key, time.monotonic())
            self._changed.notify()

    def take(self, patience: float | None = None) -> str | None:
        """Wait for a key; None once the queue is stopped, or after `patience` seconds."""
        until = None if patience is None else time.monotonic() + patience
        with self._changed:
            self._idle += 1
            try:
                while not self._stopped:
                    now = time.monotonic()
                    key = None if self._held else self._rules.take(now)
                    if key is not None:
                        if self._rules.next_due() == 0.0:
                            # One notification may stand for several keys.
                            self._changed.notify()
                        return key
                    if until is not None and now >= until:
                        return None
                    due = None if self._held else self._rules.next_due()
                    times = [each for each in (due, until) if each is not None]
                    self._changed.wait(max(0.0, min(times) - now) if times else None)
                return None
            finally:
                self._idle -= 1

    def done(self, key: str, again: float | None = None) -> float | None:
        """See RateLimitedQueue.done."""
        with self._changed:
            took = self._rules.done(key, time.monotonic(), again)
            self._changed.notify()
            return took

    def failed(self, key: str) -> float:
        with self._changed:
            delay = self._rules.failed(key, time.monotonic())
            self._changed.notify()
            return delay

    def pause(self, held: bool) -> None:
        """While held, `take` returns nothing, since another process leads."""
        with self._changed:
            self._held = held
            self._changed.notify_all()

    def stop(self) -> None:
        """Wake all waiting threads for good."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @property
    def stopped(self) -> bool:
        return self._stopped

    @property
    def idle(self) -> int:
        """Number of threads that wait for a key."""
        return self._idle

    def oldest(self) -> float:
        """See RateLimitedQueue.oldest."""
        with self._changed:
            return self._rules.oldest(time.monotonic())

    def __len__(self) -> int:
        with self._changed:
            return len(self._rules)
