"""Status conditions (type, status, reason, message), and how they are written."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from k8s_ucp.kube import Kube, NotFound, Object, conditions_of
from k8s_ucp.reconciler.runtime.clock import Clock
from k8s_ucp.redaction import without_credentials
from k8s_ucp.timestamps import stamp

MESSAGE_LIMIT = 2000


@dataclass(frozen=True)
class Condition:
    """One condition of a status, as we want it."""

    type: str
    status: str
    """`True`, `False` or `Unknown`."""
    reason: str
    """One word in CamelCase, for programs; a contract."""
    message: str
    """For people; must be stable while nothing changes, since every new text is a write."""


def find(item: Mapping[str, Any], type: str) -> Mapping[str, Any] | None:
    """The condition of a type in an object's status."""
    return next((each for each in conditions_of(item) if each.get("type") == type), None)


def first_of(
    item: Mapping[str, Any], types: Iterable[str], *states: str
) -> Mapping[str, Any] | None:
    """The first condition, in the order of types, whose status is one of these."""
    conditions = (find(item, each) for each in types)
    return next((each for each in conditions if each and each["status"] in states), None)


def is_true(item: Mapping[str, Any], type: str) -> bool:
    """Whether an object has a condition of this type with the status True."""
    found = find(item, type)
    return found is not None and found.get("status") == "True"


def written(
    item: Mapping[str, Any], desired: Iterable[Condition], now: str
) -> list[dict[str, Any]]:
    """`desired` in the form of the status of `item`: times change only when a status does.

    Without credentials: messages quote errors of app clusters, and more people can read a status
    than the Secrets.
    """
    generation = item["metadata"].get("generation", 0)
    answer = []
    for each in desired:
        before = find(item, each.type)
        same = before is not None and before.get("status") == each.status
        answer.append(
            {
                "type": each.type,
                "status": each.status,
                "reason": each.reason,
                "message": without_credentials(each.message)[:MESSAGE_LIMIT],
                "observedGeneration": generation,
                "lastTransitionTime": before["lastTransitionTime"] if same and before else now,
            }
        )
    return answer


class StatusWriter:
    """Writes one controller's part of the status of LocalClusters.

    Uses server-side apply with a field manager per controller, so that two controllers, in one
    process or two, keep their conditions in the same list without overwriting each other.
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
        """Set all our conditions and fields; True if that needed a write.

        Conditions and fields of ours that are left out are removed. A deleted object is ignored.
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
        """Drop what is remembered of a deleted object."""
        with self._lock:
            self._last.pop(uid, None)

    def newest(self, item: Object) -> Object:
        """The newer version: what we wrote last, or what the watch has delivered."""
        with self._lock:
            last = self._last.get(item["metadata"]["uid"])
        if last is None:
            return item
        written, observed = (
            int(each["metadata"].get("resourceVersion") or 0) for each in (last, item)
        )
        return last if written > observed else item

    def _dropped(self, uid: str, status: Mapping[str, Any]) -> bool:
        """Whether we wrote a condition before that has to be removed now."""
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
