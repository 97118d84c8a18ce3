"""End the control planes of this topology, all at once. Their data stays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from k8s_ucp.pipeline import Report
from k8s_ucp.steps.context import Context


@dataclass(frozen=True)
class StopClusters:
    id: str = "stop-clusters"
    title: str = "Stop the control planes"

    def run(self, context: Context, report: Report) -> None:
        provider = context.provider
        names = provider.names()
        if not names:
            return
        report(", ".join(names))
        with ThreadPoolExecutor(len(names), "stop") as pool:
            for stopped in [pool.submit(provider.stop, name) for name in names]:
                stopped.result()
