"""Crossplane's objects on a core cluster: packages, definitions, and what they brought about."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from k8s_ucp.kube import Kind, Kube, NotFound, Object

_KINDS = {
    "pkg.crossplane.io": ("Provider", "Function", "Configuration"),
    "apiextensions.crossplane.io": ("CompositeResourceDefinition",),
}
"""Crossplane's own that say how it is."""
_CATEGORIES = frozenset(("managed", "composite", "claim"))
"""Of the kinds that packages and definitions bring."""
MOST_KINDS = 300
"""A cloud's packages bring hundreds; so many are listed at most."""


def crossplane_objects(kube: Kube) -> list[Object]:
    """All of them, packages first, by kind and name. Raises KubeError."""
    groups = kube.request("GET", "/apis")["groups"]
    with ThreadPoolExecutor(8, "crossplane") as pool:
        found = pool.map(
            lambda group: _kinds(kube, group["name"], group["preferredVersion"]["groupVersion"]),
            groups,
        )
        kinds = sorted(
            (kind for some in found for kind in some),
            key=lambda kind: (kind.group not in _KINDS, kind.group, kind.kind),
        )
        listed = list(pool.map(lambda kind: _listed(kube, kind), kinds[:MOST_KINDS]))
    return [item for some in listed for item in some]


def _kinds(kube: Kube, group: str, version: str) -> list[Kind]:
    if group.endswith(".k8s.io") or "." not in group:
        return []  # Kubernetes' own
    try:
        resources = kube.request("GET", f"/apis/{version}")["resources"]
    except NotFound:
        return []
    return [
        Kind(version, each["kind"], each["name"], each["namespaced"])
        for each in resources
        if "/" not in each["name"] and "list" in each["verbs"] and _is_wanted(group, each)
    ]


def _is_wanted(group: str, resource: dict[str, Any]) -> bool:
    if group in _KINDS:
        return resource["kind"] in _KINDS[group]
    return bool(_CATEGORIES & set(resource.get("categories") or ()))


def _listed(kube: Kube, kind: Kind) -> Sequence[Object]:
    """By name; none where the kind has just gone."""
    try:
        items = kube.list_all(kind)
    except NotFound:
        return []
    return sorted(items, key=lambda item: str(item["metadata"]["name"]))
