"""Crossplane's objects on a core cluster: packages, definitions and their resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from k8s_ucp import names
from k8s_ucp.kube import (
    ApiResource,
    Kind,
    Kube,
    KubeError,
    NotFound,
    Object,
    api_groups,
    kinds_in,
)
from k8s_ucp.reconciler.runtime.conditions import first_of, is_true

_KINDS = {
    "pkg.crossplane.io": ("Provider", "Function", "Configuration"),
    "apiextensions.crossplane.io": ("CompositeResourceDefinition",),
}
"""Crossplane's own kinds that have a status of interest."""
_DEFINITION = Kind(
    "apiextensions.crossplane.io/v2",
    "CompositeResourceDefinition",
    "compositeresourcedefinitions",
    namespaced=False,
)
_CATEGORIES = frozenset(("managed", "composite", "claim"))
"""Categories of the kinds that packages and definitions add."""
_REGISTRIES = (".upbound.io", ".m.crossplane.io")
"""Suffixes of the API groups of clouds' kinds."""
MOST_KINDS = 300
"""A cloud's packages add hundreds of kinds; at most this many are listed."""
MOST_CLAIMS = 10
"""Maximum number of unready claims to examine; others usually have the same cause."""


def crossplane_objects(kube: Kube) -> list[Object]:
    """All Crossplane objects, packages first, sorted by kind and name. Raises KubeError."""
    groups = api_groups(kube).items()
    with ThreadPoolExecutor(8, "crossplane") as pool:
        found = pool.map(lambda group: _kinds(kube, *group), groups)
        kinds = sorted(
            (kind for some in found for kind in some),
            key=lambda kind: (kind.group not in _KINDS, kind.group, kind.kind),
        )
        listed = list(pool.map(lambda kind: _listed(kube, kind), kinds[:MOST_KINDS]))
    return [item for some in listed for item in some]


def composites(kube: Kube) -> list[Object]:
    """Composite resources of every defined kind. Raises KubeError."""
    try:
        definitions = kube.list_all(_DEFINITION)
    except NotFound:
        return []
    found: list[Object] = []
    for each in definitions:
        spec, names = each["spec"], each["spec"]["names"]
        version = next((one["name"] for one in spec["versions"] if one.get("referenceable")), None)
        if version is None:
            continue  # Nobody has validated it, and Crossplane makes no kind of it.
        namespaced = spec.get("scope", "Namespaced") == "Namespaced"
        api_version = f"{spec['group']}/{version}"
        found += _listed(kube, Kind(api_version, names["kind"], names["plural"], namespaced))
    return found


def environment_resources(kube: Kube, applications: Iterable[Object]) -> list[Object]:
    """Cloud resources of the environments' clusters. Raises KubeError.

    The kinds are taken from Argo CD's status: listing all kinds of a cloud's packages is too slow.
    """
    kinds = {
        (f"{each['group']}/{each.get('version')}", str(each["kind"]))
        for application in applications
        for each in (application.get("status") or {}).get("resources") or []
        if each.get("namespace") == names.CLUSTERS_NAMESPACE
        and str(each.get("group")).endswith(_REGISTRIES)
    }
    found: list[Object] = []
    for api_version, name in sorted(kinds):
        try:
            kind = kube.kind_of(api_version, name)
            found += kube.list_all(kind, names.CLUSTERS_NAMESPACE, labels=names.ENVIRONMENT)
        except NotFound:
            continue
    return found


def resources_of_claims(kube: Kube, claims: Iterable[Object]) -> list[Object]:
    """Composed resources of claims that aren't ready."""
    waiting = [
        each for each in claims if not first_of(each, ("Synced",), "False") if not is_ready(each)
    ]
    wanted = [(each, one) for each in waiting[:MOST_CLAIMS] for one in references_of(each)]
    with ThreadPoolExecutor(8, "claims") as pool:
        found = pool.map(lambda pair: resource_of(kube, *pair), wanted)
        return [each for each in found if each]


def is_ready(claim: Object) -> bool:
    """Whether a claim is ready and its last reconciliation did not fail."""
    return is_true(claim, "Ready") and first_of(claim, ("Synced",), "False") is None


def references_of(claim: Object) -> list[dict[str, str]]:
    """apiVersion, kind and name of each resource that Crossplane composed for it."""
    return ((claim.get("spec") or {}).get("crossplane") or {}).get("resourceRefs") or []


def resource_of(kube: Kube, claim: Object, reference: Mapping[str, str]) -> Object | None:
    """A composed resource by its reference in a claim; None if it does not exist."""
    try:
        kind = kube.kind_of(reference["apiVersion"], reference["kind"])
        namespace = reference.get("namespace") or claim["metadata"].get("namespace")
        return kube.find(kind, reference["name"], namespace)
    except (KubeError, KeyError):
        return None


def _kinds(kube: Kube, group: str, versions: Sequence[str]) -> list[Kind]:
    if group.endswith(".k8s.io") or "." not in group:
        return []  # Kubernetes' own
    return kinds_in(kube, versions, lambda each: "list" in each.verbs and _is_wanted(each))


def _is_wanted(resource: ApiResource) -> bool:
    if resource.kind.group in _KINDS:
        return resource.kind.kind in _KINDS[resource.kind.group]
    return bool(_CATEGORIES & resource.categories)


def _listed(kube: Kube, kind: Kind) -> Sequence[Object]:
    """Sorted by name; empty if the kind was just removed."""
    try:
        items = kube.list_all(kind)
    except NotFound:
        return []
    return sorted(items, key=lambda item: str(item["metadata"]["name"]))
