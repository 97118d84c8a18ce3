"""`ucp status`: prints the state of the topology as tables, or as data for programs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, cast

import typer

from k8s_ucp import __version__
from k8s_ucp.cli.command import (
    Invocation,
    Output,
    OutputOption,
    declare,
    examples,
    invocation,
    notation,
    with_given_options,
)
from k8s_ucp.cli.inspection.status_page import page
from k8s_ucp.cli.topology_selection import app_and_environment_names, chosen_view
from k8s_ucp.clusters.ports import refuse_taken
from k8s_ucp.components import argocd, cloud, crossplane, reconciler
from k8s_ucp.components.adoption.adopted import AdoptedComponent
from k8s_ucp.components.watcher import NAME as WATCHER
from k8s_ucp.context import TopologyView
from k8s_ucp.engine import journal
from k8s_ucp.engine.journal import RunRecord
from k8s_ucp.errors import UcpError, UsageError, unknown_name
from k8s_ucp.git.repository import Repository
from k8s_ucp.inspect import cluster_snapshot, status
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot, ComponentStatus
from k8s_ucp.inspect.overlay_versions import holds_in, is_marks_file
from k8s_ucp.inspect.status import Status
from k8s_ucp.inspect.teardown.abandoned import AbandonedRecord
from k8s_ucp.inspect.teardown.destruction import Destruction, read_destruction
from k8s_ucp.tools.kept_versions import kept_versions
from k8s_ucp.topology import Topology
from k8s_ucp.topology.placement import simulated_databases
from k8s_ucp.topology.problems import nearest

if TYPE_CHECKING:
    from k8s_ucp.cluster_provider import UpgradingProvider

app = declare()

WATCH_SECONDS = 2.0


@app.command(
    "status",
    epilog=examples(
        "ucp status echo",
        "ucp status --watch",
        "ucp status --exit-code -o json",
    ),
)
def show(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAME]",
            help="Show only this app, environment, component or mirror.",
            autocompletion=app_and_environment_names,
        ),
    ] = "",
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Refresh the output until Ctrl-C.")
    ] = False,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code", help="Exit with 1 unless everything is ready, Synced and Healthy."
        ),
    ] = False,
    output: OutputOption = Output.table,
) -> None:
    """Show the core cluster, components, environments, applications, mirrors and waiting claims."""
    if watch and exit_code:
        raise UsageError(
            "--watch and --exit-code are mutually exclusive",
            next="use only one of them",
        )
    call = invocation(ctx)
    context = chosen_view(call)
    # Only ports, paths and local repositories are read here; none of the engines is started.
    while True:
        snapshot = collect(context)
        runs, unreadable = journal.unfinished(context.state)
        summary = _summary(call, context, snapshot, name)
        summary["unfinished"] = [_run(each, call) for each in runs]
        text = (
            page(
                summary,
                snapshot,
                {} if name else simulated_databases(context.topology),
                call.console.width,
                with_given_options("ucp start", call.given),
            )
            if output is Output.table
            else notation(summary, output)
        )
        for each in unreadable:
            call.console.say(f"note: {each}")
        if not watch:
            call.console.data(text)
            if exit_code and not status.is_healthy(summary):
                raise typer.Exit(UcpError.exit_code)
            return
        call.console.redraw(text)
        time.sleep(WATCH_SECONDS)


def _summary(
    call: Invocation, context: TopologyView, snapshot: ClusterSnapshot, name: str
) -> Status:
    """The data to show, also from records on this machine. name: only this part."""
    summary = status.summarize(context.topology, snapshot)
    if name:
        summary = _selected(summary, name, context.topology)
    holds = _holds(context) if summary["applications"] else {}
    for each in summary["applications"]:
        each["held"] = holds.get((each["app"], each["environment"]), [])
    if abandoned := AbandonedRecord(context.state.abandoned).resources():
        summary["abandoned"] = [each.data() for each in abandoned]
    if not snapshot.core_ready and (destroyed := read_destruction(context.state.destroyed)):
        summary["destroyed"] = _destroyed(destroyed, summary["topology"], call)
    return summary


def _selected(summary: Status, name: str, topology: Topology) -> Status:
    """The part of the summary that has this name. Raises UsageError if nothing can have it."""
    found = status.selected(summary, name)
    if found:
        return found
    parts = ("environments", "components", "mirrors", "claims")
    names = [each.name for each in topology.spec.apps]
    if name in names:
        missing = [
            status.missing_application(name, each.name) for each in topology.spec.environments
        ]
        return {**summary, **{what: [] for what in parts}, "applications": missing}
    names += [each["name"] for what in parts for each in summary[what]]
    raise unknown_name(
        "app, environment, component or mirror",
        name,
        [*dict.fromkeys(names)],
        next=f"ucp status {nearest(name, names) or ''}".strip(),
    )


def _holds(context: TopologyView) -> Mapping[tuple[str, str], list[str]]:
    """Versions on hold by (app, environment), as last fetched; none if they can't be read."""
    folder = context.gitops
    here = folder.apps_remote.is_dir()
    place = folder.apps_remote if here else folder.apps
    if not place.is_dir():
        return {}
    ref = f"refs/{'heads' if here else 'remotes/origin'}/{context.topology.spec.git.branch}"
    repository = Repository(place)
    try:
        listing = repository.listing(ref, "apps")
        marks = {path: entry.id for path, entry in listing.items() if is_marks_file(path)}
        contents = repository.contents(marks.values())
    except UcpError:
        return {}
    return holds_in({path: contents[id] for path, id in marks.items()})


def collect(context: TopologyView) -> ClusterSnapshot:
    """Collect everything that `ucp status` shows."""
    if original := context.workspace.original():
        # The kubeconfigs in the copy are those of the original's clusters.
        return ClusterSnapshot(core_ready=False, stopped=True, original=original)
    programs = context.placement.states()
    guarded = WATCHER in programs and programs[WATCHER].running
    snapshot = cluster_snapshot.collect(
        context.topology,
        context.state.kubeconfig,
        lambda: _components(context),
        context.fence.seen(guarded=guarded),
    )
    return replace(
        snapshot,
        core_problem=_core_problem(context) if snapshot.core_ready else "",
        stopped=not snapshot.core_ready and context.is_stopped(),
    )


def _core_problem(context: TopologyView) -> str:
    """Which programs of an embedded core have failed; its API server responds without them."""
    if not context.provider.info.pinned_version:
        return ""
    provider = cast("UpgradingProvider", context.provider)
    programs = provider.programs(context.topology.core_cluster)
    return ", ".join(f"{name}: {each.message}" for name, each in programs.items() if each.message)


def _components(context: TopologyView) -> list[ComponentStatus]:
    kept = kept_versions(context.topology, context.state)
    versions = {
        argocd.NAME: f"v{kept[argocd.NAME]}",
        crossplane.NAME: f"v{kept[crossplane.NAME]}",
        reconciler.NAME: f"v{__version__}",
        **({cloud.NAME: cloud.simulator_version()} if context.simulates_cloud else {}),
    }
    if not context.placement.states():
        # Without our processes nothing can be ready, so no port needs to be queried.
        found = [
            ComponentStatus(name, version, ready=False, placement=place, message="not running")
            for name, version in versions.items()
            if not context.adopts(name)
            if (place := "pods" if context.in_pods else "host")
        ]
        return [*_adopted(context), *found]
    found = cluster_snapshot.query_components(
        [context.component(name) for name in versions], versions
    )
    return found if context.in_pods else _with_taken_ports(context, found)


def _with_taken_ports(
    context: TopologyView, components: Sequence[ComponentStatus]
) -> list[ComponentStatus]:
    """Name the program that has the port of a component that isn't ready."""
    if all(each.ready for each in components):
        return list(components)

    unused = context.placement.unused(context.host.ports)

    def why(each: ComponentStatus) -> str:
        try:
            refuse_taken_ports(context, each.name, unused)
        except UcpError as error:
            return error.message
        return each.message

    return [each if each.ready else replace(each, message=why(each)) for each in components]


def refuse_taken_ports(context: TopologyView, component: str, unused: Mapping[str, int]) -> None:
    """Raises UcpError if another program has a port of a component on this machine.

    unused: ports on which none of our programs listens.
    """
    ports = {name: port for name, port in unused.items() if name.startswith(component)}
    try:
        refuse_taken(ports, f"topology {context.topology.name}")
    except UcpError:
        # Ours may have begun to listen meanwhile.
        if context.placement.unused(ports) == ports:
            raise


def _adopted(context: TopologyView) -> list[ComponentStatus]:
    """Adopted components, which run independently of our processes."""
    names = context.topology.spec.core.adopt
    if not names or not context.state.kubeconfig(context.topology.core_cluster).exists():
        return []
    adopted = [AdoptedComponent(each, context.kube) for each in names]
    return cluster_snapshot.query_components(adopted, {})


def _destroyed(found: Destruction, topology: str, call: Invocation) -> Status:
    return {
        "at": found.at,
        "ended": found.ended,
        "kept": list(found.kept),
        "message": found.message(topology),
        "next": with_given_options(found.next, call.given),
    }


def _run(record: RunRecord, call: Invocation) -> Status:
    """A run that is in progress or was interrupted."""
    return {
        "command": record.command,
        "state": record.state,
        "began": record.began,
        "in": record.unfinished,
        "message": str(record),
        "next": None if record.state == "running" else with_given_options(record.next, call.given),
    }
