"""Start the reconciler, which makes and registers app clusters, and the watcher of processes."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.components import reconciler
from k8s_ucp.components.watcher import Watcher
from k8s_ucp.context import Context, await_ready
from k8s_ucp.engine.pipeline import Report


@dataclass(frozen=True)
class StartReconciler:
    id: str = "start-reconciler"
    title: str = "Start the reconciler"

    def run(self, context: Context, _: Report) -> None:
        _start(context)


@dataclass(frozen=True)
class StartLocalClusters:
    """What this machine does for a core in pods."""

    id: str = "start-local-clusters"
    title: str = "Start the local-cluster controller"

    def run(self, context: Context, _: Report) -> None:
        context.settle_runtime()
        context.placement.ensure_running()
        _start(context)


def _start(context: Context) -> None:
    programs = [
        *context.reconciler.programs(),
        *Watcher(context.placement).programs(),
        *context.backup_component.programs(),
    ]
    context.placement.start(programs)
    await_ready(context, reconciler.NAME, context.reconciler.ready)
