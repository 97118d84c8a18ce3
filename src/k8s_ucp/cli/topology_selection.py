"""Selects the started topology that a command works on, and collects its state."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp.cli.command import Invocation
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.workspace import Workspace, write_private_file

if TYPE_CHECKING:
    from k8s_ucp.context import StartContext, TopologyView
    from k8s_ucp.topology import Topology

STARTED = "ucp.yaml"
"""In the state folder: the topology file as it was started last; the user's may have changed."""
_LINES = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
"""Variables in which shells hand over the line so far."""


def chosen_name(call: Invocation) -> str:
    """Name of the topology: --topology, or the only one, or the one of ucp.yaml.

    Raises UcpError where nothing was started, UsageError where the choice is not clear.
    """
    started = _started(call.workspace)
    if call.topology:
        if call.topology not in started:
            from k8s_ucp.topology.problems import nearest

            known = f"; started here: {', '.join(started)}" if started else ""
            raise UsageError(
                f"no topology {call.topology} was started in {call.workspace.root}{known}",
                next=f"select one: --topology {nearest(call.topology, started) or started[0]}"
                if started
                else "ucp start",
            )
        return call.topology
    if not started:
        raise UcpError(f"nothing was started in {call.workspace.root}", next="ucp start")
    if len(started) == 1:
        return started[0]
    if call.workspace.topology_file.exists():
        from k8s_ucp.topology import load

        name = load(call.workspace.topology_file).name
        if name in started:
            return name
    raise UsageError(
        f"several topologies were started in {call.workspace.root}: {', '.join(started)}",
        next=f"select one: --topology {started[0]}",
    )


def _started(workspace: Workspace) -> list[str]:
    """Topologies with state, or with repositories: state may be removed, it can be rebuilt."""
    repositories = workspace.root / "gitops"
    there = [each.parent.name for each in repositories.glob("*/core")]
    return sorted({*workspace.topologies(), *there})


def chosen_topology(call: Invocation) -> Topology:
    """The topology as it was started last. Raises UcpError, UsageError."""
    from k8s_ucp.topology import default, load

    name = chosen_name(call)
    for path in (call.workspace.state(name).root / STARTED, call.workspace.topology_file):
        if path.exists() and (topology := load(path)).name == name:
            return topology
    # Stopping must work whatever has become of the files.
    return default(name, (), ())


def chosen_view(call: Invocation) -> TopologyView:
    """What commands that only look need of a started topology."""
    from k8s_ucp.context import TopologyView

    view = TopologyView(workspace=call.workspace, topology=chosen_topology(call))
    _renew(call, view)
    return view


def chosen_context(call: Invocation) -> StartContext:
    """What steps need of a started topology."""
    from k8s_ucp.context import StartContext

    context = StartContext(workspace=call.workspace, topology=chosen_topology(call))
    _renew(call, context)
    return context


@contextmanager
def asking_core(context: TopologyView) -> Iterator[None]:
    """Raises UcpError that says what to do where the core cluster doesn't answer."""
    from k8s_ucp.kube import Unreachable

    try:
        yield
    except Unreachable as error:
        name = context.topology.core_cluster
        raise UcpError(f"the core cluster {name} is not responding", next="ucp start") from error


def _renew(call: Invocation, context: TopologyView) -> None:
    """Google's tokens live for an hour; without one the command shows what it can."""
    from k8s_ucp.clusters.admin_kubeconfigs import renew_access
    from k8s_ucp.providers import PROVIDERS

    if PROVIDERS[context.topology.spec.core.provider].access_seconds is None:
        return
    name = context.topology.core_cluster
    try:
        renew_access(context.provider, name, context.state.kubeconfig(name))
    except UcpError as error:
        call.console.say(f"note: failed to access {name}: {error.message}")


def remember(workspace: Workspace, name: str, text: str) -> None:
    """Keep the file of a topology that is being started."""
    state = workspace.state(name)
    state.make()
    write_private_file(state.root / STARTED, text)


def app_names(incomplete: str) -> list[str]:
    """Apps of ucp.yaml, for the shell's completion.

    Like the others it says nothing where it knows nothing: no message belongs into a half typed
    line.
    """
    return _names(incomplete, lambda topology: [each.name for each in topology.spec.apps])


def environment_names(incomplete: str) -> list[str]:
    """Environments of ucp.yaml, for the same."""
    return _names(incomplete, _environments)


def cluster_names(incomplete: str) -> list[str]:
    """Environments of ucp.yaml and the core cluster, for the same."""
    return _names(incomplete, lambda topology: ["core", *_environments(topology)])


def _environments(topology: Topology) -> list[str]:
    return [each.name for each in topology.spec.environments]


def _names(incomplete: str, names: Callable[[Topology], Sequence[str]]) -> list[str]:
    from k8s_ucp.topology import load

    line = next((os.environ[each] for each in _LINES if os.environ.get(each)), "")
    typed = re.search(r"--workspace[= ](\S+)", line)
    workspace = Workspace.at(Path(typed[1] if typed else "."))
    with suppress(UcpError, OSError):
        return [
            each for each in names(load(workspace.topology_file)) if each.startswith(incomplete)
        ]
    return []
