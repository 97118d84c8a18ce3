"""`ucp logs COMPONENT`: prints the last logs of a component, a control plane or ucp itself."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from k8s_ucp.cli.command import Invocation, declare, examples, invocation
from k8s_ucp.cli.console import Console
from k8s_ucp.cli.topology_selection import chosen_name, chosen_topology, starting_with
from k8s_ucp.clusters.embedded.folder import COMPONENTS, ClusterFolder, clusters_in
from k8s_ucp.errors import UcpError, UsageError, command_line
from k8s_ucp.workspace import StateFolder

if TYPE_CHECKING:
    from k8s_ucp.components.pods.logs import PodLogs
    from k8s_ucp.topology import Topology

app = declare()

OFFERED = (
    "argocd", "crossplane", "reconciler", "cloud", "git-server", "redis", "watcher", "backup",
    "supervisord", "ucp",
)  # fmt: skip
"""Components for the help and for completion; some of them are only in some topologies."""

LINES = 200
POLL_SECONDS = 0.3
BLOCK = 64 * 1024


@app.command(
    epilog=examples(
        "ucp logs argocd -f",
        "ucp logs argocd-repo-server -n 50",
        "ucp logs demo-core/etcd",
    )
)
def logs(
    ctx: typer.Context,
    component: Annotated[
        str,
        typer.Argument(
            metavar="COMPONENT",
            help=(
                f"Component ({', '.join(OFFERED)}), program such as argocd-repo-server, or part of "
                "a control plane such as demo-core/etcd."
            ),
            autocompletion=lambda incomplete: starting_with(incomplete, OFFERED),
        ),
    ],
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Follow the logs until Ctrl-C.")
    ] = False,
    lines: Annotated[
        int,
        typer.Option(
            "-n",
            "--lines",
            metavar="N",
            min=0,
            help="Number of lines to print from the end of each log.",
        ),
    ] = LINES,
) -> None:
    """Print the end of a component's logs."""
    call = invocation(ctx)
    console = call.console
    if in_pods := _pod_logs(call, component):
        _print_pods(in_pods, lines, console, follow=follow)
        return
    state = call.workspace.state(chosen_name(call))
    try:
        files = find_logs(state, component)
    except UsageError:
        refuse_app(chosen_topology(call), state, component)
        raise
    ends = {}
    for name, path in files.items():
        text, ends[name] = tail(path, lines)
        console.data(_marked(name, text, len(files))) if text else None
    if follow:
        _follow(files, ends, console)


def _pod_logs(call: Invocation, component: str) -> PodLogs | None:
    """The logs of a component in pods, by its name or a workload's; None for others."""
    from k8s_ucp.cli.topology_selection import chosen_view
    from k8s_ucp.components.adoption.adopted import find_component
    from k8s_ucp.components.pods import pod_components
    from k8s_ucp.components.pods.logs import PodLogs

    context = chosen_view(call)
    if not context.in_pods:
        return None
    by_component = {
        name: find_component(context.kube, name).workloads
        if context.adopts(name)
        else pod_components.workloads(name, context.topology)
        for name in pod_components.ENTRIES
    }
    singles = {each.name: [each] for found in by_component.values() for each in found}
    wanted = {**singles, **by_component}.get(component)
    return PodLogs(context.kube, wanted) if wanted else None


def _print_pods(logs: PodLogs, lines: int, console: Console, *, follow: bool) -> None:
    while True:
        found = logs.read(lines)
        for name, new in found.items():
            if new:
                console.data(_marked(name, "\n".join(new), len(found)))
        if not follow:
            return
        time.sleep(POLL_SECONDS)


def all_logs(state: StateFolder) -> dict[str, Path]:
    """All log files on this machine, by the name of their program."""
    files = {path.stem: path for path in sorted(state.logs.glob("*.log"))}
    for cluster in clusters_in(state.clusters):
        for program in COMPONENTS:
            path = ClusterFolder(state.clusters, cluster).log(program)
            if path.exists():
                files[f"{cluster}/{program}"] = path
    return files


def find_logs(state: StateFolder, component: str) -> dict[str, Path]:
    """Log files by the name of their program. Raises UsageError, which lists those that exist."""
    from k8s_ucp.reconciler.runtime.settings import ON_MACHINES

    files = all_logs(state)
    if component in ON_MACHINES:
        # Controllers of the reconciler process on this machine, also for a core in pods.
        component = "reconciler"
    if component in files:
        return {component: files[component]}
    found = {
        name: path
        for name, path in files.items()
        if name.startswith((f"{component}-", f"{component}/"))
    }
    if found:
        return found
    if not files:
        raise UcpError(f"no logs in {state.logs}", next="ucp start")
    from k8s_ucp.topology.problems import nearest

    clusters = sorted({name.partition("/")[0] for name in files if "/" in name})
    programs = [name for name in files if "/" not in name]
    families = sorted({name.partition("-")[0] for name in programs})
    near = nearest(component, [*families, *files, *clusters])
    raise UsageError(
        f"no logs of {component}; available: {', '.join([*programs, *clusters])}",
        next=f"ucp logs {near or next(iter(files))}",
    )


def refuse_app(topology: Topology, state: StateFolder, name: str) -> None:
    """Raises UsageError if it is the name of an app, whose pods write no log on this machine."""
    app = next((each for each in topology.spec.apps if each.name == name), None)
    if app is None or not topology.spec.environments:
        return
    clusters = [topology.app_cluster(each.name) for each in topology.spec.environments]
    files = [state.kubeconfig(each) for each in clusters]
    file = next((each for each in files if each.exists()), files[0])  # not of a stopped one
    namespace = app.namespace or name
    command = command_line("kubectl", "--kubeconfig", file, "-n", namespace, "get", "pods")
    raise UsageError(
        f"{name} is an app: its pods' logs are in the clusters of its environments",
        next=command,
    )


def tail(path: Path, lines: int) -> tuple[str, int]:
    """The last lines of a file, and its size. Raises UcpError."""
    try:
        with path.open("rb") as stream:
            end = position = stream.seek(0, os.SEEK_END)
            found = b""
            while position > 0 and found.count(b"\n") <= lines:
                step = min(BLOCK, position)
                position -= step
                stream.seek(position)
                block = stream.read(step)
                found = block + found
                if block and not block.strip(b"\0"):
                    break  # a hole: the watcher freed the space of older lines
    except OSError as error:
        raise UcpError(f"failed to read {path}: {error.strerror}") from error
    kept = found.lstrip(b"\0").splitlines()[-lines:] if lines else []
    return b"\n".join(kept).decode("utf-8", "replace"), end


def _follow(files: dict[str, Path], ends: dict[str, int], console: Console) -> None:
    while True:
        for name, path in files.items():
            try:
                size = path.stat().st_size
                if size < ends[name]:  # rotated
                    ends[name] = 0
                if size == ends[name]:
                    continue
                with path.open("rb") as stream:
                    stream.seek(ends[name])
                    text = stream.read(BLOCK)
            except OSError:
                continue
            complete = text[: text.rfind(b"\n") + 1] or (text if len(text) == BLOCK else b"")
            ends[name] += len(complete)
            if complete:
                console.data(_marked(name, complete.decode("utf-8", "replace"), len(files)))
        time.sleep(POLL_SECONDS)


def _marked(name: str, text: str, count: int) -> str:
    """The text, with a prefix on each line if there are several logs."""
    if count == 1:
        return text
    return "\n".join(f"{name}: {line}" for line in text.splitlines())
