"""Estimates the remaining time of builds. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from k8s_ucp.tools.recipe import Phase, TimeLeft, ToolProgress

SOON = 30.0
"""Seconds of compiling after which the machine's speed is known well enough."""

LINKING = 0.1
"""Work after the last package was begun, as a part of the whole compilation: the last packages are
still compiling, and the programs are linked."""

LATER = 1.15
"""Later packages import more: compiling a part of the source takes that part to this power."""

LATELY = 120.0
"""Seconds of which the pace is compared with the overall pace; a difference means that the
machine's other load has changed."""

SHORT = 150.0
"""Less time left is shown as an upper limit in minutes: the end is the least certain."""


class Forecast:
    """Remaining time of builds, from the source that they compile and the speed so far.

    A kilobyte takes about as long in every tool, and other load on the machine is included
    automatically. Not thread-safe.
    """

    def __init__(self, kilobytes: Mapping[str, tuple[int, int]]) -> None:
        """kilobytes: `Tool.kilobytes` by tool, in the order in which the builds begin."""
        self._work = {
            name: (after_others if index else alone) * (1 + LINKING)
            for index, (name, (alone, after_others)) in enumerate(kilobytes.items())
        }
        self._done: dict[str, float] = {}
        self._since: float | None = None
        self._lately: deque[tuple[float, float]] = deque()
        """(time, work done by then) of the last LATELY seconds, and one before them."""

    def note(self, progress: ToolProgress, now: float) -> None:
        """Record a tool's progress."""
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
        """Time left from now; None until the machine's speed is known."""
        done = sum(self._done.values())
        if self._since is None or now - self._since < SOON or not done:
            return None
        to_do = sum(self._work.values()) - done
        overall = done / (now - self._since)
        return TimeLeft(to_do / overall, to_do / (self._pace_lately(done, now) or overall))

    def _pace_lately(self, done: float, now: float) -> float:
        """0 if nothing progressed lately, such as while programs are linked."""
        marks = self._lately
        marks.append((now, done))
        while len(marks) > 1 and marks[1][0] <= now - LATELY:
            marks.popleft()
        began, before = marks[0]
        return (done - before) / (now - began) if now - began >= LATELY else 0.0


def about(left: TimeLeft) -> str:
    """A text for the time left, as precise as it is known: a range if the pace is changing."""
    first, last = sorted((left.overall, left.lately))
    if last > first * 4 / 3 and last >= SHORT:
        return f"{max(1, round(first / 60))} to {round(last / 60)} min left"
    if left.overall < SHORT:
        return "less than 3 min left"
    return f"about {round(left.overall / 60)} min left"
