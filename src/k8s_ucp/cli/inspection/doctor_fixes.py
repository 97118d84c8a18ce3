"""`ucp doctor --fix`: applies safe fixes. Nothing is deleted, and no object is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.inspection.status import refuse_taken_ports
from k8s_ucp.cli.plan_runner import alone
from k8s_ucp.clusters.admin_kubeconfigs import write_access
from k8s_ucp.components import argocd, composition_functions, crossplane
from k8s_ucp.components.host import redis
from k8s_ucp.components.host.supervisor_client import ProgramState
from k8s_ucp.context import TopologyView
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.doctor.finding import Finding


def fix(
    call: Invocation, context: TopologyView, found: Iterable[Finding], *, yes: bool
) -> set[str]:
    """Show the fixes, ask, and apply them; returns ids of the findings that were fixed.

    Raises UsageError if a confirmation is impossible, UcpError while another command runs.
    """
    fixable = [each for each in found if each.fix]
    if not fixable:
        call.console.say("nothing that --fix could do")
        return set()
    for each in fixable:
        call.console.say(f"fix: {each.fix} ({each.message})")
    if not yes:
        _confirm()
    fixed = set()
    with alone(context.workspace, context.topology.name):
        for each in fixable:
            try:
                _REMEDIES[each.id.partition("/")[0]](context, each.id.partition("/")[2])
            except UcpError as error:
                call.console.say(f"not fixed: {each.fix}: {error.message}")
            else:
                call.console.say(f"fixed: {each.fix}")
                fixed.add(each.id)
    return fixed


def _confirm() -> None:
    from k8s_ucp.cli import questions

    questions.require_consent(
        "Do this?", "nothing was changed", next="ucp doctor --fix --yes", default=True
    )


_ALSO = {argocd.NAME: (redis.NAME,), crossplane.NAME: (composition_functions.NAME,)}
"""Programs of a component whose names don't begin with its own."""


def _start_component(context: TopologyView, name: str) -> None:
    """Start its processes, or the supervisor with all programs if it has ended.

    Raises UcpError if another program has one of its ports: it would not become ready.
    """
    placement = context.placement
    refuse_taken_ports(context, name, placement.unused(context.host.ports))
    if placement.revive():
        return
    programs = to_restart(name, placement.states().values())
    if not programs:
        raise UcpError(f"supervisord has no program of {name}", next="ucp start")
    for each in programs:
        placement.restart(each)


def to_restart(component: str, programs: Iterable[ProgramState]) -> list[str]:
    """Programs of a component that isn't ready: those that ended; if all run, one of them hangs."""
    also = _ALSO.get(component, ())
    own = [each for each in programs if each.name.startswith(component) or each.name in also]
    ended = [each for each in own if each.state != "RUNNING"]
    return [each.name for each in ended or own]


def _close_file(_: TopologyView, path: str) -> None:
    if Path(path).is_symlink():
        # In a workspace of others, it could lead to any file that must stay readable.
        raise UcpError(f"it is a symbolic link to {Path(path).resolve()}")
    try:
        Path(path).chmod(0o600)
    except OSError as error:
        raise UcpError(f"failed to change the mode of {path}: {error.strerror}") from error


def _write_kubeconfig(context: TopologyView, cluster: str) -> None:
    provider = next(each for each in context.providers.values() if cluster in each.names())
    write_access(provider, cluster, context.state.kubeconfig(cluster))


_REMEDIES: dict[str, Callable[[TopologyView, str], None]] = {
    "component": _start_component,
    "credential": _close_file,
    "kubeconfig": _write_kubeconfig,
}
"""By kind of finding; those with a remedy have a `fix`."""
