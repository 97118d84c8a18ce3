"""Reports the state of a source: conditions, Events and metrics.

A LocalCluster has the conditions in its status; those of other sources are kept in notes.py.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from k8s_ucp import names
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import Kube, Object, labels_of
from k8s_ucp.reconciler.registration.notes import read_notes_text, write_note
from k8s_ucp.reconciler.runtime import conditions as status_conditions
from k8s_ucp.reconciler.runtime.clock import Clock
from k8s_ucp.reconciler.runtime.conditions import Condition, StatusWriter
from k8s_ucp.reconciler.runtime.events import Events
from k8s_ucp.reconciler.runtime.metrics import Metrics
from k8s_ucp.timestamps import stamp


@dataclass(frozen=True)
class RegistrationOutcome:
    """State of a source after an effect, and when to reconcile it again."""

    conditions: tuple[Condition, ...] = ()
    requeue_after: float | None = None
    """Seconds; None: at the next change."""
    warning: str = ""
    """Message for the log, with the first condition, if that changed."""
    event: tuple[str, str] | None = None
    """Reason and message of an Event that belongs to no condition."""
    failure: UcpError | None = None
    """Raised once the conditions are written, so that the queue backs off."""


class StatusReporter:
    """Safe to share between threads; one at a time reports a key."""

    def __init__(
        self,
        kube: Kube,
        events: Events,
        metrics: Metrics,
        clock: Clock,
        sources: Callable[[], Iterable[str]],
    ) -> None:
        """sources: keys of all current sources; notes of others are deleted."""
        self._kube = kube
        self._events = events
        self._metrics = metrics
        self._clock = clock
        self._sources = sources
        self._status = StatusWriter(kube, "k8s-ucp-registration", clock)
        self._turns: dict[str, dict[str, tuple[str, str]]] = {}
        """Last reported (status, reason), by the owner's UID and the type of condition."""
        self._owners: dict[str, str] = {}
        """UID of the last reported owner, by source."""
        self._notes: dict[str, str] | None = None
        self._lock = threading.Lock()

    def set_conditions(
        self, key: str, owner: Object | None, conditions: Iterable[Condition]
    ) -> bool:
        """Write the conditions of a source; True if they changed."""
        if owner is None:
            return False
        self._speak_of(key, owner["metadata"]["uid"])
        conditions = list(conditions)
        for each in conditions:
            if each.type == names.REGISTERED:
                name = owner["metadata"]["name"].removesuffix("-kubeconfig")
                self._metrics.registered.labels(name).set(each.status == "True")
        if owner["kind"] == "LocalCluster":
            before: Object = owner
            news = self._status.write(owner, conditions)
        else:
            before = {"status": self._noted(key).get("status") or {}}
            news = self._note(key, owner, conditions)
        self._record_transitions(owner, before, conditions)
        return news

    def show(self, key: str, owner: Object | None, outcome: RegistrationOutcome) -> bool:
        """Report conditions and Event of an outcome; True if the conditions changed."""
        news = bool(outcome.conditions) and self.set_conditions(key, owner, outcome.conditions)
        if owner is not None and outcome.event:
            self._events.record(owner, *outcome.event)
        return news

    def forget(self, key: str) -> None:
        """Delete the note of a source that was deleted."""
        self._speak_of(key, None)
        if self._noted(key):
            self._write(key, None)

    def restart(self) -> None:
        """Read the notes again on the next use, since another leader may have changed them."""
        with self._lock:
            self._notes = None

    def _speak_of(self, key: str, uid: str | None) -> None:
        """Remember the owner of a source, and forget what was reported of its previous owner."""
        with self._lock:
            before = self._owners.pop(key, None)
            if uid is not None:
                self._owners[key] = uid
            if before in (None, uid) or before in self._owners.values():
                return
            self._turns.pop(before, None)
        self._status.forget(before)

    def _record_transitions(
        self, owner: Object, before: Object, conditions: Iterable[Condition]
    ) -> None:
        uid = owner["metadata"]["uid"]
        with self._lock:
            known = self._turns.setdefault(uid, {})
        for each in conditions:
            found = status_conditions.find(before, each.type) or {}
            last = known.get(each.type) or (found.get("status", ""), found.get("reason", ""))
            known[each.type] = (each.status, each.reason)
            if last != known[each.type]:
                bad = each.status == "False" and each.type in (names.REGISTERED, names.REACHABLE)
                warning = bad and each.reason != "Leaving"
                self._events.record(owner, each.reason, each.message, warning=warning)

    def _note(self, key: str, owner: Object, new: list[Condition]) -> bool:
        before = self._noted(key)
        seen: Object = {"metadata": owner["metadata"], "status": before.get("status") or {}}
        conditions = status_conditions.written(seen, new, stamp(self._clock()))
        entry = {
            "owner": {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "namespace": owner["metadata"].get("namespace", ""),
                "name": owner["metadata"]["name"],
            },
            "environment": labels_of(owner).get(names.ENVIRONMENT, ""),
            "status": {"conditions": conditions},
        }
        if entry == before:
            return False
        self._write(key, json.dumps(entry, sort_keys=True))
        return True

    def _noted(self, key: str) -> dict[str, Any]:
        left: set[str] = set()
        with self._lock:
            if self._notes is None:
                self._notes = read_notes_text(self._kube)
                # Sources that were deleted while no reconciler was running.
                left = self._notes.keys() - set(self._sources()) - {key}
            text = self._notes.get(key)
        for each in left:
            self._write(each, None)
        return json.loads(text) if text else {}

    def _write(self, key: str, text: str | None) -> None:
        write_note(self._kube, key, text)
        with self._lock:
            if self._notes is None:
                # Another leader may have written meanwhile; the notes will be read again.
                return
            if text is None:
                self._notes.pop(key, None)
            else:
                self._notes[key] = text
