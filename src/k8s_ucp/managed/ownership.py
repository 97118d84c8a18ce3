"""Which clusters and databases in a cloud this topology is known to own. Pure.

Crossplane manages what it finds under a resource's name, so it may be another topology's. On the
core, the policy `unproven-deletions.yaml` refuses the deletion of what is not known to be ours: it
has the same rule in CEL, condition by condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from k8s_ucp.managed.policies import policies_of
from k8s_ucp.names import CLUSTERS_NAMESPACE, CREATION, GROUP, OWNED

NAMED_KINDS: Mapping[str, tuple[str, str]] = {
    "compute.gcp.m.upbound.io": ("Instance", "instances"),
    "container.gcp.m.upbound.io": ("Cluster", "clusters"),
    "containerservice.azure.m.upbound.io": ("KubernetesCluster", "kubernetesclusters"),
    "eks.aws.m.upbound.io": ("Cluster", "clusters"),
    "rds.aws.m.upbound.io": ("Instance", "instances"),
    "sql.gcp.m.upbound.io": ("DatabaseInstance", "databaseinstances"),
}
"""{API group: (kind, plural)} of what holds data and is found in its cloud by a name of ours.

The clusters of DigitalOcean are found by ids."""


OBSERVED = ("Synced", "Ready")
"""Conditions of a resource, of which one is true once the provider has observed it in its cloud."""


def may_be_foreign(item: Mapping[str, Any]) -> bool:
    """Whether the cloud had it before our core managed it, and its deletion is refused for that."""
    group = str(item["apiVersion"]).partition("/")[0]
    return (
        NAMED_KINDS.get(group, ("", ""))[0] == item["kind"]
        and all(holds(item) for holds in CONDITIONS.values())
        and not _is_proven_ours(item)
    )


def is_declared_by_us(item: Mapping[str, Any]) -> bool:
    """Whether a managed resource is in our clusters' namespace, or owned by a kind of ours."""
    about = item["metadata"]
    owners = about.get("ownerReferences") or []
    return about.get("namespace") == CLUSTERS_NAMESPACE or any(
        str(each.get("apiVersion")).startswith(f"{GROUP}/") for each in owners
    )


def _is_observed(item: Mapping[str, Any]) -> bool:
    conditions = (item.get("status") or {}).get("conditions") or []
    return any(each["type"] in OBSERVED and each["status"] == "True" for each in conditions)


def _would_be_deleted(item: Mapping[str, Any]) -> bool:
    return policies_of(item).may("Delete")


def _is_proven_ours(item: Mapping[str, Any]) -> bool:
    annotations = item["metadata"].get("annotations") or {}
    created = any(each.startswith(CREATION) for each in annotations)
    return created or annotations.get(OWNED) == "true"


CONDITIONS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "declared-by-ucp": is_declared_by_us,
    "exists-in-the-cloud": _is_observed,
    "would-be-deleted-there": _would_be_deleted,
}
"""By the names of the policy's match conditions."""
