"""The mirrors' work on app clusters: a session per cluster, with new changes before bulk work."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable

from k8s_ucp.kube import KubeError, Unauthorized, Unreachable
from k8s_ucp.reconciler.controller import Runtime
from k8s_ucp.reconciler.mirrors.bulk_queue import BulkQueue
from k8s_ucp.reconciler.mirrors.copy_sync import Copier
from k8s_ucp.reconciler.mirrors.deletion_guard import DeletionGuard
from k8s_ucp.reconciler.mirrors.index import CopyKey, Destination, MirrorIndex
from k8s_ucp.reconciler.mirrors.session import CONNECTING, Session
from k8s_ucp.reconciler.mirrors.status import SyncCounters
from k8s_ucp.reconciler.runtime.work_queue import WorkQueue

WIDTH = 4
"""Threads on one cluster's bulk work, and as many on its new changes."""
BUSY_SECONDS = 0.05
SETTLING_SECONDS = 10.0

COPY, BULK, CLUSTER = "copy", "bulk", "cluster"


class Mirrors:
    """Reconciles copies on all app clusters. Safe to share between threads.

    Keys: `copy/<cluster>/<ref>`, `bulk/<cluster>/<number>`, `cluster/<cluster>`.
    """

    def __init__(
        self,
        runtime: Runtime,
        queue: WorkQueue,
        index: MirrorIndex,
        counters: SyncCounters,
        guard: DeletionGuard,
        unsettled: Callable[[], None],
    ) -> None:
        """unsettled: updates all statuses; called if a cluster is added, removed, lost or back."""
        self._runtime = runtime
        self._queue = queue
        self._index = index
        self._counters = counters
        self._guard = guard
        self._unsettled = unsettled
        self._copier = Copier(index, counters, guard, runtime.log)
        self._lines = BulkQueue()
        self._later: dict[str, float] = {}
        """Keys of copies, with the times before which they are not reconciled again."""
        self._warned: set[tuple[str, str]] = set()
        self._notes = threading.Lock()
        self._noted: set[str] = set()
        """Clusters that still have copies of Syncers which were deleted before their copies."""
        self.sessions: dict[str, Session] = {}

    def touch(self, cluster: str, ref: str) -> None:
        """Queue one copy after a change. Called by informers: must not block."""
        session = self.sessions.get(cluster)
        if session and not self._copier.settled(session, ref):
            key = f"{COPY}/{cluster}/{ref}"
            self._later.pop(key, None)
            self._queue.add(key)

    def line_up(self, copy_keys: Iterable[CopyKey]) -> None:
        """Queue many copies as bulk work, after their clusters, which may need new rights."""
        by_cluster: dict[str, list[str]] = defaultdict(list)
        for cluster, ref in copy_keys:
            by_cluster[cluster].append(ref)
        for cluster, refs in by_cluster.items():
            self._lines.add(cluster, refs)
            self._queue.add(f"{CLUSTER}/{cluster}")
            for number in range(min(WIDTH, len(refs))):
                self._queue.add(f"{BULK}/{cluster}/{number}")

    def refresh_clusters(self) -> None:
        """Update sessions and destinations to the currently registered clusters."""
        targets = {each.cluster: each for each in self._runtime.registered_clusters.all()}
        for name in self.sessions.keys() - targets.keys():
            self.sessions.pop(name).stop()
            self._lines.forget(name)
            self._counters.forget(name)
            self._copier.forget(name)
            for key in [each for each in self._later.copy() if each.split("/", 2)[1] == name]:
                self._later.pop(key, None)
            self._warned = {each for each in self._warned if each[0] != name}
        for name in targets.keys() - self.sessions.keys():
            self.sessions[name] = Session(name, self._runtime, self.touch)
        self.line_up(
            self._index.set_targets(
                Destination(each.cluster, each.environment or "", each.labels)
                for each in targets.values()
                if not each.draining
            )
        )
        for name in targets:
            self._queue.add(f"{CLUSTER}/{name}")
        self._unsettled()

    def reconcile(self, key: str) -> float | None:
        """See workers.Reconcile."""
        what, cluster, *rest = key.split("/", 2)
        session = self.sessions.get(cluster)
        if session is None:
            return None
        if what == CLUSTER:
            return self._reconcile_session(session)
        if what == BULK:
            return self._take_bulk(session)
        return self._fresh(session, key, rest[0])

    def _fresh(self, session: Session, key: str, ref: str) -> float | None:
        wait = self._later.get(key, 0.0) - time.monotonic()
        if wait > 0:
            return wait
        self._later.pop(key, None)
        return self._one(session, ref)

    def _take_bulk(self, session: Session) -> float | None:
        batch = self._lines.take(session.cluster)
        try:
            while batch:
                ref = batch.pop(0)
                again = self._one(session, ref)
                if again is not None:
                    key = f"{COPY}/{session.cluster}/{ref}"
                    self._later[key] = time.monotonic() + again
                    self._queue.add(key)
        finally:
            if batch:
                # One failed by a bug: the others must not be lost with it.
                self._lines.add(session.cluster, batch)
        return 0.0 if self._lines.length(session.cluster) else None

    def _one(self, session: Session, ref: str) -> float | None:
        if session.away is not None and session.defer(ref):
            return None
        if not self._lines.try_acquire(session.cluster, ref):
            return BUSY_SECONDS
        try:
            again = self._copier.reconcile(session, ref)
        except (Unreachable, Unauthorized) as error:
            session.lost(error)
            session.defer(ref)
            self._unsettled()
            again = None
        finally:
            self._lines.release(session.cluster, ref)
        if session.needs_resync:
            self._queue.add(f"{CLUSTER}/{session.cluster}")
        return again

    def _reconcile_session(self, session: Session) -> float:
        cluster, before = session.cluster, session.away
        fresh, again = session.reconcile(self._index.namespaces(cluster))
        for field in fresh:
            refs = {*self._index.refs(cluster, *field), *session.refs(field)}
            self.line_up((cluster, each) for each in refs)
        if session.away is None and before is not None:
            self._resume(session)
        if session.away != before:
            self._unsettled()
        if session.complete and (fresh or before is not None or cluster in self._noted):
            try:
                self._see_to_what_is_left(session)
            except KubeError as error:
                self._runtime.log.warning("the remaining copies are unknown", error=error.message)
                return 1.0
        return again

    def _resume(self, session: Session) -> None:
        self.line_up((session.cluster, each) for each in session.take_deferred())

    def _see_to_what_is_left(self, session: Session) -> None:
        """Handle copies of Syncers that were deleted while the cluster was away, or vanished."""
        cluster = session.cluster
        known = set(self._index.syncers())
        with self._notes:
            left = self._guard.left(cluster)
            done = {each for each in left if each in known or not session.held(each)}
            if done:
                self._guard.note_left(cluster, left - done)
            if left - done:
                self._noted.add(cluster)
            else:
                self._noted.discard(cluster)
        for syncer in session.holders() - known - left:
            if (cluster, syncer) not in self._warned and self._guard.syncer_is_deleted(syncer):
                self._warned.add((cluster, syncer))
                self._runtime.log.warning(
                    "copies of a deleted Syncer are kept",
                    cluster=cluster,
                    syncer=syncer,
                    copies=len(session.held(syncer)),
                )

    def release(self, syncer: str) -> tuple[int, list[str]]:
        """Queue the copies of a Syncer being deleted for deletion.

        Returns (copies still held, clusters of which the copies aren't fully known).
        """
        held, unsure = 0, []
        for session in list(self.sessions.values()):
            refs = session.held(syncer)
            held += len(refs)
            if not session.complete:
                unsure.append(session.cluster)
            elif refs:
                self.line_up((session.cluster, each) for each in refs)
        return held, sorted(unsure)

    def note_left(self, syncer: str, clusters: list[str]) -> None:
        """Record that the Syncer's copies in these clusters still have to be deleted."""
        with self._notes:
            for cluster in clusters:
                self._guard.note_left(cluster, self._guard.left(cluster) | {syncer})
                self._noted.add(cluster)

    def settling(self) -> bool:
        """Whether a cluster is new and still being compared, so that its status is premature."""
        now = time.monotonic()
        return any(
            now - each.began < SETTLING_SECONDS
            and (
                (each.away is not None and each.away.reason == CONNECTING)
                or self._lines.length(each.cluster)
            )
            for each in list(self.sessions.values())
        )

    def stop(self) -> None:
        for session in list(self.sessions.values()):
            session.stop()
