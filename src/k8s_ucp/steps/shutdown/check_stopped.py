"""See that nothing of the topology runs any more: no process, so no listener and no socket."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.context import Context
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.engine.waiting import wait_until
from k8s_ucp.steps.shutdown.stop_clusters import running

SECONDS = 5.0


@dataclass(frozen=True)
class CheckStopped:
    id: str = "check-stopped"
    title: str = "Verify that all processes have ended"

    def run(self, context: Context, _: Report) -> None:
        wait_until(
            f"termination of all processes of {context.topology.name}",
            lambda: ", ".join(
                [
                    *(
                        f"{each.executable} (PID {each.pid})"
                        for each in (*context.placement.remains(), *running(context))
                    ),
                    *(f"kind cluster {each}" for each in _containers(context)),
                ]
            ),
            seconds=SECONDS,
            cancel=context.cancel,
            pause=0.05,
            next="stop them with kill",
        )


def _containers(context: Context) -> list[str]:
    return context.kind.names() if "kind" in context.providers else []
