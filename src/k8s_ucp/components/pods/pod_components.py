"""The table of the components that run as pods of the core cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from k8s_ucp.components import argocd, crossplane, reconciler
from k8s_ucp.components.pods.component import Workload
from k8s_ucp.names import CLUSTERS_NAMESPACE
from k8s_ucp.topology import Topology

_D, _S = "Deployment", "StatefulSet"


def _argocd(_: Topology) -> list[Workload]:
    deployments = (argocd.REPO_SERVER, argocd.APPLICATION_SETS, argocd.SERVER, "argocd-redis")
    return [
        Workload(_S, argocd.CONTROLLER, argocd.NAMESPACE),
        *(Workload(_D, each, argocd.NAMESPACE) for each in deployments),
    ]


def _crossplane(topology: Topology) -> list[Workload]:
    names = ["crossplane"]
    if topology.spec.crossplane.rbac_manager:
        names.append("crossplane-rbac-manager")
    return [Workload(_D, each, crossplane.NAMESPACE) for each in names]


@dataclass(frozen=True)
class PodComponentEntry:
    """Title of the step that starts a component, and its workloads."""

    title: str
    workloads: Callable[[Topology], list[Workload]]


ENTRIES: dict[str, PodComponentEntry] = {
    argocd.NAME: PodComponentEntry("Start Argo CD", _argocd),
    crossplane.NAME: PodComponentEntry("Start Crossplane", _crossplane),
    reconciler.NAME: PodComponentEntry(
        "Start the reconciler", lambda _: [Workload(_D, reconciler.NAME, CLUSTERS_NAMESPACE)]
    ),
    "git-server": PodComponentEntry(
        "Start the server of the repositories", lambda _: [Workload(_D, "git-server", "ucp-git")]
    ),
}
"""Keys: folders below platform/ with their workloads."""


def workloads(component: str, topology: Topology) -> list[Workload]:
    """Workloads of a component. Raises KeyError for an unknown one."""
    return ENTRIES[component].workloads(topology)
