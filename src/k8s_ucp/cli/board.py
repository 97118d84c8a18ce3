"""`ucp board`: serves the topology as a page in the browser; `--write` allows changes."""

from __future__ import annotations

import os
import webbrowser
from dataclasses import replace
from typing import Annotated

import typer

from k8s_ucp.board.actions import Action, Outcome
from k8s_ucp.board.collector import Collector
from k8s_ucp.board.idle import is_woken, rest, wake
from k8s_ucp.board.live import LiveSource
from k8s_ucp.board.repository import AppRepository
from k8s_ucp.board.security import Sessions
from k8s_ucp.board.server import Board, BoardServer, Rest, listen
from k8s_ucp.cli.command import Invocation, declare, examples, invocation, with_given_options
from k8s_ucp.cli.git_credentials import credential_of
from k8s_ucp.cli.inspection.doctor import examined
from k8s_ucp.cli.inspection.status import collect
from k8s_ucp.cli.promotion.landing import Promotions, land_promotions
from k8s_ucp.cli.promotion.results import words
from k8s_ucp.cli.promotion.rollback import land_rollback
from k8s_ucp.cli.topology_selection import chosen_view
from k8s_ucp.clusters.admin_kubeconfigs import keep_access
from k8s_ucp.context import TopologyView
from k8s_ucp.gitops.promotion.ci import find_run
from k8s_ucp.gitops.promotion.decision import REFUSALS, Intent
from k8s_ucp.gitops.promotion.landing import Landing
from k8s_ucp.gitops.promotion.rollback import Rollback
from k8s_ucp.gitops.promotion.targets.versions import parse_version
from k8s_ucp.inspect import status
from k8s_ucp.inspect.doctor.finding import Finding
from k8s_ucp.kube import Kube
from k8s_ucp.topology_graph.graph import topology_graph
from k8s_ucp.topology_graph.svg import svg

app = declare()

IDLE_SECONDS = 30.0
"""Seconds without requests and open pages until the server rests; also the interval of checks."""
PUSH_SECONDS = 60.0
"""Timeout of a change, since somebody waits for it in the browser."""


@app.command(
    epilog=examples(
        "ucp board --write",
        "ucp board --port 8080 --no-browser",
    )
)
def board(
    ctx: typer.Context,
    write: Annotated[
        bool,
        typer.Option("--write", help="Allow promotions, rollbacks and holds. Default: read-only."),
    ] = False,
    port: Annotated[
        int,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65535,
            show_default=False,
            help="Port on 127.0.0.1. Default: a free one.",
        ),
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the URL without opening a browser.")
    ] = False,
) -> None:
    """Serve a page that shows the topology as it changes, until Ctrl-C.

    The page is served on 127.0.0.1 only. Each printed URL admits one browser; the next URL is
    printed once it is used.
    """
    serve_board(invocation(ctx), write=write, port=port, browser=not no_browser)


def serve_board(
    call: Invocation, *, write: bool = False, port: int = 0, browser: bool = True
) -> None:
    """Serve until Ctrl-C. port: 0 for a free one. A board that wakes up keeps its state."""
    woken = is_woken()
    listener, kept = wake() if woken else (None, None)
    sessions = Sessions(kept)
    board = _board(call, sessions, write=write)
    listener = listener or listen(port)
    idle = Rest(IDLE_SECONDS, lambda: rest(listener, sessions.kept()))
    server = BoardServer(board, listener, call.console.data, idle)
    try:
        if not woken:
            call.console.data(server.url)
            if browser and not webbrowser.open(server.url):
                call.console.say("no browser found: open the URL yourself")
        server.serve_forever(IDLE_SECONDS)
    except KeyboardInterrupt:
        # This is how it is stopped.
        return
    finally:
        server.server_close()


def _board(call: Invocation, sessions: Sessions, *, write: bool) -> Board:
    context = chosen_view(call)
    context.refuse_copy()
    # Only ports and paths are read here; no program is started.
    call = replace(call, topology=context.topology.name)
    kubeconfig = context.state.kubeconfig(context.topology.core_cluster)
    keep_access(context.provider, context.topology.core_cluster, kubeconfig, call.console.say)
    repository = AppRepository(
        context.gitops,
        context.topology.spec.git.branch,
        credential_of(context.topology, call.workspace),
    )

    def advice(finding: Finding) -> Finding:
        return replace(finding, next=with_given_options(finding.next, call.given))

    source = LiveSource(
        context.topology,
        connect=lambda: Kube.from_file(kubeconfig),
        examine=lambda: examined(context),
        versions=repository.read,
        advice=advice,
        may_change=write,
    )
    return Board(
        context.topology.name,
        Collector(source),
        picture=lambda: _picture(context),
        history=repository.history,
        run=(lambda action: _run(call, action)) if write else None,
        sessions=sessions,
    )


def _picture(context: TopologyView) -> str:
    """The picture that `ucp graph -o svg` draws."""
    found = collect(context)
    summary = status.summarize(context.topology, found) if found.core_ready else {}
    return svg(topology_graph(context.topology, summary))


def _run(call: Invocation, action: Action) -> Outcome:
    """Run what `ucp promote` or `ucp rollback` would; returns its output. Raises UcpError."""
    if action.kind == "promote":
        run = find_run(os.environ)
        images = {name: parse_version(version) for name, version in action.images.items()}
        intent = Intent(action.app, action.env, images=images, seen=action.seen)
        landing, warning = land_promotions(call, Promotions([intent], run, PUSH_SECONDS))
    else:
        wanted = Rollback(
            action.app,
            action.env,
            release_hold=action.kind == "release-hold",
            hold=action.kind == "hold",
            seen=action.seen,
        )
        landing, warning = land_rollback(call, wanted, "", "", "", PUSH_SECONDS)
    return _outcome(call, landing, warning)


def _outcome(call: Invocation, landing: Landing, warning: str) -> Outcome:
    lines = [with_given_options(words(each, landing), call.given) for each in landing.decisions]
    refused = any(each.status in REFUSALS for each in landing.decisions)
    return Outcome(not refused, "\n".join([*lines, *filter(None, [warning])]))
