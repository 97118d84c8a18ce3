"""Decides whether this core may write now. Pure.

Times are seconds of a clock that includes suspend. A core that last saw its epoch at t may write
until t + period. After a takeover, a core writes no earlier than two periods after its epoch is in
the repository; so the two never overlap, whatever was suspended in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from k8s_ucp.fence.record import PERIODS, FenceRecord

NEVER = float("-inf")


class FenceVerdict(StrEnum):
    """Whether the writers of a core may work."""

    HELD = "held"
    """They may."""
    WAITING = "waiting"
    """No: the fence was taken from a core that may still be writing."""
    SILENT = "silent"
    """No: the fence could not be read for too long."""
    LOST = "lost"
    """No: another core has the fence, or it was released."""
    EXPIRED = "expired"
    """No: the guard hangs, and has renewed no permit. Only `FenceFiles.seen` says so."""


@dataclass(frozen=True)
class FenceView:
    """Input of a verdict."""

    id: str
    """ID of this core."""
    record: FenceRecord | None
    """As read last; None if the repository has none."""
    confirmed: float
    """Start of the last read that found this core's epoch, or NEVER."""
    now: float
    period: float
    not_before: float = 0.0
    """After a takeover: when the previous core will have stopped."""
    stops_when_silent: bool = True
    """Whether another core could write to the same clusters and clouds."""


def decide(seen: FenceView) -> FenceVerdict:
    """The verdict for a view."""
    if seen.record is not None and not seen.record.is_held_by(seen.id):
        return FenceVerdict.LOST
    if seen.now < seen.not_before:
        return FenceVerdict.WAITING
    if seen.stops_when_silent and seen.now >= seen.confirmed + seen.period:
        return FenceVerdict.SILENT
    return FenceVerdict.HELD


def until(seen: FenceView) -> float:
    """When the writers must stop without a further confirmation."""
    return (seen.confirmed if seen.stops_when_silent else seen.now) + seen.period


def wait_of(record: FenceRecord, *, period: float, now: float) -> float:
    """Seconds from now that the record's holder has to wait before it writes.

    now: seconds since 1970, by the same clock as `record.since`.
    """
    longest = PERIODS * period
    if not record.taken:
        return 0.0
    return min(longest, max(0.0, record.since + longest - now))
