"""Have the pinned programs in the user's cache."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.context import Context
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.tools.installer import Installer, Phase, ProgramSource, ToolProgress
from k8s_ucp.tools.needed import needed_tools
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
            source=ProgramSource(context.topology.spec.tools.source),
            programs=context.cancel.programs,
        )
        context.toolbox = installer.install(needed_tools(context.topology))
