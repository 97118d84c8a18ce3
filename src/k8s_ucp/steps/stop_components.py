"""End the components and their supervisor: nothing starts anything again after this."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.pipeline import Report
from k8s_ucp.steps.context import Context


@dataclass(frozen=True)
class StopComponents:
    id: str = "stop-components"
    title: str = "Stop the components"

    def run(self, context: Context, _: Report) -> None:
        context.placement.stop_all()
