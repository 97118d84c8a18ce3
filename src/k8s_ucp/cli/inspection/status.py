"""`ucp status`: prints the state of the topology as tables, or as data for programs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from k8s_ucp import __version__
from k8s_ucp.cli.command import (
    Invocation,
    Output,
    OutputOption,
    declare,
    invocation,
    notation,
    placed,
)
from k8s_ucp.cli.console import table
from k8s_ucp.cli.topology_selection import chosen_view
from k8s_ucp.components import argocd, cloud, crossplane, reconciler
from k8s_ucp.components.adoption.adopted import AdoptedComponent
from k8s_ucp.context import TopologyView
from k8s_ucp.engine import journal
from k8s_ucp.engine.journal import RunRecord
from k8s_ucp.errors import NEXT_STEP, UcpError, UsageError
from k8s_ucp.gitops.promotion.message import shorten_digests
from k8s_ucp.inspect import status
from k8s_ucp.inspect.status import ClusterSnapshot, ComponentStatus, Status
from k8s_ucp.inspect.teardown.abandoned import AbandonedRecord
from k8s_ucp.inspect.teardown.destruction import Destruction, read_destruction
from k8s_ucp.tools.kept import kept_versions
from k8s_ucp.topology.placement import NO_DATA, core_is_existing, simulated_databases

app = declare()

WATCH_SECONDS = 2.0
SHOWN_IMAGES = 2
SHOWN_CLAIMS = 20
WIDE = 100
"""Minimum width of a terminal, in columns, for the optional columns of the tables."""
PLACES = {"host": "host process", "pods": "pods"}


@app.command("status")
def show(
    ctx: typer.Context,
    watch: Annotated[
        bool, typer.Option("--watch", help="Refresh the output until Ctrl-C.")
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
    # Only ports and paths are read here; no program is started.
    while True:
        seen = collect(context)
        runs, unreadable = journal.unfinished(context.state)
        summary = status.summarize(context.topology, seen)
        if abandoned := AbandonedRecord(context.state.abandoned).resources():
            summary["abandoned"] = [each.data() for each in abandoned]
        if not seen.core_ready and (destroyed := read_destruction(context.state.destroyed)):
            summary["destroyed"] = _destroyed(destroyed, summary["topology"], call)
        summary["unfinished"] = [_run(each, call) for each in runs]
        text = (
            _page(
                summary,
                seen,
                simulated_databases(context.topology),
                call.console.width,
                placed("ucp start", call.given),
            )
            if output is Output.table
            else notation(summary, output)
        )
        for each in unreadable:
            call.console.say(f"note: {each}")
        if not watch:
            call.console.data(text)
            if exit_code and not status.is_well(summary):
                raise typer.Exit(UcpError.exit_code)
            return
        call.console.redraw(text)
        time.sleep(WATCH_SECONDS)


def collect(context: TopologyView) -> ClusterSnapshot:
    """Collect everything that `ucp status` shows."""
    seen = status.collect(
        context.topology,
        context.state.kubeconfig,
        lambda: _components(context),
        context.fence.permit(),
    )
    placement = context.placement
    ended = placement.is_stopping() and not placement.states()
    # An existing core cluster keeps running, so a missing response is a failure.
    return replace(
        seen,
        stopped=ended and not seen.core_ready and not core_is_existing(context.topology),
    )


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
    return status.ask_components([context.component(name) for name in versions], versions)


def _adopted(context: TopologyView) -> list[ComponentStatus]:
    """Adopted components, which run independently of our processes."""
    names = context.topology.spec.core.adopt
    if not names or not context.state.kubeconfig(context.topology.core_cluster).exists():
        return []
    return status.ask_components([AdoptedComponent(each, context.kube) for each in names], {})


def _page(
    summary: Status,
    seen: ClusterSnapshot,
    databases: Mapping[str, Sequence[str]],
    width: int | None = None,
    start: str = "ucp start",
) -> str:
    """The tables. databases: simulated ones with their environments. start: command to suggest."""
    if "destroyed" in summary:
        return _destroyed_page(summary, width)
    core, why = summary["core"], {} if seen.stopped else status.reasons(seen)
    away = "" if core["ready"] or seen.stopped else "not responding: ucp start, or ucp doctor"

    def word(ready: bool) -> str:
        return "stopped" if seen.stopped else _word(ready)

    rows = [["core cluster", core["name"], core["provider"], word(core["ready"]), away]]
    if (fence := summary["fence"]) and fence["message"]:
        advice = f"{fence['message']}; see ucp doctor"
        rows.append(["fence", core["name"], f"epoch {fence['epoch']}", fence["state"], advice])
    for each in summary["components"]:
        rows.append(
            [
                "component",
                each["name"],
                ", ".join(
                    [
                        each["version"] or "version unknown",
                        *(["adopted"] if each.get("adopted") else []),
                        *(["simulated"] if each["name"] == cloud.NAME else []),
                        PLACES[each["placement"]],
                    ]
                ),
                word(each["ready"]),
                why.get(each["name"], ""),
            ]
        )
    for each in summary["environments"]:
        cluster = each["cluster"]
        rows.append(
            [
                f"environment {each['name']}",
                cluster["name"],
                _how(cluster),
                "stopped" if seen.stopped else _environment_word(each),
                status.why_environment(each, why) if core["ready"] else "",
            ]
        )
    rows += [
        [f"database {name}", ", ".join(places), "local", NO_DATA, ""]
        for name, places in databases.items()
    ]
    pages = [table(("what", "name", "how", "state", "why"), rows, width=width)]
    if summary["applications"]:
        narrow = width is not None and width < WIDE
        rows = [
            [
                each["name"],
                each["environment"],
                each["sync"] or "Unknown",
                each["health"] or "Unknown",
                *([] if narrow else [(each["revision"] or "")[:8], _images(each["images"])]),
                why.get(each["name"], ""),
            ]
            for each in summary["applications"]
        ]
        more = () if narrow else ("commit", "images")
        columns = ("application", "environment", "sync", "health", *more, "why")
        pages.append(table(columns, rows, width=width))
    if summary["mirrors"]:
        rows = [
            [
                each["name"],
                ", ".join(target["cluster"] for target in each["targets"] if target["ready"]),
                ", ".join(target["cluster"] for target in each["targets"] if not target["ready"]),
                _word(each["ready"]),
                why.get(f"mirror {each['name']}", ""),
            ]
            for each in summary["mirrors"]
        ]
        pages.append(table(("mirror", "done", "not yet", "state", "why"), rows, width=width))
    if waiting := [each for each in summary["claims"] if not each["ready"]]:
        rows = [
            [_claim(each), _word(each["ready"]), why.get(f"claim {_claim(each)}", "")]
            for each in waiting[:SHOWN_CLAIMS]
        ]
        if len(waiting) > SHOWN_CLAIMS:
            rows.append([f"and {len(waiting) - SHOWN_CLAIMS} more", "", "see -o json"])
        pages.append(table(("claim", "state", "why"), rows, width=width))
    pages += _abandoned(summary, width)
    what = f" is stopped{NEXT_STEP}{start}" if seen.stopped else ""
    head = [
        f"topology {summary['topology']}{what}",
        *map(_unfinished, summary.get("unfinished", ())),
    ]
    return "\n".join(head) + "\n\n" + "\n\n".join(pages)


def _destroyed(found: Destruction, topology: str, call: Invocation) -> Status:
    return {
        "at": found.at,
        "ended": found.ended,
        "kept": list(found.kept),
        "message": found.words(topology),
        "next": placed(found.next, call.given),
    }


def _destroyed_page(summary: Status, width: int | None) -> str:
    """The page of a destroyed topology, which can't be queried and hasn't failed."""
    found = summary["destroyed"]
    head = [f"topology {found['message']}{NEXT_STEP}{found['next']}"]
    head += map(_unfinished, summary.get("unfinished", ()))
    return "\n\n".join(["\n".join(head), *_abandoned(summary, width)])


def _abandoned(summary: Status, width: int | None) -> list[str]:
    """The table of abandoned resources, if there are any."""
    if not (abandoned := summary.get("abandoned")):
        return []
    rows = [[each["object"], each["since"], each["error"]] for each in abandoned]
    columns = ("abandoned, may still be billed", "since", "last error")
    return [table(columns, rows, width=width)]


def _run(record: RunRecord, call: Invocation) -> Status:
    """A run that is in progress or was interrupted."""
    return {
        "command": record.command,
        "state": record.state,
        "began": record.began,
        "in": record.unfinished,
        "message": str(record),
        "next": None if record.state == "running" else placed(record.next, call.given),
    }


def _unfinished(run: Status) -> str:
    return f"{run['message']}{NEXT_STEP}{run['next']}" if run["next"] else str(run["message"])


def _images(images: list[str]) -> str:
    """The first images; `-o json` has all."""
    more = f" and {len(images) - SHOWN_IMAGES} more" if len(images) > SHOWN_IMAGES else ""
    return shorten_digests(", ".join(images[:SHOWN_IMAGES])) + more


def _claim(each: Status) -> str:
    """Its name as in status.reasons."""
    return f"{each['kind']} {'/'.join(filter(None, (each['namespace'], each['name'])))}"


def _how(cluster: Status) -> str:
    """Provider, whether it is simulated, and its HTTP address on this machine."""
    words = [cluster["provider"], *(["simulated"] if cluster["simulated"] else [])]
    words += [f"http {each}" for name, each in cluster["addresses"].items() if name == "http"]
    return ", ".join(words)


def _word(ready: bool) -> str:
    return "ready" if ready else "NOT READY"


def _environment_word(environment: Status) -> str:
    cluster = environment["cluster"]
    if environment["state"] != "running":
        return str(environment["state"])
    if not cluster["ready"]:
        return "NOT READY"
    if not cluster["registered"]:
        return "not registered"
    return "ready" if cluster["reachable"] else "not reachable"
