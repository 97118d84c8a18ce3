"""Reads everything that an API server stores and serves, for a later comparison."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any

from k8s_ucp.kube import (
    CRD,
    Kind,
    Kube,
    KubeError,
    NotFound,
    Object,
    Unreachable,
    annotations_of,
    api_groups,
    api_resources,
    labels_of,
    namespaced_name,
)

WORKERS = 2
_FLEETING = {"events", "events.events.k8s.io", "leases.coordination.k8s.io", "componentstatuses"}
_AUTOMATIC_KINDS = {
    "apiservices.apiregistration.k8s.io",
    "endpoints",
    "endpointslices.discovery.k8s.io",
}
_WORKLOADS = {"v1", "apps", "batch"}
"""API groups of the kinds whose controllers are part of Kubernetes."""
_JOINING = "bootstrap.kubernetes.io/token"
"""Type of a temporary Secret with which a node joins."""
_STORED = "storedVersions"
_AUTOMATIC_LABEL = "kubernetes.io/bootstrapping"
_AUTOMATIC_ANNOTATION = "apf.kubernetes.io/autoupdate-spec"
_AUTOMATIC_NAMES = {"kube-root-ca.crt", "extension-apiserver-authentication"}
"""ConfigMaps with the CA of the API server; a copy has its own."""


@dataclass(frozen=True)
class Item:
    """One object: its UID, and what people wrote into it."""

    uid: str
    packed: bytes
    automatic: bool
    """Kubernetes writes it itself, maybe differently in a newer version."""
    fleeting: bool = False
    """Kubernetes' own controllers, which run on a copy, too, may delete it at any time."""

    @property
    def content(self) -> dict[str, Any]:
        """Everything but metadata, status, and the version in which it was read."""
        found: dict[str, Any] = json.loads(zlib.decompress(self.packed))
        return found


@dataclass(frozen=True)
class ClusterInventory:
    """Kinds are named `<plural>.<group>`, objects `<kind> <namespace>/<name>`."""

    versions: Mapping[str, tuple[str, ...]]
    """Kind -> served versions, the preferred one first."""
    items: Mapping[str, Item]
    counts: Mapping[str, int]
    """Kind -> number of objects, if there are any."""
    stored: Mapping[str, tuple[str, ...]]
    """CRD -> versions in which its objects may be stored."""
    unreadable: Mapping[str, str]
    """Kind -> why its objects can't be listed."""


def read_inventory(kube: Kube, asked: Mapping[str, str] | None = None) -> ClusterInventory:
    """Read an inventory. Raises KubeError.

    asked: versions by kind in which to read objects, if they are served, so that two inventories
    can be compared.
    """
    served = _served(kube)
    kinds = {}
    for name, versions in served.items():
        version = (asked or {}).get(name, "")
        kinds[name] = versions.get(version) or next(iter(versions.values()))
    items: dict[str, Item] = {}
    counts: dict[str, int] = {}
    stored: dict[str, tuple[str, ...]] = {}
    listed = [name for name in kinds if name not in _FLEETING]
    unreadable: dict[str, str] = {}
    with ThreadPoolExecutor(WORKERS, "inventory") as pool:
        for name, found in pool.map(lambda name: (name, _items(kube, name, kinds[name])), listed):
            if isinstance(found, str):
                unreadable[name] = found
            elif found:
                counts[name] = len(found)
                items |= found
    for each in kube.list_all(CRD):
        stored[each["metadata"]["name"]] = tuple((each.get("status") or {}).get(_STORED) or ())
    version_names = {name: tuple(versions) for name, versions in served.items()}
    return ClusterInventory(version_names, items, counts, stored, unreadable)


def served_versions(kube: Kube) -> dict[str, tuple[str, ...]]:
    """Kind -> served versions. Raises KubeError."""
    return {name: tuple(found) for name, found in _served(kube).items()}


def read_versions(before: ClusterInventory) -> dict[str, str]:
    """The versions in which an inventory was read, for the next one."""
    return {name: versions[0] for name, versions in before.versions.items()}


def _served(kube: Kube) -> dict[str, dict[str, Kind]]:
    """Kind -> version -> its path, of kinds whose objects can be listed."""
    found: dict[str, dict[str, Kind]] = {}
    for version in ("v1", *chain.from_iterable(api_groups(kube).values())):
        for each in api_resources(kube, version):
            if "list" in each.verbs:
                name = ".".join(filter(None, (each.kind.plural, each.kind.group)))
                found.setdefault(name, {})[version.rpartition("/")[2]] = each.kind
    return found


def _items(kube: Kube, name: str, kind: Kind) -> dict[str, Item] | str:
    try:
        listed = kube.list_all(kind)
    except NotFound:  # Removed since it was discovered.
        return {}
    except Unreachable:
        raise
    except KubeError as error:
        # Such as a failing conversion webhook.
        return error.message
    return {f"{name} {namespaced_name(each)}": _item(name, each) for each in listed}


def _item(kind: str, item: Object) -> Item:
    left_out = ("apiVersion", "kind", "metadata", "status")
    content = {name: value for name, value in item.items() if name not in left_out}
    metadata = item["metadata"]
    automatic = (
        kind in _AUTOMATIC_KINDS
        or _AUTOMATIC_LABEL in labels_of(item)
        or annotations_of(item).get(_AUTOMATIC_ANNOTATION) == "true"
        or (kind == "configmaps" and metadata["name"] in _AUTOMATIC_NAMES)
    )
    packed = zlib.compress(json.dumps(content, sort_keys=True).encode(), 1)
    return Item(metadata["uid"], packed, automatic, is_fleeting(kind, item))


def is_fleeting(kind: str, item: Object) -> bool:
    """Whether Kubernetes' own controllers delete it: it is temporary, or they created it."""
    metadata = item["metadata"]
    owners = metadata.get("ownerReferences") or ()
    return (
        bool(metadata.get("deletionTimestamp"))
        or kind == "pods"
        or any(each.get("controller") and _is_built_in(each) for each in owners)
        or (kind == "jobs.batch" and "ttlSecondsAfterFinished" in (item.get("spec") or {}))
        or (kind == "secrets" and item.get("type") == _JOINING)
    )


def _is_built_in(owner: Mapping[str, Any]) -> bool:
    return owner["apiVersion"].partition("/")[0] in _WORKLOADS
