"""`ucp history APP`: lists promotions, rollbacks and manual edits, newest first."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from k8s_ucp.cli.command import (
    Output,
    OutputOption,
    declare,
    examples,
    invocation,
    notation,
    option,
    with_given_options,
)
from k8s_ucp.cli.console import table
from k8s_ucp.cli.promotion.app_repository import app_repository
from k8s_ucp.cli.promotion.options import AppArgument, BranchOption, RepoOption
from k8s_ucp.cli.promotion.results import repeating, with_repository
from k8s_ucp.cli.topology_selection import environment_names
from k8s_ucp.gitops.promotion.history import HistoryEvent, events
from k8s_ucp.gitops.promotion.message import as_data, from_to
from k8s_ucp.gitops.promotion.order import MARKS_FILE
from k8s_ucp.gitops.promotion.overlay import check_name, overlay_folder, refuse_unknown
from k8s_ucp.gitops.promotion.repository_ref import open_branch
from k8s_ucp.inspect.overlay_versions import SHOWN, holds_in, on_hold
from k8s_ucp.timestamps import stamp

app = declare()


@app.command(
    epilog=examples(
        "ucp history echo --env prod",
        "ucp history echo --limit 1 -o json",
    )
)
def history(
    ctx: typer.Context,
    app: AppArgument,
    env: Annotated[
        str,
        option(
            "--env",
            "ENV",
            "List changes of this environment only.",
            autocompletion=environment_names,
        ),
    ] = "",
    limit: Annotated[
        int, option("--limit", "N", "Maximum number of changes, newest first.", min=1)
    ] = 20,
    repo: RepoOption = "",
    branch: BranchOption = "",
    output: OutputOption = Output.table,
) -> None:
    """List the changes of an app's tags, with author and CI run."""
    check_name("app", app)
    if env:
        check_name("environment", env)
    call = invocation(ctx)
    repository = app_repository(call, repo, branch)
    with (
        repeating(repo, branch),
        open_branch(
            repository, apps=[app], message=lambda _: "", history=True, report=call.console.say
        ) as remote,
    ):
        tip = remote.fetch()
        refuse_unknown(tip, app, env)
        found = events(remote.repository, tip.commit, app, env)[:limit]
        names = [env] if env else tip.folders(f"apps/{app}/overlays")
        holds = holds_in(
            {
                path: content
                for name in names
                if (content := tip.read(path := f"{overlay_folder(app, name)}/{MARKS_FILE}"))
            }
        )
    if output is Output.table:
        call.console.data(
            _table(found, call.console.width) if found else f"no changes of {app}'s tags"
        )
        for (_, name), held in holds.items():
            release = f"ucp rollback {app} --env {name} --release-hold"
            advice = with_given_options(with_repository(release, repo, branch), call.given)
            call.console.say(f"{name}: {on_hold(held)}; release: {advice}")
    else:
        call.console.data(notation([_data(each) for each in found], output))


def _table(found: list[HistoryEvent], width: int | None) -> str:
    rows = []
    for each in found:
        old, new = from_to(each.changes, several=each.several, most=SHOWN)
        rows.append(
            [
                stamp(each.time),
                each.env,
                each.kind,
                old,
                new,
                "" if each.sequence is None else str(each.sequence),
                each.author.name,
                each.commit[:12],
            ]
        )
    columns = ["time", "environment", "what", "from", "to", "sequence", "by", "commit"]
    return table(columns, rows, width=width, spare=("commit",))


def _data(event: HistoryEvent) -> dict[str, Any]:
    return {
        "commit": event.commit,
        "time": stamp(event.time),
        "author": {"name": event.author.name, "email": event.author.email},
        "env": event.env,
        "kind": event.kind,
        **as_data(event.changes),
        "sequence": event.sequence,
        "run": event.run or None,
    }
