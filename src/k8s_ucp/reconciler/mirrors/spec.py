"""Parses Syncers. Pure.

The API server has validated a Syncer already (CEL in its CRD); what it can't check, or what an
older CRD accepted, is reported as a mistake, and the entry is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from k8s_ucp import names
from k8s_ucp.kube import Object

KINDS = {"secret": "Secret", "configmap": "ConfigMap"}
"""Values of the field `kinds`, and their kinds."""


@dataclass(frozen=True)
class Requirement:
    """One of `matchExpressions`."""

    key: str
    operator: str
    """In, NotIn, Exists or DoesNotExist."""
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        return False


@dataclass(frozen=True)
class Selector:
    """A label selector; an empty one matches everything."""

    labels: tuple[tuple[str, str], ...] = ()
    expressions: tuple[Requirement, ...] = ()

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> Selector:
        return cls(
            tuple(sorted((written.get("matchLabels") or {}).items())),
            tuple(
                Requirement(each["key"], each["operator"], frozenset(each.get("values") or ()))
                for each in written.get("matchExpressions") or ()
            ),
        )

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(name) == value for name, value in self.labels) and all(
            each.matches(labels) for each in self.expressions
        )


@dataclass(frozen=True)
class SyncerEntry:
    """One of `spec.data`: which objects are copied where."""

    syncer: str
    """`<namespace>/<name>`."""
    number: int
    kind: str
    namespace: str
    """Namespace of the sources."""
    name: str | None
    selector: Selector | None
    cluster: str | None
    clusters: Selector | None
    target_namespace: str
    """May contain {name}, {namespace}, {cluster}, {environment}, as target_name."""
    target_name: str
    keys: tuple[tuple[str, str], ...] | None
    """(key of the copy, key of the source); None: all keys, unchanged."""
    retain: bool
    """Keep the copy when its source, this entry or the Syncer is deleted."""
    adopt: bool
    """Turn an existing object of that name, created by someone else, into the copy."""

    def takes(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether an object of the right kind and namespace is a source of this entry."""
        if self.selector is not None:
            return self.selector.matches(labels)
        return self.name == name


@dataclass(frozen=True)
class Syncer:
    """A parsed Syncer."""

    key: str
    generation: int
    created: str
    deleting: bool
    entries: tuple[SyncerEntry, ...] = ()
    mistakes: tuple[str, ...] = field(default=())

    @property
    def precedence(self) -> tuple[str, str]:
        """Sort key: if two Syncers declare the same copy, the older one wins."""
        return self.created, self.key


def parse(item: Object, allowed: frozenset[str]) -> Syncer:
    """Parse a Syncer. allowed: namespaces that sources may be in."""
    metadata = item["metadata"]
    key = f"{metadata['namespace']}/{metadata['name']}"
    entries, mistakes = [], []
    for number, written in enumerate((item.get("spec") or {}).get("data") or []):
        try:
            entry = _entry(key, number, written, metadata["namespace"])
        except (KeyError, TypeError, AttributeError, ValueError):
            mistakes.append(f"data[{number}] is not valid; see kubectl explain syncer.spec.data")
            continue
        wrong = _mistake(entry, allowed)
        if wrong:
            mistakes.append(f"data[{number}]: {wrong}")
        else:
            entries.append(entry)
    return Syncer(
        key=key,
        generation=int(metadata.get("generation") or 0),
        created=str(metadata.get("creationTimestamp") or ""),
        deleting=bool(metadata.get("deletionTimestamp")),
        entries=tuple(entries),
        mistakes=tuple(mistakes),
    )


def _entry(syncer: str, number: int, written: Mapping[str, Any], own: str) -> SyncerEntry:
    sources, clusters = written.get("sourceSelector"), written.get("targetSelector")
    keys = written.get("keys")
    return SyncerEntry(
        syncer=syncer,
        number=number,
        kind=KINDS[written.get("kinds", "secret")],
        namespace=written.get("sourceNamespace") or own,
        name=written.get("sourceName"),
        selector=None if sources is None else Selector.of(sources),
        cluster=written.get("targetCluster"),
        clusters=None if clusters is None else Selector.of(clusters),
        target_namespace=written["targetNamespace"],
        target_name=written.get("targetName") or "{name}",
        keys=tuple(sorted(keys.items())) if keys else None,
        retain=written.get("deletionPolicy") == "Retain",
        adopt=written.get("conflictPolicy") == "Adopt",
    )


def _mistake(entry: SyncerEntry, allowed: frozenset[str]) -> str:
    if (entry.name is None) == (entry.selector is None):
        return "exactly one of sourceName and sourceSelector is required"
    if (entry.cluster is None) == (entry.clusters is None):
        return "exactly one of targetCluster and targetSelector is required"
    if entry.namespace not in allowed:
        return (
            f"{entry.kind}s in namespace {entry.namespace} are not mirrored; "
            "reconciler.sourceNamespaces of ucp.yaml allows "
            f"{', '.join(sorted(allowed))}"
        )
    if names.is_closed_to_copies(entry.target_namespace):
        return f"copies in namespace {entry.target_namespace} are not allowed"
    return ""
