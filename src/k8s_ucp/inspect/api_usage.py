"""API usage that blocks an upgrade of an API server or of CRDs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from k8s_ucp.kube import Object

_METRIC = re.compile(r"^apiserver_requested_deprecated_apis\{(?P<labels>[^}]*)\} 1$", re.M)
_USE = ("group", "version", "resource", "removed_release")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class DeprecatedUse:
    """A deprecated API that was requested from an API server since it started."""

    group: str
    version: str
    resource: str
    removed_in: str
    """Minor version of Kubernetes that removes it; empty if none is announced."""

    @property
    def name(self) -> str:
        """RESOURCE.VERSION.GROUP, such as flowschemas.v1beta3.flowcontrol.apiserver.k8s.io."""
        return ".".join(filter(None, (self.resource, self.version, self.group)))

    def is_removed_in(self, version: str) -> bool:
        """Whether a Kubernetes version lacks it. version: with or without "v"."""
        return bool(self.removed_in) and minor_of(self.removed_in) <= minor_of(version)


def deprecated_uses(metrics: str) -> list[DeprecatedUse]:
    """Parse the text of /metrics; sorted by name."""
    found = []
    for each in _METRIC.finditer(metrics):
        labels = dict(_LABEL.findall(each["labels"]))
        group, version, resource, removed_in = (labels.get(name, "") for name in _USE)
        found.append(DeprecatedUse(group, version, resource, removed_in))
    return sorted(set(found), key=lambda each: each.name)


def minor_of(version: str) -> tuple[int, int]:
    """v1.35.4 -> (1, 35)."""
    major, minor, *_ = (*version.removeprefix("v").split("."), "0", "0")
    return int(major), int(re.sub(r"\D.*", "", minor) or 0)


@dataclass(frozen=True)
class KindVersions:
    """The versions of a CRD that a manifest serves, and its storage version."""

    known: frozenset[str]
    stored: str

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> KindVersions:
        """spec: of the CRD."""
        versions = spec["versions"]
        stored = next(each["name"] for each in versions if each.get("storage"))
        return cls(frozenset(each["name"] for each in versions), stored)


def unknown_storage(crds: Iterable[Object], newer: Mapping[str, KindVersions]) -> Iterator[str]:
    """Storage versions that the newer CRDs lack: the API server would reject such CRDs.

    crds: of the cluster. newer: by name.
    """
    for each in crds:
        name = each["metadata"]["name"]
        stored = (each.get("status") or {}).get("storedVersions") or []
        for version in stored if name in newer else ():
            if version not in newer[name].known:
                yield f"{name}: objects are stored as {version}, which the newer kind lacks"


def one_way(crds: Iterable[Object], newer: Mapping[str, KindVersions]) -> Iterator[str]:
    """Kinds whose new storage version the current CRDs don't know: it can't be rolled back."""
    for each in crds:
        name = each["metadata"]["name"]
        if name in newer and newer[name].stored not in KindVersions.of(each["spec"]).known:
            yield f"{name} stores objects as {newer[name].stored}, which the older version lacks"
