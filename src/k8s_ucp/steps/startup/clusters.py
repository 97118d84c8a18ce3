"""Creates the clusters of a topology: the core and, in parallel, those of environments."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from k8s_ucp.cluster_provider import ClusterProvider, ClusterRequest
from k8s_ucp.clusters.admin_kubeconfigs import write_access
from k8s_ucp.clusters.local import core_request, environment_requests
from k8s_ucp.context import StartContext, planned_cluster
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.steps.startup.seed import find_seed
from k8s_ucp.workspace import make_private_folder


def _preview_core(context: StartContext) -> Iterator[PlannedChange]:
    yield planned_cluster(context.provider, context.topology.core_cluster)


@step("Start the core cluster", preview=_preview_core)
def start_core(context: StartContext, report: Report) -> None:
    """Create its control plane, start it, or find it running."""
    name = context.topology.core_cluster
    request = core_request(context.workspace, context.topology)
    for folder in request.mounts.values():
        # Otherwise the container engine creates it, owned by root.
        make_private_folder(folder)
    timeout = context.provider.info.create_seconds
    request = replace(request, seed=find_seed(context))
    context.provider.create(request, report, timeout=timeout)
    write_access(context.provider, name, context.state.kubeconfig(name))


def _preview_app_clusters(context: StartContext) -> Iterator[PlannedChange]:
    for provider, request in _with_nodes(context):
        yield planned_cluster(provider, request.name)


def _with_nodes(context: StartContext) -> list[tuple[ClusterProvider, ClusterRequest]]:
    return [
        (context.providers[name], request)
        for name, found in environment_requests(context.topology).items()
        if PROVIDERS[name].makes_nodes
        for request in found
    ]


@step("Create the environments' clusters", preview=_preview_app_clusters)
def make_app_clusters(context: StartContext, report: Report) -> None:
    """Create those with real nodes while the core starts, instead of after Argo CD's first sync.

    They are declared in the core repository as well; their LocalClusters find them existing.
    Simulated clusters are created within a second or two anyway.
    """
    requests = _with_nodes(context)
    progress: dict[str, str] = {}

    def make(provider: ClusterProvider, request: ClusterRequest) -> None:
        def on_line(line: str) -> None:
            progress[request.name] = line
            report("; ".join(f"{name}: {words}" for name, words in sorted(progress.items())))

        provider.create(request, on_line)

    if requests:
        with ThreadPoolExecutor(len(requests), "make") as pool:
            for made in [pool.submit(make, *each) for each in requests]:
                made.result()
