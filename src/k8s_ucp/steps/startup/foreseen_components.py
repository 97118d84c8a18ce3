"""Foresees what starting a component would change, given how it runs now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatch

from k8s_ucp.context import StartContext
from k8s_ucp.engine.foresight import Foreseen
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import APPLICATION
from k8s_ucp.names import ARGOCD_NAMESPACE


def foresee_programs(what: str, *patterns: str) -> Callable[[StartContext], Iterator[Foreseen]]:
    """The foresee function of a step that only starts processes on this machine."""

    def foresee(context: StartContext) -> Iterator[Foreseen]:
        yield foreseen_programs(context, what, *patterns)

    return foresee


def foreseen_programs(context: StartContext, what: str, *patterns: str) -> Foreseen:
    """For processes on this machine. patterns: for names of programs."""
    states = context.placement.states()
    found = [each for name, each in states.items() if any(fnmatch(name, p) for p in patterns)]
    if not found:
        return Foreseen("create", what, "it is not running")
    if down := [each.name for each in found if not each.running]:
        return Foreseen("change", what, f"{', '.join(down)} is started again")
    known = {str(each) for each in context.toolbox.programs.values()}
    old = [
        each.name
        for each in found
        if known
        and context.placement.executable(each.name) not in known | {context.placement.python}
    ]
    if old:
        return Foreseen("change", what, f"{', '.join(old)} restarts with the pinned version")
    return Foreseen("keep", what, "it is running; a program restarts only if its settings changed")


def foreseen_pods(context: StartContext, component: str, *, adopted: bool) -> Foreseen:
    """For workloads of the core cluster. adopted: others run them."""
    what = f"component {component}"
    if adopted:
        return Foreseen("keep", what, "it is adopted: ucp does not manage it")
    try:
        health = context.pod_component(component).rolled_out() if context.core_responds() else None
    except UcpError:
        health = None
    if health is None:
        return Foreseen("create", what, "the core cluster does not run it yet")
    if health.ready:
        return Foreseen("keep", what, "it is running; changes in the core repository are applied")
    return Foreseen("wait", what, health.message or "not ready")


def foreseen_root(context: StartContext) -> Foreseen:
    """For the Application that manages all others."""
    what = "Application root"
    if not context.core_responds():
        return Foreseen("wait", what, "it is applied unless the core has it once it is running")
    if context.kube.find(APPLICATION, "root", ARGOCD_NAMESPACE) is None:
        return Foreseen("create", what, "the core does not have it")
    if context.foreseen is None or context.foreseen.core.changed:
        return Foreseen("change", what, "it is applied again, and refreshed")
    return Foreseen("keep", what, "the core has it")
