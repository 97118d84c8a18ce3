"""Make the core cluster's control plane, or start it, or see that it runs."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.clusters.admin_kubeconfigs import write_access
from k8s_ucp.clusters.local import core_request
from k8s_ucp.context import Context
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.workspace import make_private_folder


@dataclass(frozen=True)
class StartCore:
    id: str = "start-core"
    title: str = "Start the core cluster"

    def run(self, context: Context, report: Report) -> None:
        name = context.topology.core_cluster
        request = core_request(context.workspace, context.topology)
        for folder in request.mounts.values():
            # Else the engine would make it, and as root.
            make_private_folder(folder)
        timeout = context.provider.info.create_seconds
        context.provider.create(request, report, timeout=timeout)
        write_access(context.provider, name, context.state.kubeconfig(name))
