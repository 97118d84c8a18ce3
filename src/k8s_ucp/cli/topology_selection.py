"""Selects the started topology that a command works on, and opens it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp.cli.command import Invocation, with_given_options
from k8s_ucp.errors import UcpError, UsageError, command_line
from k8s_ucp.workspace import Workspace, enclosing_workspace, write_private_file

if TYPE_CHECKING:
    from k8s_ucp.context import StartContext, TopologyView
    from k8s_ucp.topology import Topology

STARTED = "ucp.yaml"
"""In the state folder: the topology file of the last start; the user's may have changed."""
_OWN_FOLDERS = (".ucp", "creds", "gitops")
"""Folders of a workspace that ucp makes."""
_LINES = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
"""Variables in which shells pass the line to be completed."""


def chosen_name(call: Invocation) -> str:
    """Name of the topology: --topology, or the only one, or that of ucp.yaml.

    Raises UcpError if none was started, UsageError if the choice is ambiguous.
    """
    started = call.workspace.started()
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
        raise _nothing_started(call.workspace.root)
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


def selecting(call: Invocation, name: str) -> dict[str, str]:
    """The global options with which a command typed here works on a started topology."""
    with suppress(UcpError):
        if chosen_name(replace(call, topology=None)) == name:
            return call.given
    return {**call.given, "--topology": name}


def start_command(call: Invocation, name: str) -> str:
    """The command that starts a topology again: with its file, if ucp.yaml defines another one."""
    workspace, file = call.workspace, file_of(call.workspace, name)
    command = "ucp start"
    if file and file != workspace.topology_file:
        here = workspace.root == Path.cwd()
        command += f" {command_line('--file', file.name if here else file)}"
    return with_given_options(
        command, {flag: call.given[flag] for flag in call.given if flag == "--workspace"}
    )


def file_of(workspace: Workspace, name: str) -> Path | None:
    """The file in the workspace that defines a topology; ucp.yaml takes precedence."""
    return next(_files_of(workspace, name), None)


def _files_of(workspace: Workspace, name: str) -> Iterator[Path]:
    first = workspace.topology_file
    others = (each for each in sorted(workspace.root.glob("*.y*ml")) if each != first)
    return (each for each in (first, *others) if _defines(each, name))


def declared_file(call: Invocation) -> Path:
    """The topology file that a command acts on: ucp.yaml, or that of another started topology.

    The other one is selected by --topology, or is the only one if there is no ucp.yaml. The file
    may not exist. Raises UsageError if two files define the topology: one may be an old copy.
    """
    return _declared_file(call.workspace, call.topology)


def _declared_file(workspace: Workspace, topology: str | None) -> Path:
    usual, started = workspace.topology_file, workspace.started()
    alone = started[0] if len(started) == 1 and not usual.exists() else None
    name = topology or alone
    if name is None or name not in started:
        return usual
    files = _files_of(workspace, name)
    found = next(files, usual)
    if found != usual and (second := next(files, None)):
        raise UsageError(
            f"{found.name} and {second.name} in {workspace.root} both define the topology {name}",
            next="move the one that is out of date to another folder",
        )
    return found


def _defines(file: Path, name: str) -> bool:
    with suppress(OSError):
        about = file.stat()
        return _name_in(file, (about.st_ino, about.st_size, about.st_mtime_ns)) == name
    return False


@lru_cache
def _name_in(file: Path, _: tuple[int, ...]) -> str | None:
    """Name of the topology that a file defines; None if it is not valid.

    Each step of a command asks, and parsing takes long. The second argument tells versions of the
    file apart.
    """
    from k8s_ucp.topology import load

    with suppress(UcpError, OSError):
        return load(file).name
    return None


def _nothing_started(folder: Path) -> UcpError:
    if outer := enclosing_workspace(folder):
        return UcpError(
            f"nothing was started in {folder}, but in {outer}", next=_advise_workspace(outer)
        )
    absent = "" if folder.exists() else ", which does not exist"
    return UcpError(f"nothing was started in {folder}{absent}", next="ucp start")


def _advise_workspace(folder: Path) -> str:
    flag = command_line("--workspace", folder)
    return f"{command_line('cd', folder)}, or add {flag} to the command"


def refuse_inner_folder(call: Invocation) -> None:
    """Refuse a folder that ucp made in another workspace, such as a clone in gitops/.

    The core repository contains ucp.yaml, so its clone would become a second workspace, and an edit
    of that file would change nothing. Raises UsageError.
    """
    folder = call.workspace.root
    outer = enclosing_workspace(folder)
    if not outer or "--workspace" in call.given:
        return
    if folder.relative_to(outer).parts[0] in _OWN_FOLDERS:
        raise UsageError(
            f"{folder} belongs to the workspace {outer}, in which a topology was started",
            next=_advise_workspace(outer),
        )


def chosen_topology(call: Invocation) -> Topology:
    """The topology as it was last started. Raises UcpError, UsageError."""
    from k8s_ucp.topology import default, load

    name = chosen_name(call)
    for path in (call.workspace.state(name).root / STARTED, call.workspace.topology_file):
        if path.exists() and (topology := load(path)).name == name:
            return topology
    # `ucp stop` must work whatever has happened to the files.
    return default(name, (), ())


def declared_topology(call: Invocation, file: Path | None = None) -> Topology:
    """The topology of `file`, or of the file that the command acts on, started or not.

    Raises UcpError, UsageError: also if --topology selects one that no file defines, since an edit
    or a stop would be that of the topology in ucp.yaml.
    """
    from k8s_ucp.topology import load

    if file:
        return load(file)
    refuse_inner_folder(call)
    path = declared_file(call)
    if not path.exists() and (outer := enclosing_workspace(call.workspace.root)):
        raise UsageError(
            f"{path} does not exist, but a topology was started in {outer}",
            next=_advise_workspace(outer),
        )
    if not path.exists():
        refuse_lost_file(call.workspace, call.topology, path)
    topology = load(path)
    if call.topology in (None, topology.name):
        return topology
    if call.topology in call.workspace.started():
        raise no_file_of(call.workspace, call.topology)
    raise UsageError(
        f"{path} defines the topology {topology.name}, not {call.topology}",
        next=f"leave out --topology {call.topology}",
    )


def no_file_of(workspace: Workspace, name: str) -> UsageError:
    """The error for a started topology that no file in the workspace defines."""
    state, file = workspace.state(name), workspace.root / f"{name}.yaml"
    copies = (state.root / STARTED, workspace.gitops(name).core / "ucp.yaml")
    copy = next((each for each in copies if each.exists()), copies[0])
    look = command_line("ucp", "start", "--plan", "--file", file)
    return UsageError(
        f"no valid file in {workspace.root} defines the topology {name}",
        next=f"find out why {file.name} does not: {look}"
        if file.exists()
        else f"move its file there, or restore it: {command_line('cp', copy, file)}",
    )


def refuse_lost_file(workspace: Workspace, topology: str | None, path: Path) -> None:
    """Say how a topology file that was deleted after a start is restored.

    A new file with the defaults would replace what the topology declares. topology: None for any.
    Raises UsageError.
    """
    from k8s_ucp.inspect.teardown.destruction import read_destruction

    for name in [topology] if topology else workspace.topologies():
        state = workspace.state(name)
        copy = state.root / STARTED
        if copy.exists() and read_destruction(state.destroyed) is None:
            file = file_of(workspace, name)
            with_file = f" with {file.name}" if file else ""
            raise UsageError(
                f"{path} does not exist, but the topology {name} was started here{with_file}",
                next=f"select one: --topology {name}"
                if file
                else f"restore it: {command_line('cp', copy, path)}",
            )


def chosen_view(call: Invocation) -> TopologyView:
    """A started topology, for commands that only read."""
    from k8s_ucp.context import TopologyView

    view = TopologyView(workspace=call.workspace, topology=chosen_topology(call))
    _renew(call, view)
    return view


def chosen_context(call: Invocation) -> StartContext:
    """A started topology, for steps."""
    from k8s_ucp.context import StartContext

    context = StartContext(workspace=call.workspace, topology=chosen_topology(call))
    _renew(call, context)
    return context


@contextmanager
def asking_core(context: TopologyView) -> Iterator[None]:
    """Raises UcpError with advice if the core cluster doesn't respond."""
    from k8s_ucp.kube import Unreachable

    try:
        yield
    except Unreachable as error:
        raise UcpError(context.core_silence(), next="ucp start") from error


def _renew(call: Invocation, context: TopologyView) -> None:
    """Renew Google's tokens, which expire after an hour; on failure only a note is printed."""
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
    """Apps of the topology file, for the shell's completion.

    Like the other completions it never fails or prints, since that would garble the line being
    typed.
    """
    return _names(incomplete, lambda topology: [each.name for each in topology.spec.apps])


def environment_names(incomplete: str) -> list[str]:
    """Environments of ucp.yaml, for completion."""
    return _names(incomplete, _environments)


def app_and_environment_names(incomplete: str) -> list[str]:
    """Apps and environments of ucp.yaml, for completion."""
    return [*app_names(incomplete), *environment_names(incomplete)]


def cluster_names(incomplete: str) -> list[str]:
    """Environments of ucp.yaml and the core cluster, for completion."""
    return _names(incomplete, lambda topology: ["core", *_environments(topology)])


def mirror_names(incomplete: str) -> list[str]:
    """Mirrors of ucp.yaml, for completion."""
    return _names(incomplete, lambda topology: [each.name for each in topology.spec.mirrors])


def team_names(incomplete: str) -> list[str]:
    """Teams of ucp.yaml, for completion."""
    return _names(incomplete, lambda topology: [each.name for each in topology.spec.teams])


def upgradable_names(incomplete: str) -> list[str]:
    """What `ucp upgrade` upgrades in the topology of ucp.yaml, for completion."""
    from k8s_ucp.steps.upgrading.parts import parts

    return _names(incomplete, lambda topology: [each.name for each in parts(topology)])


def topology_names(incomplete: str) -> list[str]:
    """Topologies that were started in the workspace, for completion."""
    with suppress(OSError):
        return starting_with(incomplete, _workspace_of_line().started())
    return []


def starting_with(incomplete: str, names: Iterable[str]) -> list[str]:
    """The names that complete what was typed."""
    return [each for each in names if each.startswith(incomplete)]


def _environments(topology: Topology) -> list[str]:
    return [each.name for each in topology.spec.environments]


def _names(incomplete: str, names: Callable[[Topology], Sequence[str]]) -> list[str]:
    from k8s_ucp.topology import load

    with suppress(UcpError, OSError):
        file = _declared_file(_workspace_of_line(), _typed("topology"))
        return starting_with(incomplete, names(load(file)))
    return []


def _workspace_of_line() -> Workspace:
    """The workspace that the line being typed selects."""
    return Workspace.at(Path(_typed("workspace") or "."))


def _typed(option: str) -> str | None:
    """The value of a global option in the line being typed."""
    line = next((os.environ[each] for each in _LINES if os.environ.get(each)), "")
    found = re.search(rf"--{option}[= ](\S+)", line)
    return found[1] if found else None
