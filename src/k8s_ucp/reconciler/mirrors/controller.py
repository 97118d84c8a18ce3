"""The mirrors controller: creates, updates and deletes the copies that Syncers declare.

Effects only: index.py computes the desired copies, rules.py decides what one copy needs, and
app_clusters.py does it. A key is a Syncer, `syncer/<namespace>/<name>`, or one of
app_clusters.py's.
"""

from __future__ import annotations

import contextlib
import threading
import time
from functools import partial

from k8s_ucp import names
from k8s_ucp.kube import CONFIG_MAP, SECRET, SYNCER, NotFound, Object
from k8s_ucp.reconciler.controller import Controller, Runtime
from k8s_ucp.reconciler.mirrors.app_clusters import BULK, COPY, WIDTH, Mirrors
from k8s_ucp.reconciler.mirrors.copies import keep_source_of
from k8s_ucp.reconciler.mirrors.deletion_guard import DeletionGuard
from k8s_ucp.reconciler.mirrors.index import Destination, MirrorIndex
from k8s_ucp.reconciler.mirrors.rules import SOURCE_MISSING, CopyProblem
from k8s_ucp.reconciler.mirrors.spec import Syncer, parse
from k8s_ucp.reconciler.mirrors.status import Count, SyncCounters, status_of
from k8s_ucp.reconciler.runtime.conditions import Condition, StatusWriter, find
from k8s_ucp.reconciler.runtime.informer import Informer, WatchSpec
from k8s_ucp.reconciler.runtime.settings import MIRRORS
from k8s_ucp.reconciler.runtime.work_queue import WorkQueue
from k8s_ucp.timestamps import parse_stamp

SETTLE_SECONDS = 0.15
STATUS_SECONDS = 1.0
"""Minimum delay of a status after a change, and minimum interval between two writes of it."""
DELETION_SECONDS = 0.3
ASK_AGAIN_SECONDS = 1.0

_CLUSTERS = "clusters"
_QUIET = ("Copying", "Leaving", "Synced", SOURCE_MISSING, "NoTarget", "Connecting")
"""Reasons that cause no Event."""


class MirrorsController(Controller):
    """Reconciles Syncers and copies, one key at a time; safe to share between threads."""

    name = MIRRORS
    most = 64

    def __init__(self, runtime: Runtime) -> None:
        self.queue = WorkQueue(lane=_lane, width=WIDTH)
        self._runtime = runtime
        settings = runtime.settings
        home = frozenset(settings.source_namespaces) | {names.CLUSTERS_NAMESPACE}
        self._allowed = home | set(settings.mirror_namespaces)
        self._index = MirrorIndex()
        self._counters = SyncCounters(self._dirty)
        self._guard = DeletionGuard(runtime.kube, self._shown, self._index)
        self._status = StatusWriter(runtime.kube, "k8s-ucp-mirrors", runtime.clock)
        self._mirrors = Mirrors(
            runtime, self.queue, self._index, self._counters, self._guard, self._all_dirty
        )
        self._changed_at: dict[str, float] = {}
        """Syncers whose status may be outdated, with the time of the first change."""
        self._written_at: dict[str, float] = {}
        self._primed = False
        self._lock = threading.Lock()
        self._syncers: dict[str, Informer] = {}
        self._watches: list[Informer] = []
        for namespace in sorted(home):
            syncers = runtime.watch(WatchSpec(SYNCER, namespace))
            syncers.listen(self._syncer_changed)
            self._syncers[namespace] = syncers
            self._watches.append(syncers)
        keep = partial(keep_source_of, by_name=runtime.settings.sources_by_name)
        for namespace in sorted(self._allowed):
            for kind in (SECRET, CONFIG_MAP):
                sources = runtime.watch(WatchSpec(kind, namespace, keep=keep))
                sources.listen(self._source_changed)
                self._watches.append(sources)
        runtime.registered_clusters.listen(self._cluster_changed)

    def watches(self) -> list[Informer]:
        return self._watches

    def stop(self) -> None:
        self._mirrors.stop()

    def _syncer_changed(self, before: Object | None, after: Object | None) -> None:
        item = after or before
        assert item is not None
        if before and after and _same_but_status(before, after):
            return
        self.queue.add(f"syncer/{item['metadata']['namespace']}/{item['metadata']['name']}")

    def _source_changed(self, before: Object | None, after: Object | None) -> None:
        source = (after or before or {})["source"]
        for cluster, ref in self._index.set_source(source.key, source if after else None):
            self._mirrors.touch(cluster, ref)

    def _cluster_changed(self, cluster: str) -> None:
        session = self._mirrors.sessions.get(cluster)
        if session:
            session.invalidate()
        self.queue.add(_CLUSTERS)

    def _dirty(self, syncer: str) -> None:
        with self._lock:
            if syncer in self._changed_at:
                return
            self._changed_at[syncer] = time.monotonic()
        self.queue.add(f"syncer/{syncer}")

    def _all_dirty(self) -> None:
        for syncer in self._index.syncers():
            self._dirty(syncer)

    def reconcile(self, key: str) -> float | None:
        """Reconcile one key. Returns the seconds until the next time; None: at the next change."""
        self._prime()
        if key == _CLUSTERS:
            self._mirrors.refresh_clusters()
            return None
        what, _, rest = key.partition("/")
        return self._reconcile_syncer(rest) if what == "syncer" else self._mirrors.reconcile(key)

    def _prime(self) -> None:
        """Load all Syncers before the first copy is reconciled, so that none seems unwanted."""
        with self._lock:
            if self._primed:
                return
            for watch in self._syncers.values():
                for item in watch.store.all():
                    if names.SYNCER_FINALIZER in (item["metadata"].get("finalizers") or []):
                        syncer = parse(item, self._allowed)
                        self._index.set_syncer(syncer.key, syncer)
            self._primed = True
        self._mirrors.refresh_clusters()

    def _reconcile_syncer(self, key: str) -> float | None:
        item = self._shown(key)
        if item is None:
            if self._index.syncer(key) is not None:
                if not self._guard.syncer_is_deleted(key):
                    return ASK_AGAIN_SECONDS
                self._mirrors.line_up(self._index.set_syncer(key, None))
            self._forget(key)
            return None
        syncer = parse(item, self._allowed)
        if syncer.deleting:
            return self._release(item, syncer)
        if names.SYNCER_FINALIZER not in (item["metadata"].get("finalizers") or []):
            item = self._add_finalizer(item)
        changed = self._index.set_syncer(key, syncer)
        if changed:
            self._mirrors.line_up(changed)
        return self._report(item, syncer)

    def _report(self, item: Object, syncer: Syncer) -> float | None:
        now = time.monotonic()
        observed = (item.get("status") or {}).get("observedGeneration")
        if observed == syncer.generation and not syncer.deleting and self._mirrors.settling():
            # Nothing has changed since before the restart; don't report the interim state.
            return STATUS_SECONDS
        with self._lock:
            since = self._changed_at.get(syncer.key, now)
            due = max(since + SETTLE_SECONDS, self._written_at.get(syncer.key, 0) + STATUS_SECONDS)
            if now < due:
                self._changed_at.setdefault(syncer.key, now)
                return due - now
            self._changed_at.pop(syncer.key, None)
        newest = self._status.newest(item)
        status = status_of(newest, syncer, self._targets(syncer), self._runtime.clock)
        (ready,) = status.pop("conditions")
        condition = Condition(ready["type"], ready["status"], ready["reason"], ready["message"])
        before = find(newest, names.READY)
        if self._status.write(item, [condition], status):
            self._written_at[syncer.key] = time.monotonic()
            if (before or {}).get("reason") != condition.reason:
                self._report_condition(item, condition)
        return None

    def _report_condition(self, item: Object, condition: Condition) -> None:
        self._runtime.log.info(
            "mirror",
            syncer=f"{item['metadata']['namespace']}/{item['metadata']['name']}",
            reason=condition.reason,
            why=condition.message,
        )
        if condition.reason not in _QUIET:
            self._runtime.events.record(item, condition.reason, condition.message, warning=True)

    def _targets(
        self, syncer: Syncer
    ) -> dict[str, tuple[Destination | None, Count, CopyProblem | None]]:
        known, unknown = self._index.targets_of(syncer)
        forbidden = self._index.forbidden(syncer.key)
        found: dict[str, tuple[Destination | None, Count, CopyProblem | None]] = {
            each: (None, Count(), _NOT_REGISTERED) for each in unknown
        }
        for name in {*known, *self._counters.clusters(syncer.key)}:
            session = self._mirrors.sessions.get(name)
            away = session.away if session else _NOT_REGISTERED
            count = self._counters.count(syncer.key, name)
            if away is None and name in forbidden and not count.problems:
                away = _not_allowed(forbidden[name])
            found[name] = (known.get(name), count, away)
        return found

    def _add_finalizer(self, item: Object) -> Object:
        metadata = item["metadata"]
        finalizers = [*(metadata.get("finalizers") or []), names.SYNCER_FINALIZER]
        return self._patch_finalizers(item, finalizers)

    def _patch_finalizers(self, item: Object, finalizers: list[str]) -> Object:
        metadata = item["metadata"]
        change = {
            "metadata": {"finalizers": finalizers, "resourceVersion": metadata["resourceVersion"]}
        }
        return self._runtime.kube.patch(SYNCER, metadata["name"], metadata["namespace"], change)

    def _release(self, item: Object, syncer: Syncer) -> float | None:
        """Delete the copies, then remove the finalizer; wait for silent clusters only so long."""
        metadata = item["metadata"]
        if names.SYNCER_FINALIZER not in (metadata.get("finalizers") or []):
            return None
        self._mirrors.line_up(self._index.set_syncer(syncer.key, syncer))
        held, unsure = self._mirrors.release(syncer.key)
        if held or unsure:
            began = parse_stamp(metadata["deletionTimestamp"]) or 0.0
            if self._runtime.clock() - began < self._runtime.settings.mirror_leave_seconds:
                again = self._report(item, syncer)
                return DELETION_SECONDS if again is None else min(again, DELETION_SECONDS)
            self._give_up(item, syncer, unsure)
        kept = [each for each in metadata["finalizers"] if each != names.SYNCER_FINALIZER]
        with contextlib.suppress(NotFound):
            self._patch_finalizers(item, kept)
        self._forget(syncer.key)
        self._runtime.log.info("mirror removed", syncer=syncer.key)
        return None

    def _give_up(self, item: Object, syncer: Syncer, unsure: list[str]) -> None:
        holding = [name for name, each in self._mirrors.sessions.items() if each.held(syncer.key)]
        where = sorted({*unsure, *holding})
        self._mirrors.note_left(syncer.key, where)
        message = (
            f"no longer waiting for {', '.join(where)}; its copies are deleted when it "
            "responds again"
        )
        self._runtime.log.warning(
            "mirror removed before all copies were deleted", syncer=syncer.key, why=message
        )
        self._runtime.events.record(item, "LeftEarly", message, warning=True)

    def _forget(self, key: str) -> None:
        with self._lock:
            self._changed_at.pop(key, None)
            self._written_at.pop(key, None)

    def _shown(self, key: str) -> Object | None:
        watch = self._syncers.get(key.partition("/")[0])
        return watch.store.get(key) if watch else None


_NOT_REGISTERED = CopyProblem("NotRegistered", "no app cluster with this name is registered")


def _not_allowed(namespace: str) -> CopyProblem:
    """A placeholder in the namespace of copies has led to this one."""
    return CopyProblem("NamespaceForbidden", f"copies in namespace {namespace} are not allowed")


def _lane(key: str) -> str:
    """A cluster has a lane for new changes and one for bulk work; other keys have their own."""
    what, _, rest = key.partition("/")
    if what in (COPY, BULK):
        return f"{what}/{rest.partition('/')[0]}"
    return key


def _same_but_status(before: Object, after: Object) -> bool:
    fields = ("generation", "deletionTimestamp", "finalizers", "uid")
    return all(before["metadata"].get(each) == after["metadata"].get(each) for each in fields)
