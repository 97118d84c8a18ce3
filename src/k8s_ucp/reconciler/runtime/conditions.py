"""Status conditions: what is true of an object, since when and why, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MESSAGE_LIMIT = 2000


@dataclass(frozen=True)
class Condition:
    """One condition as it should be shown."""

    type: str
    status: str
    """`True`, `False` or `Unknown`."""
    reason: str
    """One word in CamelCase, for programs."""
    message: str
    """For people; stable while nothing changes, since every new text is a write."""


def find(item: Mapping[str, Any], type: str) -> Mapping[str, Any] | None:
    """The condition of that type in an object's status."""
    for each in (item.get("status") or {}).get("conditions") or []:
        if each.get("type") == type:
            found: Mapping[str, Any] = each
            return found
    return None


def is_true(item: Mapping[str, Any], type: str) -> bool:
    found = find(item, type)
    return found is not None and found.get("status") == "True"


def written(item: Mapping[str, Any], wanted: Iterable[Condition], now: str) -> list[dict[str, Any]]:
    """`wanted` as it goes into the status of `item`: the time changes only with the status."""
    generation = item["metadata"].get("generation", 0)
    answer = []
    for each in wanted:
        before = find(item, each.type)
        same = before is not None and before.get("status") == each.status
        answer.append(
            {
                "type": each.type,
                "status": each.status,
                "reason": each.reason,
                "message": each.message[:MESSAGE_LIMIT],
                "observedGeneration": generation,
                "lastTransitionTime": before["lastTransitionTime"] if same and before else now,
            }
        )
    return answer
