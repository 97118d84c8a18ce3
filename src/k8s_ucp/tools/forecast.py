"""How long builds still take. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from k8s_ucp.tools.recipe import Phase, TimeLeft, ToolProgress

SOON = 30.0
"""Seconds of compiling after which the speed of the machine is known well enough to tell."""

LINKING = 0.1
"""What it takes after the last package was begun, as a part of compiling all: the last ones still
compile, and the programs are linked."""

LATER = 1.15
"""What comes late imports more: compiling a part of the source takes that part to this power."""

LATELY = 120.0
"""Seconds whose pace is compared with that of the whole: another one means that what else runs on
the machine came or went."""

SHORT = 150.0
"""Seconds left that are told as less than the next minute: the end is least certain."""


class Forecast:
    """How long builds still take, by the source they compile and how fast that goes.

    A kilobyte of one tool takes about as long as that of another, and what else runs on the machine
    counts by itself. Whoever calls sees to one call at a time.
    """

    def __init__(self, kilobytes: Mapping[str, tuple[int, int]]) -> None:
        """kilobytes: `Tool.kilobytes` by tool, in the order in which the builds begin."""
        self._work = {
            name: (after_others if place else alone) * (1 + LINKING)
            for place, (name, (alone, after_others)) in enumerate(kilobytes.items())
        }
        self._done: dict[str, float] = {}
        self._since: float | None = None
        self._lately: deque[tuple[float, float]] = deque()
        """When, and how much was done by then; of the last seconds, and one before them."""

    def note(self, progress: ToolProgress, now: float) -> None:
        """Something was heard of a tool."""
        if (work := self._work.get(progress.tool)) is None:
            return
        if progress.phase is Phase.INSTALLED:
            self._done[progress.tool] = work
        elif progress.phase is Phase.COMPILING:
            if self._since is None:
                self._since = now
            compiling = work / (1 + LINKING)
            self._done[progress.tool] = compiling * min(progress.kilobytes / compiling, 1) ** LATER

    def left(self, now: float) -> TimeLeft | None:
        """From now; None as long as nobody knows how fast this machine is."""
        done = sum(self._done.values())
        if self._since is None or now - self._since < SOON or not done:
            return None
        to_do = sum(self._work.values()) - done
        overall = done / (now - self._since)
        return TimeLeft(to_do / overall, to_do / (self._pace_lately(done, now) or overall))

    def _pace_lately(self, done: float, now: float) -> float:
        """0 where nothing was done lately, as while programs are linked."""
        marks = self._lately
        marks.append((now, done))
        while len(marks) > 1 and marks[1][0] <= now - LATELY:
            marks.popleft()
        began, before = marks[0]
        return (done - before) / (now - began) if now - began >= LATELY else 0.0


def about(left: TimeLeft) -> str:
    """A time left, no more exact than it is known: a range while the machine's pace changes."""
    first, last = sorted((left.overall, left.lately))
    if last > first * 4 / 3 and last >= SHORT:
        return f"{max(1, round(first / 60))} to {round(last / 60)} min left"
    if left.overall < SHORT:
        return "less than 3 min left"
    return f"about {round(left.overall / 60)} min left"
