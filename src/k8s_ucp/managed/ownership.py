"""Which clusters and databases in a cloud this topology is known to own. Pure.

Crossplane manages what it finds under a resource's name, so it may be another topology's. On the
core, the policy `unproven-deletions.yaml` refuses the deletion of what is not known to be ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from k8s_ucp.managed.policies import policies_of
from k8s_ucp.names import CREATION, OWNED

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


def may_be_foreign(item: Mapping[str, Any]) -> bool:
    """Whether the cloud had it before our core managed it, and its deletion is refused for that."""
    group = str(item["apiVersion"]).partition("/")[0]
    annotations = item["metadata"].get("annotations") or {}
    conditions = (item.get("status") or {}).get("conditions") or []
    return (
        NAMED_KINDS.get(group, ("", ""))[0] == item["kind"]
        and any(
            each["type"] in ("Synced", "Ready") and each["status"] == "True" for each in conditions
        )
        and policies_of(item).may("Delete")
        and annotations.get(OWNED) != "true"
        and not any(each.startswith(CREATION) for each in annotations)
    )
