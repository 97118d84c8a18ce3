"""Start the reconciler, which makes app clusters and registers them with Argo CD."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.components import reconciler
from k8s_ucp.pipeline import Report
from k8s_ucp.steps.context import Context, await_ready


@dataclass(frozen=True)
class StartReconciler:
    id: str = "start-reconciler"
    title: str = "Start the reconciler"

    def run(self, context: Context, _: Report) -> None:
        context.placement.start(context.reconciler.programs())
        await_ready(context, reconciler.NAME, context.reconciler.ready)
