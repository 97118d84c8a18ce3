"""May this core write now? Pure.

Times are seconds of a clock that also counts while the machine sleeps. A core that last saw its
epoch at t may write until t + period. A taker writes no earlier than two periods after its own
epoch is in the repository, so the two never overlap, whatever stood still in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from k8s_ucp.fence.record import PERIODS, FenceRecord

NEVER = float("-inf")


class FenceVerdict(StrEnum):
    """On the writers of a core."""

    HELD = "held"
    """They work."""
    WAITING = "waiting"
    """The fence was taken from a core that may still be writing."""
    SILENT = "silent"
    """Nobody could be asked for too long."""
    LOST = "lost"
    """Another core has the fence, or nobody any more."""


@dataclass(frozen=True)
class FenceView:
    """What a look starts from."""

    id: str
    """Of this core."""
    record: FenceRecord | None
    """As it was read last; None where the repository had none."""
    confirmed: float
    """When the last read began that found this core's epoch; NEVER."""
    now: float
    period: float
    not_before: float = 0.0
    """After a takeover: when the core before has stopped."""
    stops_when_silent: bool = True
    """What it writes to can be written to by a core elsewhere, too."""


def decide(seen: FenceView) -> FenceVerdict:
    """The guard's one decision."""
    if seen.record is not None and not seen.record.is_held_by(seen.id):
        return FenceVerdict.LOST
    if seen.now < seen.not_before:
        return FenceVerdict.WAITING
    if seen.stops_when_silent and seen.now >= seen.confirmed + seen.period:
        return FenceVerdict.SILENT
    return FenceVerdict.HELD


def until(seen: FenceView) -> float:
    """How long the writers may go on without another look, where they may at all."""
    return (seen.confirmed if seen.stops_when_silent else seen.now) + seen.period


def wait_of(record: FenceRecord, *, period: float, now: float) -> float:
    """Seconds from now that its holder has to wait before it writes.

    now: seconds since 1970, by the clock that `record.since` was taken from.
    """
    longest = PERIODS * period
    if not record.taken:
        return 0.0
    return min(longest, max(0.0, record.since + longest - now))
