"""End the components and their supervisor: nothing starts anything again after this."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.context import Context
from k8s_ucp.engine.pipeline import Report


@dataclass(frozen=True)
class StopComponents:
    id: str = "stop-components"
    title: str = "Stop the components"

    def run(self, context: Context, _: Report) -> None:
        context.placement.stop_all()
