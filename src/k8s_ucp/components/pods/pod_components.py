"""Which workloads each component consists of in pods placement."""

from __future__ import annotations

from k8s_ucp.components import argocd, crossplane, reconciler
from k8s_ucp.components.pods import git_server
from k8s_ucp.components.pods.component import Workload
from k8s_ucp.names import CLUSTERS_NAMESPACE
from k8s_ucp.topology import Topology

NAMES = (argocd.NAME, crossplane.NAME, reconciler.NAME, git_server.NAME)
_D, _S = "Deployment", "StatefulSet"


def workloads(component: str, topology: Topology) -> list[Workload]:
    """Those of a component. Raises KeyError for an unknown one."""
    return {
        git_server.NAME: _git_server,
        argocd.NAME: _argocd,
        crossplane.NAME: _crossplane,
        reconciler.NAME: _reconciler,
    }[component](topology)


def _git_server(_: Topology) -> list[Workload]:
    return [Workload(_D, git_server.NAME, git_server.NAMESPACE)]


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


def _reconciler(_: Topology) -> list[Workload]:
    return [Workload(_D, reconciler.NAME, CLUSTERS_NAMESPACE)]
