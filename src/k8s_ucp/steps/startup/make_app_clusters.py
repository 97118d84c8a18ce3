"""Make the environments' clusters on this machine while the core comes up.

They are declared in the core repository all the same: their LocalClusters find them made. Without
this each would wait for Argo CD's first sync.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from k8s_ucp.cluster_provider import ClusterProvider, ClusterRequest
from k8s_ucp.clusters.local import environment_requests
from k8s_ucp.context import Context
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.providers import PROVIDERS


@dataclass(frozen=True)
class MakeAppClusters:
    """Those with real nodes: simulated ones are made within a second or two anyway."""

    id: str = "make-app-clusters"
    title: str = "Create the environments' clusters"

    def run(self, context: Context, report: Report) -> None:
        requests = [
            (context.providers[name], request)
            for name, found in environment_requests(context.topology).items()
            if PROVIDERS[name].makes_nodes
            for request in found
        ]
        said: dict[str, str] = {}

        def make(maker: ClusterProvider, request: ClusterRequest) -> None:
            def heard(line: str) -> None:
                said[request.name] = line
                report("; ".join(f"{name}: {words}" for name, words in sorted(said.items())))

            maker.create(request, heard)

        if requests:
            with ThreadPoolExecutor(len(requests), "make") as pool:
                for made in [pool.submit(make, *each) for each in requests]:
                    made.result()
