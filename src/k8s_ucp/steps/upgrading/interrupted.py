"""Decides whether an interrupted upgrade is finished or rolled back. Pure.

It is finished whenever possible: the newer program may have been writing for days since, and a
rollback to copied data would lose that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

Versions = Mapping[str, str]
"""{tool: version}, without a leading v."""


class ResumeDecision(Enum):
    """The decision for one part of a topology."""

    NOTHING = "nothing"
    """It was not interrupted, or is finished."""
    RESUME = "resume"
    """Upgrade to the versions of this ucp, or keep those that it runs if they are newer."""
    ROLL_BACK = "roll back"


@dataclass(frozen=True)
class PartialUpgrade:
    """A part whose upgrade neither succeeded nor was rolled back."""

    before: Versions
    """As recorded: the versions for a rollback."""
    now: Versions
    """Versions that the interrupted run gave it; of a component, those that it aimed at."""
    replaced: bool
    """The newer programs may have run; otherwise any start uses the old ones."""
    stays: bool
    """A start keeps what it runs now (clusters), instead of rolling it back (components)."""


def decide(found: PartialUpgrade | None, target_versions: Versions) -> ResumeDecision:
    """Decide what to do with a part. target_versions: the versions of this ucp."""
    if found is None or (found.replaced and found.now == found.before):
        return ResumeDecision.NOTHING
    if not found.replaced:
        return ResumeDecision.ROLL_BACK
    if is_newer(target_versions, found.before) and not any_newer(found.now, target_versions):
        return ResumeDecision.RESUME
    # An older ucp keeps programs that are newer than its own, if they turn out healthy.
    return (
        ResumeDecision.RESUME
        if found.stays and is_newer(found.now, found.before)
        else ResumeDecision.ROLL_BACK
    )


def is_newer(one: Versions, other: Versions) -> bool:
    """Whether at least one tool is newer, and none is older."""
    return any_newer(one, other) and not any_newer(other, one)


def any_newer(one: Versions, other: Versions) -> bool:
    """Whether at least one tool that both have is newer."""
    return any(numbers(one[tool]) > numbers(other[tool]) for tool in one.keys() & other.keys())


def numbers(version: str) -> tuple[int, ...]:
    """A version as numbers, for comparisons."""
    return tuple(map(int, re.findall(r"\d+", version.partition("-")[0])))
