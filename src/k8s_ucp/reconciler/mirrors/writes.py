"""Writes one copy on an app cluster, with the resourceVersion that the decision was based on.

New copies are created with POST, which the server refuses if an object of that name exists; all
other writes state the resourceVersion. So objects of others can't be overwritten, whatever happens
between the decision and the write.
"""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.kube import (
    CONFIG_MAP,
    FIELD_MANAGER,
    SECRET,
    Conflict,
    Kube,
    NotFound,
    Object,
)
from k8s_ucp.reconciler.mirrors import copies, copy_bodies
from k8s_ucp.reconciler.mirrors.copies import Copy, ObjectRef
from k8s_ucp.reconciler.mirrors.rules import Create, Orphan, Recreate, Remove, TakeOver, Update

SECONDS = 5.0
"""Timeout of a request."""

KINDS = {"Secret": SECRET, "ConfigMap": CONFIG_MAP}

_MANAGER = {"fieldManager": FIELD_MANAGER}


@dataclass(frozen=True)
class Writer:
    """Writes to one app cluster as the mirror identity."""

    kube: Kube
    cluster: str
    topology: str

    def read(self, place: ObjectRef) -> Copy | None:
        """The object at a place, as a copy. Raises KubeError."""
        live = self._live(place)
        return copies.copy_of(live, self.cluster) if live else None

    def perform(
        self, place: ObjectRef, action: Create | Update | TakeOver | Recreate | Remove | Orphan
    ) -> Copy | None:
        """Perform an action; returns the resulting copy, None if it was removed or released.

        Raises KubeError; Conflict if the object changed since the decision.
        """
        match action:
            case Create(desired, source):
                body = copy_bodies.build(place, self.cluster, self.topology, desired.entry, source)
                return self._create(place, body)
            case Update(desired, source, found):
                steps = copy_bodies.change(
                    place, self.cluster, self.topology, desired.entry, source, found.version
                )
                path = _path(place, place.name)
                return self._send("PATCH", path, steps, content="application/json-patch+json")
            case TakeOver(desired, source, found):
                live = self._same(place, found)
                body = copy_bodies.taken_over(
                    live, place, self.cluster, self.topology, desired.entry, source
                )
                return self._send("PUT", _path(place, place.name), body)
            case Recreate(desired, source, found):
                body = copy_bodies.build(place, self.cluster, self.topology, desired.entry, source)
                self._delete(place, found)
                return self._create(place, body)
            case Remove(found):
                self._delete(place, found)
                return None
            case Orphan(found):
                self._send(
                    "PUT", _path(place, place.name), copy_bodies.released(self._same(place, found))
                )
                return None

    def _create(self, place: ObjectRef, body: Object) -> Copy:
        return self._send("POST", _path(place), body)

    def _delete(self, place: ObjectRef, found: Copy) -> None:
        only = {"uid": found.uid, "resourceVersion": found.version}
        try:
            self.kube.request(
                "DELETE",
                _path(place, place.name),
                body={"preconditions": only},
                timeout=SECONDS,
            )
        except NotFound:
            return

    def _same(self, place: ObjectRef, found: Copy) -> Object:
        live = self._live(place)
        if live is None or live["metadata"]["resourceVersion"] != found.version:
            raise Conflict(f"{place} changed since it was read", status=409)
        return live

    def _live(self, place: ObjectRef) -> Object | None:
        try:
            found: Object = self.kube.request("GET", _path(place, place.name), timeout=SECONDS)
        except NotFound:
            return None
        return found

    def _send(
        self, method: str, path: str, body: object, content: str = "application/json"
    ) -> Copy:
        answer = self.kube.request(
            method, path, query=_MANAGER, body=body, content=content, timeout=SECONDS
        )
        return copies.copy_of(answer, self.cluster)


def _path(place: ObjectRef, name: str | None = None) -> str:
    return KINDS[place.kind].path(place.namespace, name)
