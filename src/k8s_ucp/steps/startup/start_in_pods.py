"""Starts the components as pods of the core cluster, and the processes on this machine for them.

Workloads are applied as they are in the core repository. Adopted components are only waited for.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from k8s_ucp.components import argocd
from k8s_ucp.components.adoption.adopted import SERVER, find_component
from k8s_ucp.components.component import Health
from k8s_ucp.components.manifests import Manifest
from k8s_ucp.components.pods import argocd_pods, pod_components
from k8s_ucp.components.pods.component import PodComponent
from k8s_ucp.context import StartContext, await_ready
from k8s_ucp.engine.pipeline import Report, Step, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.steps.startup.apply_manifests import apply_repository_secrets, apply_root, read_marked
from k8s_ucp.steps.startup.planned_components import (
    planned_pods,
    planned_root,
    preview_programs,
)

SECONDS = 420.0
"""Images may have to be pulled."""


def start_pods(component: str, *, adopted: bool = False) -> Step[StartContext]:
    """The step for a component of pod_components.ENTRIES. adopted: it is only waited for."""
    title = pod_components.ENTRIES[component].title
    if adopted:
        title = title.replace("Start", "Check the adopted", 1)
    preview = partial(_preview_pods, component, adopted=adopted)
    return Step(f"start-{component}", title, partial(_start_pods, component), preview)


def _preview_pods(
    component: str, context: StartContext, *, adopted: bool
) -> Iterator[PlannedChange]:
    yield planned_pods(context, component, adopted=adopted)
    if component == argocd.NAME:
        yield planned_root(context)


def _start_pods(component: str, context: StartContext, report: Report) -> None:
    pods = context.pod_component(component)
    if isinstance(pods, PodComponent):
        pods.start(workloads(context, component))
    if component == argocd.NAME:
        apply_repository_secrets(context)
        apply_root(context, report)

    def health() -> Health:
        found = pods.rolled_out()
        report(found.message)
        return found

    await_ready(context, component, health, seconds=SECONDS)
    if component == argocd.NAME and not context.adopts(component):
        context.argocd_since = argocd_pods.controller_since(context.kube)


def workloads(context: StartContext, component: str) -> list[Manifest]:
    """The component's objects that run pods, or that those need, at the repository's tip."""
    files = context.published.core.read(f"platform/{component}")
    return read_marked(context, {path: text for path, text in files.items() if "workloads" in path})


@step(
    "Forward a local port to Argo CD",
    preview=preview_programs("port-forward to Argo CD", argocd_pods.FORWARD),
)
def forward_argocd(context: StartContext, report: Report) -> None:
    """Forward a port of this machine to Argo CD while the topology runs."""
    program = argocd_pods.forward(context.host, context.argocd_port, _service(context))
    context.placement.start([program])
    await_ready(context, argocd_pods.FORWARD, context.argocd_health)
    report(context.argocd_url)


def _service(context: StartContext) -> str:
    """Name of Argo CD's Service, which is that of its server's workload."""
    if not context.adopts(argocd.NAME):
        return argocd.SERVER
    server = find_component(context.kube, argocd.NAME).parts[SERVER]
    return str(server["metadata"]["name"])
