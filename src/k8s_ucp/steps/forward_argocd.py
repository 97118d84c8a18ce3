"""Lead a port of this machine to Argo CD in the core cluster, for as long as the topology runs."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.components import argocd_pods
from k8s_ucp.pipeline import Report
from k8s_ucp.steps.context import Context, await_ready


@dataclass(frozen=True)
class ForwardArgoCD:
    id: str = "forward-argocd"
    title: str = "Lead a port to Argo CD"

    def run(self, context: Context, report: Report) -> None:
        report(context.argocd_url)
        context.placement.start([argocd_pods.forward(context.host, context.argocd_port)])
        await_ready(context, argocd_pods.FORWARD, context.argocd_answers)
