"""Leader election: one active process per controller, by a Lease in the clusters' namespace.

Other holders' clocks are not trusted: a Lease is taken over once it was unchanged for its whole
duration by our own monotonic clock. If the holder was a process of this machine that has ended, it
is taken over at once, so that a restart on the host costs no time.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from k8s_ucp import names, process
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import LEASE, Kube, KubeError, Object
from k8s_ucp.reconciler.runtime.logs import Log

LEASE_SECONDS = 15.0
RENEW = 5.0
GIVE_UP = 10.0
"""Seconds without a renewal after which the leader stops working, well before any takeover."""
RETRY = 1.0
_START = re.compile(r"[0-9]+\.[0-9]+|[0-9a-f-]{36}:[0-9]+")
"""A time of day, as older versions wrote it, or boot and ticks."""


@dataclass(frozen=True)
class Holder:
    """A process, as the holder of a Lease: `<place>/<pid>/<start>`.

    place: machine and workspace, or the name of the pod.
    """

    place: str
    pid: int
    start: str

    @classmethod
    def here(cls, place: str) -> Holder:
        """This process."""
        process_identity = process.identify(os.getpid())
        return cls(place, os.getpid(), process_identity.start if process_identity else "0.0")

    def __str__(self) -> str:
        return f"{self.place}/{self.pid}/{self.start}"

    def outlived(self, other: str) -> bool:
        """Whether `other` is a process of this place that has ended, or is this very process."""
        place, _, rest = other.rpartition("/")
        place, _, pid = place.rpartition("/")
        if place != self.place or not pid.isdigit() or not _START.fullmatch(rest):
            return False
        if other == str(self):
            return True
        found = process.identify(int(pid))
        return found is None or not process.is_start_of(rest, found)


@dataclass
class LeaseState:
    """Last observation of a Lease, and whether it may be taken. Pure."""

    holder: Holder
    lease_seconds: float = LEASE_SECONDS
    seen: tuple[str, str] = ("", "")
    """(holder, renewTime) of the last observation."""
    since: float = 0.0

    def may_take(self, lease: Object, now: float) -> bool:
        """Whether nobody holds it, or it was not renewed for its whole duration."""
        spec = lease.get("spec") or {}
        other = str(spec.get("holderIdentity") or "")
        if not other or self.holder.outlived(other):
            return True
        seen = (other, str(spec.get("renewTime")))
        if seen != self.seen:
            self.seen, self.since = seen, now
        return now - self.since > max(
            self.lease_seconds, float(spec.get("leaseDurationSeconds") or 0)
        )


class Election:
    """Acquires and renews one controller's Lease until stopped."""

    def __init__(
        self,
        kube: Kube,
        name: str,
        holder: Holder,
        log: Log,
        turn: Callable[[bool], None],
        *,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        """turn: called with True when this process becomes the leader, with False when it stops."""
        self._kube = kube
        self.name = name
        self._holder = holder
        self._log = log
        self._turn = turn
        self._lease_seconds = lease_seconds
        self._standing = LeaseState(holder, lease_seconds)
        self._renewed = 0.0
        self._leading = False
        self._written: Object | None = None
        """The Lease as this process wrote it last: a renewal needn't read it."""
        self._stop = threading.Event()
        self._changing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"lease {name}", daemon=True)
        self._guard = threading.Thread(target=self._watch, name=f"guard {name}", daemon=True)

    @property
    def leading(self) -> bool:
        return self._leading

    def start(self) -> None:
        self._thread.start()
        self._guard.start()

    def alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self, seconds: float = 1.0) -> None:
        """Release the Lease, so that another process need not wait for its expiry."""
        self._stop.set()
        self._thread.join(seconds)
        if self._leading:
            self._set_leading(False)
            self._release()

    def _release(self) -> None:
        try:
            self._write(self._kube.get(LEASE, self.name, names.CLUSTERS_NAMESPACE), held=False)
        except UcpError as error:
            self._log.info("lease not released", lease=self.name, error=error.message)

    def _run(self) -> None:
        scale = self._lease_seconds / LEASE_SECONDS
        while not self._stop.is_set():
            began = time.monotonic()
            pause = RETRY
            try:
                held = self._hold()
            except UcpError as error:
                # A leader continues until _watch stops it.
                self._log.info("lease not renewed", lease=self.name, error=error.message)
            else:
                if held and self._stop.is_set() and not self._leading:
                    self._release()  # acquired after stop() had given up waiting
                    return
                if held:
                    self._renewed = began
                    pause = RENEW
                self._set_leading(held)
            self._stop.wait(pause * scale)

    def _watch(self) -> None:
        """Step down in time, even while a renewal hangs on a silent connection."""
        patience = GIVE_UP * self._lease_seconds / LEASE_SECONDS
        while not self._stop.is_set():
            left = self._renewed + patience - time.monotonic() if self._leading else patience
            if left <= 0:
                self._log.warning("lost leadership: lease not renewed in time", lease=self.name)
                self._set_leading(False)
            self._stop.wait(max(left, 0.02) if self._leading else patience / 4)

    def _hold(self) -> bool:
        """Acquire or renew the Lease; False if another process holds it. Raises KubeError."""
        if self._written and self._renew(self._written):
            return True
        lease = self._kube.find(LEASE, self.name, names.CLUSTERS_NAMESPACE)
        try:
            if lease is None:
                self._written = self._create()
            elif self._standing.may_take(lease, time.monotonic()):
                self._written = self._write(lease, held=True)
            else:
                return False
        except KubeError as error:
            if error.status == 409:
                return False  # another process was faster
            raise
        return True

    def _renew(self, written: Object) -> bool:
        """False if the Lease was changed or deleted since it was written. Raises KubeError."""
        self._written = None
        try:
            self._written = self._write(written, held=True)
        except KubeError as error:
            if error.status not in (404, 409):
                raise
        return self._written is not None

    def _create(self) -> Object:
        spec = {"leaseTransitions": 0, **self._claim(held=True)}
        return self._kube.create(LEASE.object(self.name, names.CLUSTERS_NAMESPACE, spec=spec))

    def _write(self, lease: Object, *, held: bool) -> Object:
        spec = lease.get("spec") or {}
        change = self._claim(held=held)
        if held and spec.get("holderIdentity") != str(self._holder):
            change["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
            change["acquireTime"] = change["renewTime"]
        version = lease["metadata"]["resourceVersion"]
        body = {"metadata": {"resourceVersion": version}, "spec": change}
        return self._kube.patch(LEASE, self.name, names.CLUSTERS_NAMESPACE, body)

    def _claim(self, *, held: bool) -> dict[str, object]:
        return {
            "holderIdentity": str(self._holder) if held else "",
            "leaseDurationSeconds": max(1, round(self._lease_seconds)),
            "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }

    def _set_leading(self, leading: bool) -> None:
        with self._changing:
            if leading != self._leading:
                self._leading = leading
                self._log.info(
                    "became the leader" if leading else "not the leader", lease=self.name
                )
                self._turn(leading)
