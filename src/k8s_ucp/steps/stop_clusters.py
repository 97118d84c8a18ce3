"""End the control planes of this topology, all at once. Their data stays."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from k8s_ucp.clusters.folder import ClusterFolder
from k8s_ucp.clusters.processes import find_own
from k8s_ucp.pipeline import Report
from k8s_ucp.process import Identity
from k8s_ucp.steps.context import Context


@dataclass(frozen=True)
class StopClusters:
    id: str = "stop-clusters"
    title: str = "Stop the control planes"

    def run(self, context: Context, report: Report) -> None:
        provider = context.provider
        there = provider.names()
        ends: dict[str, Callable[[str], None]] = dict.fromkeys(there, provider.stop)
        for name in known_clusters(context):
            if name not in there and find_own(ClusterFolder(context.state.clusters, name)):
                # Somebody removed its folder while it ran: there is no data left to keep.
                ends[name] = provider.delete
        if not ends:
            return
        report(", ".join(ends))
        with ThreadPoolExecutor(len(ends), "stop") as pool:
            for ended in [pool.submit(end, name) for name, end in ends.items()]:
                ended.result()


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
            *context.provider.names(),
        }
    )


def running(context: Context) -> list[Identity]:
    """Processes of the topology's control planes."""
    return [
        process
        for name in known_clusters(context)
        for process in find_own(ClusterFolder(context.state.clusters, name))
    ]
