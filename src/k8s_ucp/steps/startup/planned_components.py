"""Foresees what starting a component would change, given how it runs now."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch

from k8s_ucp.context import StartContext
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import APPLICATION
from k8s_ucp.names import ARGOCD_NAMESPACE, ROOT_APPLICATION
from k8s_ucp.steps.startup.apply_manifests import reads_here


def preview_programs(
    what: str, *patterns: str
) -> Callable[[StartContext], Iterator[PlannedChange]]:
    """The preview function of a step that only starts processes on this machine."""

    def preview(context: StartContext) -> Iterator[PlannedChange]:
        yield planned_programs(context, what, *patterns)

    return preview


def planned_programs(context: StartContext, what: str, *patterns: str) -> PlannedChange:
    """For processes on this machine. patterns: for names of programs."""
    states = context.placement.states()
    found = [each for name, each in states.items() if any(fnmatch(name, p) for p in patterns)]
    if not found:
        return PlannedChange("create", what, "it is not running")
    if down := [each.name for each in found if not each.running]:
        return PlannedChange("change", what, f"{', '.join(down)} is started again")
    known = {str(each) for each in context.toolbox.programs.values()}
    old = [
        each.name
        for each in found
        if known and context.placement.executable(each.name) not in known | {sys.executable}
    ]
    if old:
        return PlannedChange("change", what, f"{', '.join(old)} restarts with the pinned version")
    return PlannedChange(
        "keep", what, "it is running; a program restarts only if its settings changed"
    )


def planned_pods(context: StartContext, component: str, *, adopted: bool) -> PlannedChange:
    """For workloads of the core cluster. adopted: others run them."""
    what = f"component {component}"
    if adopted:
        return PlannedChange("keep", what, "it is adopted: ucp does not manage it")
    try:
        health = context.pod_component(component).rolled_out() if context.core_responds() else None
    except UcpError:
        health = None
    if health is None:
        return PlannedChange("create", what, "the core cluster does not run it yet")
    if health.ready:
        return PlannedChange(
            "keep", what, "it is running; changes in the core repository are applied"
        )
    return PlannedChange("wait", what, health.message or "not ready")


def planned_root(context: StartContext) -> PlannedChange:
    """For the Application that manages all others."""
    what = f"Application {ROOT_APPLICATION}"
    if not context.core_responds():
        return PlannedChange(
            "wait", what, "it is applied unless the core has it once it is running"
        )
    root = context.kube.find(APPLICATION, ROOT_APPLICATION, ARGOCD_NAMESPACE)
    if root is None:
        return PlannedChange("create", what, "the core does not have it")
    changed = context.planned is None or context.planned.core.changed
    if changed or not reads_here(context, root):
        return PlannedChange("change", what, "it is applied again, and refreshed")
    return PlannedChange("keep", what, "the core has it")
