"""End the clusters of this topology on this machine, all at once.

Embedded control planes are stopped and keep their data. kind clusters go, with their containers and
their contexts in the user's kubeconfig: what they ran comes back from the repositories. A core on
GKE loses its nodes and keeps its data. Clusters that others made run on, with the apps that they
have.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from k8s_ucp.cluster_provider import ClusterProvider
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.clusters.embedded.processes import find_own
from k8s_ucp.clusters.user_contexts import forget_contexts
from k8s_ucp.context import Context
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.kube import read_kubeconfig
from k8s_ucp.process import ProcessIdentity


@dataclass(frozen=True)
class StopClusters:
    id: str = "stop-clusters"
    title: str = "Stop the control planes"

    def run(self, context: Context, report: Report) -> None:
        ends: dict[str, Callable[[str], None]] = {}
        providers = context.providers
        if embedded := providers.get("embedded"):
            there = embedded.names()
            ends.update(dict.fromkeys(there, embedded.stop))
            for name in known_clusters(context):
                if name not in there and find_own(ClusterFolder(context.state.clusters, name)):
                    # Somebody removed its folder while it ran: there is no data left to keep.
                    ends[name] = embedded.delete
        if adopted := providers.get("existing"):
            ends.update(dict.fromkeys(adopted.names(), adopted.stop))
        if google := providers.get("gke"):
            ends.update(dict.fromkeys(google.names(), google.stop))
        containers: list[str] = []
        if kind := providers.get("kind"):
            containers = kind.names()
            ends.update(dict.fromkeys(containers, kind.delete))
        if not ends:
            return
        report(", ".join(ends))
        with ThreadPoolExecutor(len(ends), "stop") as pool:
            for ended in [pool.submit(end, name) for name, end in ends.items()]:
                ended.result()
        for name in containers:
            forget_access(context, name)


def known_clusters(context: Context) -> list[str]:
    """Every cluster that may run here: on disk, in the topology, or in the core repository."""
    topology = context.topology
    overlays = context.gitops.core / "clusters" / "overlays"
    committed = [each.name for each in overlays.iterdir()] if overlays.is_dir() else []
    environments = {*committed, *(each.name for each in topology.spec.environments)}
    return sorted(
        {
            topology.core_cluster,
            *(topology.app_cluster(each) for each in environments),
            *(name for maker in _here(context) for name in maker.names()),
        }
    )


def _here(context: Context) -> list[ClusterProvider]:
    """Makers of clusters that run on this machine, or are noted here: nobody far away is asked."""
    return [maker for name, maker in context.providers.items() if name != "gke"]


def running(context: Context) -> list[ProcessIdentity]:
    """Processes of the topology's control planes."""
    return [
        process
        for name in known_clusters(context)
        for process in find_own(ClusterFolder(context.state.clusters, name))
    ]


def forget_access(context: Context, name: str) -> None:
    """Of a cluster that is gone, or ours no longer; in the user's own kubeconfig too."""
    file = context.state.kubeconfig(name)
    if file.exists():
        forget_contexts(read_kubeconfig(file))
        file.unlink()
