"""Computes the desired copies from Syncers, sources and app clusters, incrementally.

Pure and in memory. A change of one source affects that source's copies only, however many others
there are.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from k8s_ucp import names
from k8s_ucp.reconciler.mirrors.copies import CopySource
from k8s_ucp.reconciler.mirrors.spec import Syncer, SyncerEntry


@dataclass(frozen=True)
class Destination:
    """A registered app cluster that may get copies."""

    cluster: str
    environment: str
    labels: Mapping[str, str] = field(default_factory=dict)


class DesiredCopy(NamedTuple):
    """A copy that an entry declares; its source may be missing."""

    entry: SyncerEntry
    source: str
    """`<kind>/<namespace>/<name>`."""


CopyKey = tuple[str, str]
"""(cluster, reference) of one copy."""


class MirrorIndex:
    """Safe to share between threads. Every setter returns the keys of copies to sync again."""

    def __init__(self) -> None:
        self._syncers: dict[str, Syncer] = {}
        self._targets: dict[str, Destination] = {}
        self._sources: dict[str, CopySource] = {}
        self._named: dict[str, list[SyncerEntry]] = {}
        """Entries with a source name, by source."""
        self._selecting: dict[tuple[str, str], list[SyncerEntry]] = {}
        """Entries with a selector, by kind and namespace."""
        self._copy_keys: dict[str, dict[CopyKey, tuple[SyncerEntry, ...]]] = {}
        """Desired copies by source, with the entries that declare them."""
        self._desired: dict[str, dict[str, tuple[DesiredCopy, ...]]] = defaultdict(dict)
        """By cluster and reference, the one with precedence first."""
        self._fields: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        """Number of desired copies per (namespace, kind), by cluster."""
        self._forbidden: dict[str, dict[tuple[str, str], str]] = {}
        """Forbidden namespaces of copies, by source: (cluster, Syncer) -> namespace."""
        self._lock = threading.RLock()

    def set_source(self, key: str, source: CopySource | None) -> set[CopyKey]:
        """A source was added, changed or deleted."""
        with self._lock:
            if source is None:
                self._sources.pop(key, None)
            else:
                self._sources[key] = source
            return self._replan(key) | set(self._copy_keys.get(key, ()))

    def set_syncer(self, key: str, syncer: Syncer | None) -> set[CopyKey]:
        """A Syncer was added, changed or deleted; one that is being deleted declares nothing."""
        with self._lock:
            before = self._syncers.pop(key, None)
            if syncer is not None and not syncer.deleting:
                self._syncers[key] = syncer
            after = self._syncers.get(key)
            if before == after:
                return set()
            self._index()
            entries = {*(before.entries if before else ()), *(after.entries if after else ())}
            return self._replan_all(self._touched(entries))

    def set_targets(self, targets: Iterable[Destination]) -> set[CopyKey]:
        """Set all app clusters that may get copies."""
        with self._lock:
            found = {each.cluster: each for each in targets}
            if found == self._targets:
                return set()
            self._targets = found
            return self._replan_all({*self._named, *self._copy_keys, *self._sources})

    def desired_copies(self, cluster: str, ref: str) -> tuple[DesiredCopy, ...]:
        """The desired copies with a reference, the one with precedence first.

        Those with an existing source that they may copy precede the others.
        """
        with self._lock:
            found = self._desired[cluster].get(ref, ()) if cluster in self._desired else ()
            if len(found) > 1:
                return tuple(sorted(found, key=lambda each: not self._can_be_had(each)))
            return found

    def _can_be_had(self, desired: DesiredCopy) -> bool:
        source = self._sources.get(desired.source)
        return source is not None and source.may_be_copied_by(desired.entry.syncer)

    def source(self, key: str) -> CopySource | None:
        with self._lock:
            return self._sources.get(key)

    def syncer(self, key: str) -> Syncer | None:
        """None also if it is being deleted."""
        with self._lock:
            return self._syncers.get(key)

    def namespaces(self, cluster: str) -> dict[str, set[str]]:
        """{namespace: kinds} with desired copies."""
        found: dict[str, set[str]] = {}
        with self._lock:
            for namespace, kind in self._fields.get(cluster, ()):
                found.setdefault(namespace, set()).add(kind)
        return found

    def refs(self, cluster: str, namespace: str, kind: str) -> list[str]:
        """Places of desired copies of one kind in one namespace."""
        prefix = f"{kind}/{namespace}/"
        with self._lock:
            return [each for each in self._desired.get(cluster, ()) if each.startswith(prefix)]

    def is_desired_by(self, source: CopySource, syncer: str, copy_key: CopyKey) -> bool:
        """Whether this Syncer declares a copy of the source for this key."""
        with self._lock:
            return any(each.syncer == syncer for each in self._copies_of(source).get(copy_key, ()))

    def syncers(self) -> list[str]:
        """Keys of all Syncers that aren't being deleted."""
        with self._lock:
            return list(self._syncers)

    def targets_of(self, syncer: Syncer) -> tuple[dict[str, Destination], list[str]]:
        """(its clusters by name, names in it that no registered cluster has)"""
        with self._lock:
            found: dict[str, Destination] = {}
            unknown = []
            for entry in syncer.entries:
                targets = list(self._targets_of(entry))
                found.update({each.cluster: each for each in targets})
                if entry.cluster and not targets:
                    unknown.append(entry.cluster)
            return found, sorted(set(unknown))

    def forbidden(self, syncer: str) -> dict[str, str]:
        """Clusters in which a Syncer's copy would be in a forbidden namespace, with its name."""
        with self._lock:
            return {
                cluster: namespace
                for each in self._forbidden.values()
                for (cluster, who), namespace in each.items()
                if who == syncer
            }

    def _index(self) -> None:
        self._named, self._selecting = {}, {}
        for syncer in sorted(self._syncers.values(), key=lambda each: each.precedence):
            for entry in syncer.entries:
                if entry.name is not None:
                    key = f"{entry.kind}/{entry.namespace}/{entry.name}"
                    self._named.setdefault(key, []).append(entry)
                else:
                    field = (entry.kind, entry.namespace)
                    self._selecting.setdefault(field, []).append(entry)

    def _touched(self, entries: Iterable[SyncerEntry]) -> set[str]:
        """Keys of the sources that entries may refer to."""
        keys = set()
        selecting = set()
        for entry in entries:
            if entry.name is not None:
                keys.add(f"{entry.kind}/{entry.namespace}/{entry.name}")
            else:
                selecting.add((entry.kind, entry.namespace))
        if selecting:
            keys |= {
                key
                for key, each in self._sources.items()
                if (each.kind, each.namespace) in selecting
            }
            keys |= {key for key in self._copy_keys if tuple(key.split("/", 2)[:2]) in selecting}
        return keys

    def _replan_all(self, keys: Iterable[str]) -> set[CopyKey]:
        changed: set[CopyKey] = set()
        for key in keys:
            changed |= self._replan(key)
        return changed

    def _replan(self, key: str) -> set[CopyKey]:
        """Update the desired copies of one source; returns the keys of those that changed."""
        source = self._sources.get(key)
        if source is not None:
            now = self._copies_of(source)
        else:
            now = self._by_copy_key(key, self._named.get(key, ()))
        before = self._copy_keys.get(key, {})
        if now == before:
            return set()
        if now:
            self._copy_keys[key] = now
        else:
            self._copy_keys.pop(key, None)
        changed = {
            copy_key for copy_key in {*before, *now} if before.get(copy_key) != now.get(copy_key)
        }
        for cluster, ref in changed:
            desired_copies = [
                each for each in self._desired[cluster].get(ref, ()) if each.source != key
            ] + [DesiredCopy(entry, key) for entry in now.get((cluster, ref), ())]
            kind, namespace, _ = ref.split("/", 2)
            fields = self._fields[cluster]
            if desired_copies:
                if ref not in self._desired[cluster]:
                    fields[namespace, kind] += 1
                self._desired[cluster][ref] = tuple(sorted(desired_copies, key=self._rank))
            elif self._desired[cluster].pop(ref, None):
                fields[namespace, kind] -= 1
                if not fields[namespace, kind]:
                    del fields[namespace, kind]
        return changed

    def _rank(self, desired: DesiredCopy) -> tuple[tuple[str, str], int, str]:
        syncer = self._syncers.get(desired.entry.syncer)
        # During an update of the index a desired copy may be about to be dropped: it comes last.
        precedence = syncer.precedence if syncer else ("~", "")
        return precedence, desired.entry.number, desired.source

    def _copies_of(self, source: CopySource) -> dict[CopyKey, tuple[SyncerEntry, ...]]:
        entries = [
            *self._named.get(source.key, ()),
            *(
                each
                for each in self._selecting.get((source.kind, source.namespace), ())
                if not source.barred and each.takes(source.labels, source.name)
            ),
        ]
        return self._by_copy_key(source.key, entries)

    def _by_copy_key(
        self, key: str, entries: Iterable[SyncerEntry]
    ) -> dict[CopyKey, tuple[SyncerEntry, ...]]:
        found: dict[CopyKey, tuple[SyncerEntry, ...]] = {}
        forbidden: dict[tuple[str, str], str] = {}
        for entry in entries:
            for target in self._targets_of(entry):
                ref = ref_of(entry, key, target)
                namespace = ref.split("/", 2)[1]
                if names.is_closed_to_copies(namespace):
                    forbidden[target.cluster, entry.syncer] = namespace
                    continue
                copy_key = (target.cluster, ref)
                found[copy_key] = (*found.get(copy_key, ()), entry)
        self._forbidden.pop(key, None)
        if forbidden:
            self._forbidden[key] = forbidden
        return found

    def _targets_of(self, entry: SyncerEntry) -> Iterator[Destination]:
        if entry.clusters is None:
            target = self._targets.get(entry.cluster or "")
            if target is not None:
                yield target
            return
        for target in self._targets.values():
            if entry.clusters.matches(target.labels):
                yield target


def ref_of(entry: SyncerEntry, source: str, target: Destination) -> str:
    """Place of a source's copy in a cluster, even if its namespace is forbidden."""
    kind, namespace, name = source.split("/", 2)

    def filled(text: str) -> str:
        if "{" not in text:
            return text
        return (
            text.replace("{name}", name)
            .replace("{namespace}", namespace)
            .replace("{cluster}", target.cluster)
            .replace("{environment}", target.environment)
        )

    return sys.intern(f"{kind}/{filled(entry.target_namespace)}/{filled(entry.target_name)}")
