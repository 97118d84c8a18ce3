"""Apply a component's workloads as the core repository has them, and wait until they are ready.

Those of an adopted component are others': they are only waited for.
"""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.components import argocd
from k8s_ucp.components.health import Health
from k8s_ucp.components.manifests import Manifest
from k8s_ucp.components.pods import argocd_pods, pod_components
from k8s_ucp.components.pods.component import PodComponent
from k8s_ucp.context import Context, await_ready
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.steps.startup.apply_manifests import read_marked
from k8s_ucp.steps.startup.start_argocd import apply_repository_secrets, apply_root

SECONDS = 420.0
"""Images may have to be pulled."""


@dataclass(frozen=True)
class StartPods:
    """component: one of pod_components.ENTRIES. adopted: others run it."""

    component: str
    adopted: bool = False

    @property
    def id(self) -> str:
        return f"start-{self.component}"

    @property
    def title(self) -> str:
        title = pod_components.ENTRIES[self.component].title
        return title.replace("Start", "Check adopted components", 1) if self.adopted else title

    def run(self, context: Context, report: Report) -> None:
        component = context.pod_component(self.component)
        if isinstance(component, PodComponent):
            component.start(workloads(context, self.component))
        if self.component == argocd.NAME:
            apply_repository_secrets(context)
            apply_root(context, report)

        def look() -> Health:
            found = component.rolled_out()
            report(found.message)
            return found

        await_ready(context, self.component, look, seconds=SECONDS)
        if self.component == argocd.NAME and not self.adopted:
            context.argocd_since = argocd_pods.controller_since(context.kube)


def workloads(context: Context, component: str) -> list[Manifest]:
    """The component's objects that run pods, or that those need, at the repository's tip."""
    files = context.published.core.read(f"platform/{component}")
    return read_marked(context, {path: text for path, text in files.items() if "workloads" in path})
