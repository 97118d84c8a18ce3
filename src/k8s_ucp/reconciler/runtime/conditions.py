"""Status conditions: type, status, reason and message; and writing them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from k8s_ucp.kube import Kube, NotFound, Object
from k8s_ucp.reconciler.runtime.clock import Clock, stamp

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


def first_of(
    item: Mapping[str, Any], types: Iterable[str], *states: str
) -> Mapping[str, Any] | None:
    """The first condition, in the order of types, whose status is one of these."""
    conditions = (find(item, each) for each in types)
    return next((each for each in conditions if each and each["status"] in states), None)


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


class StatusWriter:
    """One controller's share of the status of LocalClusters.

    Server-side apply under a manager of its own, so that two controllers, in one process or two,
    keep their conditions in the same list without overwriting each other.
    """

    def __init__(self, kube: Kube, manager: str, clock: Clock) -> None:
        self._kube = kube
        self._manager = manager
        self._clock = clock
        self._last: dict[str, Object] = {}
        self._lock = threading.Lock()

    def write(
        self,
        item: Object,
        conditions: Iterable[Condition],
        fields: Mapping[str, Any] | None = None,
    ) -> bool:
        """Make these our conditions and fields; True if that needed a write.

        All of ours, each time: what isn't named any more is removed. An object that is gone is
        left alone.
        """
        uid = item["metadata"]["uid"]
        newest = self.newest(item)
        status = {
            **(fields or {}),
            "conditions": written(newest, conditions, stamp(self._clock())),
        }
        if _shown(newest, status) and not self._dropped(uid, status):
            return False
        body = {
            "apiVersion": item["apiVersion"],
            "kind": item["kind"],
            "metadata": {
                "name": item["metadata"]["name"],
                "namespace": item["metadata"]["namespace"],
            },
            "status": status,
        }
        try:
            answer = self._kube.apply(body, manager=self._manager, subresource="status")
        except NotFound:
            self.forget(uid)
            return False
        with self._lock:
            self._last[uid] = {**answer, "ours": status}
        return True

    def forget(self, uid: str) -> None:
        """The object is gone."""
        with self._lock:
            self._last.pop(uid, None)

    def newest(self, item: Object) -> Object:
        """What we wrote may be newer than what the watch has shown so far."""
        with self._lock:
            last = self._last.get(item["metadata"]["uid"])
        if last is None:
            return item
        mine, seen = (int(each["metadata"].get("resourceVersion") or 0) for each in (last, item))
        return last if mine > seen else item

    def _dropped(self, uid: str, status: Mapping[str, Any]) -> bool:
        """A condition of ours that isn't wanted any more has to be removed."""
        with self._lock:
            last = self._last.get(uid)
        if last is None:
            return False
        before = {each["type"] for each in last["ours"]["conditions"]}
        return bool(before - {each["type"] for each in status["conditions"]})


def _shown(item: Object, status: Mapping[str, Any]) -> bool:
    current = item.get("status") or {}
    for name, value in status.items():
        if name == "conditions":
            if any(find(item, each["type"]) != each for each in value):
                return False
        elif current.get(name) != value:
            return False
    return True
