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
    Unreachable,
    is_object,
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

    def read(self, ref: ObjectRef) -> Copy | None:
        """The object, as a copy. Raises KubeError."""
        live = self._live(ref)
        return None if live is None else self._copy(ref, live)

    def perform(
        self, ref: ObjectRef, action: Create | Update | TakeOver | Recreate | Remove | Orphan
    ) -> Copy | None:
        """Perform an action; returns the resulting copy, None if it was removed or released.

        Raises KubeError; Conflict if the object changed since the decision.
        """
        match action:
            case Create(desired, source):
                body = copy_bodies.build(ref, self.cluster, self.topology, desired.entry, source)
                return self._create(ref, body)
            case Update(desired, source, found):
                steps = copy_bodies.change(
                    ref, self.cluster, self.topology, desired.entry, source, found.version
                )
                path = _path(ref, ref.name)
                return self._send(ref, "PATCH", path, steps, content="application/json-patch+json")
            case TakeOver(desired, source, found):
                live = self._same(ref, found)
                body = copy_bodies.taken_over(
                    live, ref, self.cluster, self.topology, desired.entry, source
                )
                return self._send(ref, "PUT", _path(ref, ref.name), body)
            case Recreate(desired, source, found):
                body = copy_bodies.build(ref, self.cluster, self.topology, desired.entry, source)
                self._delete(ref, found)
                return self._create(ref, body)
            case Remove(found):
                self._delete(ref, found)
                return None
            case Orphan(found):
                body = copy_bodies.released(self._same(ref, found))
                self._send(ref, "PUT", _path(ref, ref.name), body)
                return None

    def _create(self, ref: ObjectRef, body: Object) -> Copy:
        return self._send(ref, "POST", _path(ref), body)

    def _delete(self, ref: ObjectRef, found: Copy) -> None:
        only = {"uid": found.uid, "resourceVersion": found.version}
        try:
            self.kube.request(
                "DELETE",
                _path(ref, ref.name),
                body={"preconditions": only},
                timeout=SECONDS,
            )
        except NotFound:
            return

    def _same(self, ref: ObjectRef, found: Copy) -> Object:
        live = self._live(ref)
        if live is None or self._copy(ref, live).version != found.version:
            raise Conflict(f"{ref} changed since it was read", status=409)
        return live

    def _live(self, ref: ObjectRef) -> Object | None:
        try:
            found: Object = self.kube.request("GET", _path(ref, ref.name), timeout=SECONDS)
        except NotFound:
            return None
        return found

    def _send(
        self,
        ref: ObjectRef,
        method: str,
        path: str,
        body: object,
        content: str = "application/json",
    ) -> Copy:
        answer = self.kube.request(
            method, path, query=_MANAGER, body=body, content=content, timeout=SECONDS
        )
        return self._copy(ref, answer)

    def _copy(self, ref: ObjectRef, answer: Object) -> Copy:
        """Reduce a response. Raises Unreachable if it has another form: its server may be odd."""
        try:
            if is_object(answer):
                return copies.copy_of(answer, self.cluster)
        except (KeyError, TypeError, AttributeError, ValueError):
            pass
        raise Unreachable(f"{self.kube.server}: the response is not {ref}")


def _path(ref: ObjectRef, name: str | None = None) -> str:
    return KINDS[ref.kind].path(ref.namespace, name)
