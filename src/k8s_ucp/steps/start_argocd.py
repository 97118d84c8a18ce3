"""Start Argo CD's processes, and give them the one Application that brings all others."""

from __future__ import annotations

import time
from dataclasses import dataclass

from k8s_ucp.components import argocd
from k8s_ucp.components.manifests import apply_all, read
from k8s_ucp.kube import APPLICATION
from k8s_ucp.pipeline import Report
from k8s_ucp.reconciler.marks import ARGOCD_NAMESPACE
from k8s_ucp.steps.context import Context, await_ready


@dataclass(frozen=True)
class StartArgoCD:
    id: str = "start-argocd"
    title: str = "Start Argo CD"

    def run(self, context: Context, report: Report) -> None:
        now = time.time()
        new = context.placement.start([*context.redis.programs(), *context.argocd.programs()])
        if argocd.CONTROLLER in new:
            context.argocd_since = now
        if context.kube.find(APPLICATION, "root", ARGOCD_NAMESPACE) is None or (
            context.published.core.changed
        ):
            report("root application")
            folder = f"bootstrap/{context.topology.spec.core.provider}"
            files = context.published.core.read(folder)
            apply_all(context.kube, read({"root.yaml": files[f"{folder}/root.yaml"]}))
        report("waiting until it is ready")
        await_ready(context, argocd.NAME, context.argocd.ready)
