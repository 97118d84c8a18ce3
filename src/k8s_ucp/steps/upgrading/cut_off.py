"""Decides whether an interrupted upgrade is finished or rolled back. Pure.

It goes on wherever that is possible: the newer program may have written for days since, and going
back to copied data would lose it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

Versions = Mapping[str, str]
"""Tool -> version, without a v."""


class CutOffDecision(Enum):
    """For one part of a topology."""

    NOTHING = "nothing"
    """It was not cut off, or has come to its end."""
    GO_ON = "go on"
    """To what this ucp brings, or with what it runs where that is newer."""
    GO_BACK = "go back"


@dataclass(frozen=True)
class HalfMoved:
    """A part whose upgrade neither ended well nor went back."""

    before: Versions
    """As it is written down: what it goes back to."""
    now: Versions
    """What the run that was cut off gave it; of a component, what that run brought."""
    exchanged: bool
    """Its newer programs may have run; else those of before are started, whoever starts it."""
    stays: bool
    """A start keeps what it runs now, as with a cluster; with a component it goes back."""


def decide(found: HalfMoved | None, brought: Versions) -> CutOffDecision:
    """brought: what this ucp would bring it to."""
    if found is None or (found.exchanged and found.now == found.before):
        return CutOffDecision.NOTHING
    if not found.exchanged:
        return CutOffDecision.GO_BACK
    if is_newer(brought, found.before) and not any_newer(found.now, brought):
        return CutOffDecision.GO_ON
    # An older ucp leaves what is newer than it knows, once it is seen to be well.
    return (
        CutOffDecision.GO_ON
        if found.stays and is_newer(found.now, found.before)
        else CutOffDecision.GO_BACK
    )


def is_newer(one: Versions, other: Versions) -> bool:
    """One tool at least is newer, and none is older."""
    return any_newer(one, other) and not any_newer(other, one)


def any_newer(one: Versions, other: Versions) -> bool:
    """One tool at least that both have is newer."""
    return any(numbers(one[tool]) > numbers(other[tool]) for tool in one.keys() & other.keys())


def numbers(version: str) -> tuple[int, ...]:
    """A version by which it can be compared."""
    return tuple(map(int, re.findall(r"\d+", version.partition("-")[0])))
