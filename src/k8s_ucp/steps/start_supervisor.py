"""Start what needs no cluster: supervisord, and under it redis and Argo CD's repo-server."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.pipeline import Report
from k8s_ucp.steps.context import Context
from k8s_ucp.workspace import make_private_folder


@dataclass(frozen=True)
class StartSupervisor:
    id: str = "start-supervisor"
    title: str = "Start the supervisor and redis"

    def run(self, context: Context, _: Report) -> None:
        make_private_folder(context.runtime.parent)
        make_private_folder(context.runtime)
        context.placement.ensure_running()
        context.placement.start([*context.redis.programs(), *context.argocd.early_programs()])
