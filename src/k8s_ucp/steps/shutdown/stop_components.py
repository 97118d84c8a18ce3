"""End the components and their supervisor: nothing starts anything again after this."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.context import Context
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.engine.waiting import wait_until
from k8s_ucp.steps.shutdown.stop_clusters import remains


@dataclass(frozen=True)
class StopComponents:
    id: str = "stop-components"
    title: str = "Stop the components"

    def run(self, context: Context, _: Report) -> None:
        context.placement.stop_all()


SECONDS = 5.0


@dataclass(frozen=True)
class CheckStopped:
    id: str = "check-stopped"
    title: str = "Verify that all processes have ended"

    def run(self, context: Context, _: Report) -> None:
        wait_until(
            f"termination of all processes of {context.topology.name}",
            lambda: ", ".join(_running(context)),
            seconds=SECONDS,
            cancel=context.cancel,
            pause=0.05,
            next="stop them with kill",
        )


def _running(context: Context) -> list[str]:
    components = (f"{each.executable} (PID {each.pid})" for each in context.placement.remains())
    return [*components, *remains(context)]
