"""`ucp events`: prints the Events of all clusters, merged by time."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from k8s_ucp import names
from k8s_ucp.cli.command import (
    Invocation,
    Output,
    OutputOption,
    declare,
    examples,
    invocation,
    option,
)
from k8s_ucp.cli.topology_selection import app_names, chosen_view, environment_names
from k8s_ucp.context import TopologyView
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.inspect.events import EventLine, EventScope, Filter, merged
from k8s_ucp.inspect.watch import WatchChange, follow
from k8s_ucp.kube import EVENT, LOCAL_CLUSTER, Kube, Object

app = declare()

LINES = 200
ANSWER_SECONDS = 5.0
"""Timeout for a page of a cluster's Events."""
COLUMNS = ("time", "cluster", "app", "about", "type", "reason", "message")


@app.command(
    "events",
    epilog=examples(
        "ucp events --app echo --env stage",
        "ucp events -f --object Application/echo-stage",
    ),
)
def show(
    ctx: typer.Context,
    of_app: Annotated[
        str,
        option(
            "--app",
            "NAME",
            "Only Events about this app.",
            show_default=False,
            autocompletion=app_names,
        ),
    ] = "",
    environment: Annotated[
        str,
        option(
            "--env",
            "NAME",
            "Only Events about this environment.",
            show_default=False,
            autocompletion=environment_names,
        ),
    ] = "",
    about: Annotated[
        str,
        option(
            "--object",
            "[KIND/]NAME",
            "Only Events about this object, such as Application/echo-stage.",
            show_default=False,
        ),
    ] = "",
    follow_on: Annotated[
        bool, typer.Option("-f", "--follow", help="Follow the Events until Ctrl-C.")
    ] = False,
    lines: Annotated[
        int,
        typer.Option(
            "-n", "--lines", metavar="N", min=0, help="Number of Events to print, the newest."
        ),
    ] = LINES,
    output: OutputOption = Output.table,
) -> None:
    """Print the Events of Argo CD, Crossplane, the reconciler and all clusters, the newest last.

    Clusters that do not respond are named on stderr, and in `notAsked` of the JSON. With -f, -o
    json prints an object for each Event.
    """
    if follow_on and output is Output.yaml:
        raise UsageError("--follow does not support -o yaml", next="ucp events -f -o json")
    call = invocation(ctx)
    context = chosen_view(call)
    scope, not_asked = _scope(context)
    if scope.core not in not_asked:  # else only the names in ucp.yaml are known
        scope.check(of_app, environment)
    wanted = Filter(of_app, environment, about)
    files = {name: context.state.kubeconfig(name) for name in (scope.core, *scope.environments)}
    found = _listed(files, not_asked)
    for name, why in not_asked.items():
        call.console.say(f"note: failed to list the Events of {name}: {why}")
    lines_found = [scope.line(name, each) for name, events in found.items() for each in events]
    kept = merged(filter(wanted.keeps, lines_found), lines)
    if not follow_on:
        data = {
            "events": kept,
            "notAsked": [{"cluster": c, "why": w} for c, w in not_asked.items()],
        }
        if found or output is not Output.table:
            call.show_list(output, data, COLUMNS, [_row(each) for each in kept])
        if not found:
            raise UcpError("no cluster is responding", next="ucp start, or ucp doctor")
        return
    for each in kept:
        _print(call, output, each)
    known = {name: {_version(each) for each in events} for name, events in found.items()}
    for name, event in _followed(call, files, known):
        line = scope.line(name, event)
        if wanted.keeps(line):
            _print(call, output, line)


def _listed(files: Mapping[str, Path], not_asked: dict[str, str]) -> dict[str, list[Object]]:
    """{cluster: its Events}. Clusters that fail to answer are added to not_asked, with the error.

    files: {cluster: its kubeconfig}.
    """
    found = {}
    with ThreadPoolExecutor(16, "events") as pool:
        asked = {
            name: pool.submit(_events, path)
            for name, path in files.items()
            if name not in not_asked
        }
        for name, answer in asked.items():
            try:
                found[name] = answer.result()
            except UcpError as error:
                not_asked[name] = error.message
    return found


def _scope(context: TopologyView) -> tuple[EventScope, dict[str, str]]:
    """(places of all clusters; the core's error, and then only places of declared clusters)"""
    core = context.topology.core_cluster
    try:
        clusters = context.kube.list_all(LOCAL_CLUSTER, names.CLUSTERS_NAMESPACE)
        return EventScope.of(context.topology, clusters, context.applications()), {}
    except UcpError as error:
        return EventScope.of(context.topology, (), ()), {core: error.message}


def _events(kubeconfig: Path) -> list[Object]:
    """The Events of a cluster. Raises UcpError."""
    kube = Kube.from_file(kubeconfig)
    try:
        return kube.list_with_version(EVENT, timeout=ANSWER_SECONDS)[0]
    finally:
        kube.close()


def _followed(
    call: Invocation, files: Mapping[str, Path], known: Mapping[str, set[str]]
) -> Iterator[tuple[str, Object]]:
    """New Events as they arrive, with their cluster. known: versions that were printed already."""
    changes: queue.SimpleQueue[tuple[str, WatchChange]] = queue.SimpleQueue()

    def watch(name: str, path: Path) -> None:
        for change in follow(partial(Kube.from_file, path), EVENT, None, threading.Event()):
            changes.put((name, change))

    for name, path in files.items():
        # Daemon threads, so that Ctrl-C ends the command whatever they wait for.
        threading.Thread(target=watch, args=(name, path), name=name, daemon=True).start()
    versions = {name: known.get(name, set()) for name in files}
    lost = {name for name in files if name not in known}
    while True:
        name, change = changes.get()
        if change.what == "LOST":
            if name not in lost:
                call.console.say(f"note: {name} does not respond: {change.why}")
            lost.add(name)
            continue
        if name in lost:
            lost.discard(name)
            call.console.say(f"note: {name} responds")
        for each in change.items:
            if change.what != "DELETED" and _version(each) not in versions[name]:
                yield name, each
        if change.what == "LISTED":
            versions[name] = set()
        versions[name] |= {_version(each) for each in change.items}


def _version(event: Object) -> str:
    return f"{event['metadata'].get('uid')} {event['metadata'].get('resourceVersion')}"


def _row(line: EventLine) -> list[str]:
    times = f" (x{line['count']})" if line["count"] > 1 else ""
    time = f"{str(line['last'])[:19]}Z" if line["last"] else ""
    values = {**line, "time": time, "message": f"{line['message']}{times}"}
    return [str(values[name] or "") for name in COLUMNS]


def _print(call: Invocation, output: Output, line: EventLine) -> None:
    if output is Output.json:
        call.console.data(json.dumps(line))
    else:
        call.console.data("   ".join(" ".join(each.split()) or "-" for each in _row(line)))
