"""The mirrors' session with one app cluster: rights, informers of copies, reachability."""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable

from k8s_ucp import names
from k8s_ucp.kube import Forbidden, Kube, KubeError, Object, Unauthorized
from k8s_ucp.reconciler.access.authenticators.base import NoAccess
from k8s_ucp.reconciler.controller import Runtime
from k8s_ucp.reconciler.mirrors import copies
from k8s_ucp.reconciler.mirrors import rights as mirror_rights
from k8s_ucp.reconciler.mirrors.copies import Copy, ObjectRef
from k8s_ucp.reconciler.mirrors.rules import CopyProblem
from k8s_ucp.reconciler.mirrors.writes import KINDS, Writer
from k8s_ucp.reconciler.runtime.informer import Informer, WatchSpec
from k8s_ucp.reconciler.runtime.work_queue import BackOff

Changed = Callable[[str, str], None]
"""Called with (cluster, reference) when a copy changed. Must not block."""

TICK_SECONDS = 2.0
"""Interval of reconciliations while nothing changes; they send no requests."""
_POLL_SECONDS = 0.05
_AGAIN = BackOff(start=0.5, cap=2.0)
_ALIVE_SECONDS = 3.0
_GRANT_AGAIN_SECONDS = 10.0
"""Interval of granting rights again where the cluster denies them."""

CONNECTING = "Connecting"

Field = tuple[str, str]
"""(namespace, kind): one informer."""


class Session:
    """Safe to share between threads; one at a time calls `reconcile`."""

    def __init__(self, cluster: str, runtime: Runtime, changed: Changed) -> None:
        self.cluster = cluster
        self.away: CopyProblem | None = CopyProblem(CONNECTING, "not connected yet")
        """Why the cluster can't be written to now; None: it is responding."""
        self.began = time.monotonic()
        self._runtime = runtime
        self._changed = changed
        self._kube: Kube | None = None
        self._watches: dict[Field, Informer] = {}
        self._ready: set[Field] = set()
        self._refused: dict[str, str] = {}
        """Namespaces in which rights were refused, and why."""
        self._denied: dict[Field, str] = {}
        """Fields that can't be watched although rights were granted: something revokes them."""
        self._grant_again_at = 0.0
        self._granted: mirror_rights.Fields = {}
        self._held: dict[str, set[str]] = defaultdict(set)
        """Places of each Syncer's copies."""
        self._deferred: deque[str] = deque()
        self._failures = 0
        self._needs_resync = True
        """Rights and connection have to be checked before anything else."""
        self._lock = threading.Lock()

    @property
    def complete(self) -> bool:
        """Whether all of our copies in the cluster are known."""
        return self.away is None and bool(self._kube) and set(self._watches) == self._ready

    def ready(self, ref: ObjectRef) -> bool:
        return (ref.namespace, ref.kind) in self._ready

    @property
    def needs_resync(self) -> bool:
        """Whether `reconcile` should be called soon."""
        return self._needs_resync

    def refusal(self, ref: ObjectRef) -> str | None:
        """Why the identity has no rights there; None if it has."""
        return self._refused.get(ref.namespace) or self._denied.get((ref.namespace, ref.kind))

    def found(self, ref: ObjectRef) -> Copy | None:
        """The labeled object with this reference, from the informer."""
        watch = self._watches.get((ref.namespace, ref.kind))
        item = watch.store.get(f"{ref.namespace}/{ref.name}") if watch else None
        return item["copy"] if item else None

    def held(self, syncer: str) -> list[str]:
        """Places of a Syncer's copies."""
        with self._lock:
            return sorted(self._held.get(syncer, ()))

    def holders(self) -> set[str]:
        """Syncers with copies in the cluster."""
        with self._lock:
            return {syncer for syncer, refs in self._held.items() if refs}

    def refs(self, field: Field) -> list[str]:
        """Places of all objects with our label."""
        watch = self._watches.get(field)
        found = watch.store.identifiers() if watch else ()
        return [f"{field[1]}/{each}" for each in found]

    def writer(self) -> Writer:
        assert self._kube is not None, "called after connecting"
        return Writer(self._kube, self.cluster, self._runtime.settings.topology)

    def watches(self) -> list[Informer]:
        return list(self._watches.values())

    def lost(self, error: KubeError) -> None:
        """The cluster did not respond, or rejected the identity."""
        if isinstance(error, Unauthorized | Forbidden):
            problem = CopyProblem("AccessDenied", "the cluster rejected the mirror identity")
        else:
            problem = CopyProblem("Unreachable", "the cluster is not responding")
        if self.away is None:
            self._runtime.log.warning(
                "mirror target lost", cluster=self.cluster, error=error.message
            )
        self.away = problem
        self._needs_resync = True

    def defer(self, ref: str) -> bool:
        """Postpone a copy until the cluster responds again; False if it already does."""
        with self._lock:
            if self.away is None:
                return False
            self._deferred.append(ref)
            return True

    def take_deferred(self) -> list[str]:
        with self._lock:
            deferred, self._deferred = list(self._deferred), deque()
        return deferred

    def invalidate(self) -> None:
        """Its address, its credentials or our rights may have changed."""
        self._needs_resync = True

    def reconcile(self, desired: mirror_rights.Fields) -> tuple[list[Field], float]:
        """Update rights and informers to the desired fields.

        Returns the fields that became ready or denied, and the seconds until the next call.
        """
        try:
            fresh = self._reconcile(desired)
        except (NoAccess, KubeError) as error:
            self._failures += 1
            if isinstance(error, KubeError):
                self.lost(error)
            else:
                self.away = CopyProblem(error.reason, error.message)
            return [], _AGAIN.delay(self._failures, 0.5)
        self._failures = 0
        return fresh, _POLL_SECONDS if self._unready() else TICK_SECONDS

    def _unready(self) -> set[Field]:
        return self._watches.keys() - self._ready - self._denied.keys()

    def _reconcile(self, desired: mirror_rights.Fields) -> list[Field]:
        kube = (
            self._runtime.registered_clusters.connect(self.cluster)
            if self._needs_resync
            else self._kube
        )
        assert kube is not None
        if kube is not self._kube:
            self._drop_watches()
            self._kube = kube
        if self._denied and time.monotonic() >= self._grant_again_at:
            self._needs_resync = True
        missing = any(kinds - self._granted.get(each, set()) for each, kinds in desired.items())
        if self._needs_resync or missing:
            with self._runtime.registered_clusters.administer(self.cluster) as admin:
                self._granted, self._refused = mirror_rights.grant_all(admin, desired)
            self._needs_resync = False
            self._grant_again_at = time.monotonic() + _GRANT_AGAIN_SECONDS
        for namespace, kinds in self._granted.items():
            for kind in kinds:
                self._watch((namespace, kind))
        denied = self._check_silence()
        fresh = [each for each in self._unready() if self._watches[each].synced.is_set()]
        self._ready.update(fresh)
        if not self._unready():
            if self.away is not None:
                self._runtime.log.info("mirror target is responding", cluster=self.cluster)
            with self._lock:
                self.away = None
            self._withdraw(desired)
        return [*fresh, *denied]

    def _check_silence(self) -> list[Field]:
        """If an informer is silent, send a request, to detect an outage.

        Returns fields that are now denied: whoever revokes the rights in one namespace must not
        stop the others. Raises KubeError.
        """
        limit = self._runtime.settings.watch_seconds + 4
        silent = {each for each, watch in self._watches.items() if watch.silence() > limit}
        for field in self._denied.keys() - silent:
            del self._denied[field]
        denied: list[Field] = []
        asked = silent or (set(list(self._watches)[:1]) if self.away is not None else set())
        # At most one that is known to be denied, since that is a response, too.
        for field in sorted(asked, key=self._denied.__contains__):
            try:
                self._ask(field)
            except Forbidden as error:
                if field in self._denied or field not in silent:
                    break
                self._deny(field, error)
                denied.append(field)
            else:
                break
        return denied

    def _ask(self, field: Field) -> None:
        assert self._kube is not None, "called after connecting"
        namespace, kind = field
        query = {"limit": "1", "labelSelector": f"{names.MIRROR}=none"}
        self._kube.request("GET", KINDS[kind].path(namespace), query=query, timeout=_ALIVE_SECONDS)

    def _deny(self, field: Field, error: Forbidden) -> None:
        self._denied[field] = f"the rights of the mirror identity were revoked: {error.message}"
        self._ready.discard(field)
        self._grant_again_at = 0.0
        self._runtime.log.warning(
            "mirror target denied",
            cluster=self.cluster,
            namespace=field[0],
            kind=field[1],
            error=error.message,
        )

    def _watch(self, field: Field) -> None:
        if field in self._watches:
            return
        namespace, kind = field
        watch = self._runtime.watch(
            WatchSpec(
                KINDS[kind],
                namespace,
                labels=f"{names.MIRROR}={self._runtime.settings.topology}",
                keep=lambda item: copies.keep_copy_of(item, self.cluster),
            ),
            on=self._kube,
            where=self.cluster,
        )

        def touched(before: Object | None, after: Object | None) -> None:
            item = after or before
            assert item is not None
            metadata = item["metadata"]
            ref = f"{kind}/{metadata['namespace']}/{metadata['name']}"
            self._hold(ref, before, after)
            if field in self._ready:
                self._changed(self.cluster, ref)

        watch.listen(touched)
        self._watches[field] = watch
        watch.start()

    def _hold(self, ref: str, before: Object | None, after: Object | None) -> None:
        was, now = (each["copy"].syncer if each else "" for each in (before, after))
        if was == now:
            return
        with self._lock:
            if was:
                self._held[was].discard(ref)
            if now:
                self._held[now].add(ref)

    def _withdraw(self, desired: mirror_rights.Fields) -> None:
        """Revoke rights where no copy is desired and none of ours is left."""
        for namespace, kinds in list(self._granted.items()):
            spare = {
                kind
                for kind in kinds - desired.get(namespace, set())
                if (namespace, kind) in self._ready and not self._holds((namespace, kind))
            }
            if not spare:
                continue
            with self._runtime.registered_clusters.administer(self.cluster) as admin:
                mirror_rights.withdraw(admin, namespace, kinds - spare)
            self._granted[namespace] = kinds - spare
            if not self._granted[namespace]:
                del self._granted[namespace]
            for kind in spare:
                self._watches.pop((namespace, kind)).stop()
                self._ready.discard((namespace, kind))

    def _holds(self, field: Field) -> bool:
        return any(item["copy"].ours for item in self._watches[field].store.all())

    def _drop_watches(self) -> None:
        # Swapped before iterating, since stop() may run while another thread adds informers.
        watches, self._watches, self._ready, self._denied = self._watches, {}, set(), {}
        for watch in list(watches.values()):
            watch.stop()
        with self._lock:
            self._held.clear()

    def stop(self) -> None:
        """Stop all informers; the cluster is left unchanged."""
        self._drop_watches()
