"""Have the pinned programs in the user's cache."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.gitops.render.core import in_pods
from k8s_ucp.pipeline import Report
from k8s_ucp.steps.context import Context
from k8s_ucp.tools.catalogue import EMBEDDED, KIND, PODS, ROLLOUTS
from k8s_ucp.tools.installer import Installer, Phase, Source, ToolProgress
from k8s_ucp.topology import Topology
from k8s_ucp.workspace import cache_folder


@dataclass(frozen=True)
class InstallTools:
    id: str = "install-tools"
    title: str = "Install the pinned programs"

    def run(self, context: Context, report: Report) -> None:
        going: dict[str, str] = {}

        def heard(progress: ToolProgress) -> None:
            if progress.phase is Phase.INSTALLED:
                going.pop(progress.tool, None)
            else:
                going[progress.tool] = (
                    f"{progress.tool}: {progress.phase} {progress.detail}".strip()
                )
            report(" | ".join(going.values()))

        installer = Installer(
            cache_folder(),
            heard,
            source=Source(context.topology.spec.tools.source),
            programs=context.cancel.programs,
        )
        context.toolbox = installer.install(needed_tools(context.topology))


def needed_tools(topology: Topology) -> tuple[str, ...]:
    """Names of the pinned programs that a topology runs on."""
    spec = topology.spec
    used = {spec.core.provider, *(each.cluster.provider for each in spec.environments)}
    rollouts = spec.addons.argo_rollouts and "embedded" in used
    return (
        *(PODS if in_pods(topology) else EMBEDDED),
        *(KIND if "kind" in used else ()),
        *(ROLLOUTS if rollouts else ()),
    )
