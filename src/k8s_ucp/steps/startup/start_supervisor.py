"""Start what needs no cluster: supervisord, and under it redis and Argo CD's repo-server."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.context import Context
from k8s_ucp.engine.pipeline import Report


@dataclass(frozen=True)
class StartSupervisor:
    id: str = "start-supervisor"
    title: str = "Start the supervisor and redis"

    def run(self, context: Context, _: Report) -> None:
        context.settle_runtime()
        context.placement.ensure_running()
        context.placement.start([*context.redis.programs(), *context.argocd.early_programs()])
