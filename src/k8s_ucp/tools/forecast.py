"""How long an installation still takes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from k8s_ucp.tools.recipe import Phase, ToolProgress


class Forecast:
    """How long an installation still takes, by what builds of the same tools took before.

    What has ended tells how fast the machine is today. Whoever calls sees to one call at a time.
    """

    def __init__(self, expected: Mapping[str, float | None], side_by_side: int) -> None:
        """expected: seconds by tool, in the order in which they begin; None: nobody knows."""
        self._expected = expected
        self._side_by_side = side_by_side
        self._began: dict[str, float] = {}
        self._took: dict[str, float] = {}

    def note(self, progress: ToolProgress, now: float) -> None:
        """Something was heard of a tool."""
        self._began.setdefault(progress.tool, now - progress.elapsed)
        if progress.phase is Phase.INSTALLED:
            self._took[progress.tool] = progress.elapsed

    def left(self, now: float) -> float | None:
        """Seconds from now; None where a tool that has not ended was never built here."""
        open_ones = {
            name: seconds for name, seconds in self._expected.items() if name not in self._took
        }
        if any(seconds is None for seconds in open_ones.values()):
            return None
        running, waiting = [], []
        for name, seconds in open_ones.items():
            whole = (seconds or 0.0) * self._pace()
            if name in self._began:
                elapsed = now - self._began[name]
                # One that takes longer than it should ends some day; it never has ended already.
                running.append(max(whole - elapsed, 0.1 * elapsed))
            else:
                waiting.append(whole)
        free = sorted([*running, *[0.0] * (self._side_by_side - len(running))])
        for whole in waiting:
            free = sorted([free[0] + whole, *free[1:]])
        return free[-1]

    def _pace(self) -> float:
        """How much longer builds take than they did: 1.0 as long."""
        ended = {name: self._expected.get(name) for name in self._took}
        before = sum(seconds or 0.0 for seconds in ended.values())
        today = sum(self._took[name] for name, seconds in ended.items() if seconds)
        return today / before if before > 0 and today > 0 else 1.0


def about(seconds: float) -> str:
    """A time left, no more exact than it is known."""
    return f"about {round(seconds / 60)} min left" if seconds >= 90 else "less than 2 min left"
