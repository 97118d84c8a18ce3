"""The copy of a Secret or ConfigMap on an app cluster, and its ownership annotations.

Only the content as bytes and a digest are kept in memory, since there may be tens of thousands of
copies. Digests never leave this process: that of a short password would reveal it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from k8s_ucp import names
from k8s_ucp.kube import Object
from k8s_ucp.reconciler.access.sources import keep_source
from k8s_ucp.reconciler.mirrors.spec import SyncerEntry

_NEVER = {
    "kubernetes.io/service-account-token": "service account tokens are valid on one cluster only",
    "bootstrap.kubernetes.io/token": "bootstrap tokens are valid on one cluster only",
}


class ObjectRef(NamedTuple):
    """Reference to a copy within its cluster; as text: `<kind>/<namespace>/<name>`."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> ObjectRef:
        return cls(*text.split("/", 2))


@dataclass(frozen=True, slots=True)
class CopySource:
    """A Secret or ConfigMap of the core cluster."""

    kind: str
    namespace: str
    name: str
    version: str
    labels: Mapping[str, str]
    type: str
    immutable: bool
    content: bytes
    """`data` and `binaryData` as JSON."""
    digest: bytes
    barred: str = ""
    """Why it is never mirrored; empty if it may be."""
    shared_with: frozenset[str] = frozenset()
    """Other namespaces whose Syncers may copy it; `*` for all."""

    def may_be_copied_by(self, syncer: str) -> bool:
        """Whether a Syncer, `<namespace>/<name>`, may copy this object.

        The reconciler can read more than the author of a Syncer: permission to create Syncers in
        one namespace must not grant access to Secrets in another. Syncers in the clusters'
        namespace may copy everything, since they come from git.
        """
        namespace = syncer.partition("/")[0]
        return (
            namespace in (self.namespace, names.CLUSTERS_NAMESPACE)
            or namespace in self.shared_with
            or "*" in self.shared_with
        )

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Copy:
    """An object on an app cluster, as far as decisions need it."""

    uid: str
    version: str
    type: str
    immutable: bool
    digest: bytes
    syncer: str
    """`<namespace>/<name>` of the Syncer in its annotation; empty: it isn't ours."""
    source: str
    """`<namespace>/<name>` of the object that it was copied from."""
    retain: bool
    labeled: bool
    """It has the label by which our informers select it."""
    adopted: bool = False
    """Created by someone else: it may be changed, but is never deleted."""

    @property
    def ours(self) -> bool:
        return bool(self.syncer)


class KeyMissing(Exception):
    """The source lacks a key that the entry requires."""


def source_of(item: Object, *, by_name: bool = False) -> CopySource:
    """Reduce an object of the core cluster."""
    metadata = item["metadata"]
    data = _content(item)
    return CopySource(
        kind=sys.intern(item["kind"]),
        namespace=sys.intern(metadata["namespace"]),
        name=metadata["name"],
        version=metadata.get("resourceVersion", ""),
        labels=metadata.get("labels") or _NOTHING,
        type=sys.intern(item.get("type") or ""),
        immutable=bool(item.get("immutable")),
        content=json.dumps(data, separators=(",", ":")).encode(),
        digest=_digest(item.get("type") or "", bool(item.get("immutable")), data),
        barred=_barred(item, by_name),
        shared_with=_shared_with(metadata),
    )


def keep_source_of(item: Object, *, by_name: bool = False) -> Object | None:
    """For an informer: the result of `source_of`, with the metadata that the store needs.

    by_name: see sources.keep_source.
    """
    return {"metadata": _identity(item), "source": source_of(item, by_name=by_name)}


def copy_of(item: Object, cluster: str) -> Copy:
    """Reduce an object of an app cluster."""
    metadata = item["metadata"]
    notes: Mapping[str, str] = metadata.get("annotations") or _NOTHING
    target = f"{cluster}/{metadata['namespace']}/{metadata['name']}"
    # Annotations that were copied along to another object don't make an object ours.
    ours = notes.get(names.MIRROR_PLACE) == target
    return Copy(
        uid=metadata["uid"],
        version=metadata.get("resourceVersion", ""),
        type=sys.intern(item.get("type") or ""),
        immutable=bool(item.get("immutable")),
        digest=_digest(item.get("type") or "", bool(item.get("immutable")), _content(item)),
        syncer=sys.intern(notes.get(names.SYNCER, "")) if ours else "",
        source=sys.intern(notes.get(names.MIRROR_SOURCE, "")) if ours else "",
        retain=notes.get(names.DELETION_POLICY) == "Retain",
        labeled=names.MIRROR in (metadata.get("labels") or _NOTHING),
        adopted=ours and names.ADOPTED in notes,
    )


def keep_copy_of(item: Object, cluster: str) -> Object | None:
    """For an informer: the result of `copy_of`, with the metadata that the store needs."""
    return {"metadata": _identity(item), "copy": copy_of(item, cluster)}


def _identity(item: Object) -> Object:
    """The metadata that a store needs."""
    metadata = item["metadata"]
    return {
        "namespace": sys.intern(metadata["namespace"]),
        "name": metadata["name"],
        "resourceVersion": metadata.get("resourceVersion", ""),
    }


@dataclass(frozen=True, slots=True)
class DesiredContent:
    """Desired content of a copy."""

    type: str
    immutable: bool
    data: Mapping[str, Mapping[str, str]]
    """`data` and, for ConfigMaps, `binaryData`."""
    digest: bytes
    size: int
    """Bytes of the decoded content."""


def desired_content(source: CopySource, entry: SyncerEntry) -> DesiredContent:
    """The content of a source's copy under an entry. Raises KeyMissing."""
    content: dict[str, dict[str, str]] = json.loads(source.content)
    digest = source.digest
    if entry.keys is not None:
        content = _renamed(content, entry, source)
        digest = _digest(source.type, source.immutable, content)
    return DesiredContent(
        source.type, source.immutable, content, digest, _size(source.kind, content)
    )


def desired_digest(source: CopySource, entry: SyncerEntry) -> bytes:
    """Only the digest; empty if a key is missing. Cheap unless the entry selects keys."""
    if entry.keys is None:
        return source.digest
    try:
        return desired_content(source, entry).digest
    except KeyMissing:
        return b""


def _renamed(
    content: Mapping[str, Mapping[str, str]], entry: SyncerEntry, source: CopySource
) -> dict[str, dict[str, str]]:
    renamed: dict[str, dict[str, str]] = {}
    missing = []
    for to, key in entry.keys or ():
        for part, values in content.items():
            if key in values:
                renamed.setdefault(part, {})[to] = values[key]
                break
        else:
            missing.append(key)
    if missing:
        raise KeyMissing(f"{source.kind} {source.namespace}/{source.name} has no {_list(missing)}")
    return renamed


def _barred(item: Object, by_name: bool) -> str:
    notes = item["metadata"].get("annotations") or _NOTHING
    if names.MIRROR_PLACE in notes:
        return (
            f"it is itself a copy, created by Syncer {notes.get(names.SYNCER, '?')} of "
            "another core; mirror the original instead"
        )
    if item["kind"] == "Secret" and keep_source(item, by_name=by_name) is not None:
        return "it is the kubeconfig of a cluster, which is never copied to another cluster"
    return _NEVER.get(item.get("type") or "", "")


def _shared_with(metadata: Mapping[str, Any]) -> frozenset[str]:
    text = (metadata.get("annotations") or _NOTHING).get(names.SYNCER_NAMESPACES, "")
    return frozenset(each.strip() for each in text.split(",")) - {""} if text else _NOBODY


def _content(item: Object) -> dict[str, dict[str, str]]:
    return {part: item[part] for part in ("data", "binaryData") if item.get(part)}


def _digest(type: str, immutable: bool, content: Mapping[str, Any]) -> bytes:
    text = json.dumps([type, immutable, content], sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _size(kind: str, content: Mapping[str, Mapping[str, str]]) -> int:
    total = 0
    for part, values in content.items():
        encoded = kind == "Secret" or part == "binaryData"
        for value in values.values():
            total += len(base64.b64decode(value)) if encoded else len(value.encode())
    return total


def _list(keys: list[str]) -> str:
    return ("key " if len(keys) == 1 else "keys ") + ", ".join(keys)


_NOTHING: Mapping[str, str] = {}
_NOBODY: frozenset[str] = frozenset()
