"""Lead a port of this machine to Argo CD in the core cluster, for as long as the topology runs."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.components import argocd
from k8s_ucp.components.adoption.adopted import SERVER, find_component
from k8s_ucp.components.pods import argocd_pods
from k8s_ucp.context import Context, await_ready
from k8s_ucp.engine.pipeline import Report


@dataclass(frozen=True)
class ForwardArgoCD:
    id: str = "forward-argocd"
    title: str = "Forward a local port to Argo CD"

    def run(self, context: Context, report: Report) -> None:
        program = argocd_pods.forward(context.host, context.argocd_port, _service(context))
        context.placement.start([program])
        await_ready(context, argocd_pods.FORWARD, context.argocd_answers)
        report(context.argocd_url)


def _service(context: Context) -> str:
    """It is called as its server's workload."""
    if not context.adopts(argocd.NAME):
        return argocd.SERVER
    server = find_component(context.kube, argocd.NAME).parts[SERVER]
    return str(server["metadata"]["name"])
