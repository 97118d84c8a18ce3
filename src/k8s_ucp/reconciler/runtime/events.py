"""Kubernetes Events, which `kubectl describe` shows."""

from __future__ import annotations

import secrets
import threading

from k8s_ucp import names
from k8s_ucp.kube import EVENT, Kube, KubeError, NotFound, Object
from k8s_ucp.reconciler.runtime.clock import Clock
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.metrics import Metrics
from k8s_ucp.redaction import without_credentials
from k8s_ucp.timestamps import stamp

MESSAGE_LIMIT = 1000
BURST = 25
REFILL = 60.0
"""Seconds until an object that used up its burst may have another event."""
_REMEMBERED = 2000


class Events:
    """Writes Events, rate-limited per object; failed writes are counted and logged only."""

    def __init__(self, kube: Kube, metrics: Metrics, log: Log, clock: Clock) -> None:
        self._kube = kube
        self._metrics = metrics
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._full_at: dict[str, float] = {}
        self._names: dict[tuple[str, str, str], tuple[str, int]] = {}
        """Name and count of the event of each (uid, reason, message)."""

    def record(self, about: Object, reason: str, message: str, *, warning: bool = False) -> None:
        """Record an event; a repeated one increments its count. reason: one word in CamelCase."""
        message = without_credentials(message)[:MESSAGE_LIMIT]
        uid = about["metadata"]["uid"]
        key = (uid, reason, message)
        with self._lock:
            now = self._clock()
            if not self._allowed(uid, now):
                self._metrics.events.labels("dropped").inc()
                return
            fresh = f"{about['metadata']['name']}.{secrets.token_hex(8)}"
            name, count = self._names.pop(key, (fresh, 0))
            self._names[key] = (name, count + 1)
            if len(self._names) > _REMEMBERED:
                self._names.pop(next(iter(self._names)))
        try:
            self._write(about, name, reason, message, count + 1, stamp(now), warning)
        except KubeError as error:
            self._metrics.events.labels("failed").inc()
            self._log.warning("event not written", reason=reason, error=error.message)
        else:
            self._metrics.events.labels("written").inc()

    def _allowed(self, uid: str, now: float) -> bool:
        full_at = max(self._full_at.get(uid, 0.0), now) + REFILL
        if full_at - now > BURST * REFILL:
            return False
        if len(self._full_at) > _REMEMBERED:
            self._full_at = {each: at for each, at in self._full_at.items() if at > now}
        self._full_at[uid] = full_at
        return True

    def _write(
        self,
        about: Object,
        name: str,
        reason: str,
        message: str,
        count: int,
        now: str,
        warning: bool,
    ) -> None:
        metadata = about["metadata"]
        namespace = metadata.get("namespace") or names.CLUSTERS_NAMESPACE
        if count > 1:
            change = {"count": count, "lastTimestamp": now}
            try:
                self._kube.patch(EVENT, name, namespace, change)
                return
            except NotFound:
                pass
        involved = {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        if metadata.get("namespace"):
            involved["namespace"] = metadata["namespace"]
        event = EVENT.object(
            name,
            namespace,
            involvedObject=involved,
            reason=reason,
            message=message,
            type="Warning" if warning else "Normal",
            source={"component": names.OURS},
            reportingComponent=f"{names.GROUP}/reconciler",
            reportingInstance="",
            firstTimestamp=now,
            lastTimestamp=now,
            count=count,
        )
        self._kube.create(event)
