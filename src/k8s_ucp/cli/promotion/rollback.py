"""`ucp rollback APP --env ENV`: restores the previous version and holds the bad one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from k8s_ucp.cli.command import (
    Invocation,
    Output,
    OutputOption,
    declare,
    examples,
    invocation,
    option,
)
from k8s_ucp.cli.promotion.app_repository import app_repository
from k8s_ucp.cli.promotion.missing_arguments import (
    known_names,
    refuse_rollback_without_env,
    typed_options,
)
from k8s_ucp.cli.promotion.options import (
    DRY_RUN_HELP,
    ENV_HELP,
    TIMEOUT_HELP,
    AppArgument,
    BranchOption,
    RepoOption,
    seconds,
)
from k8s_ucp.cli.promotion.results import person, repeating, show_landing
from k8s_ucp.cli.topology_selection import environment_names
from k8s_ucp.errors import UsageError
from k8s_ucp.git.push_loop import Pace
from k8s_ucp.gitops.promotion.branch import RemoteBranch
from k8s_ucp.gitops.promotion.ci import find_run
from k8s_ucp.gitops.promotion.decision import Decision
from k8s_ucp.gitops.promotion.history import charts_in, past_at, pasts
from k8s_ucp.gitops.promotion.landing import Landing, land, try_landing
from k8s_ucp.gitops.promotion.message import message
from k8s_ucp.gitops.promotion.overlay import check_name, read_overlay
from k8s_ucp.gitops.promotion.repository_ref import open_branch
from k8s_ucp.gitops.promotion.rollback import Rollback, decide_rollback, named, previous
from k8s_ucp.gitops.promotion.tip import GitTip

app = declare()


@app.command(
    epilog=examples(
        "ucp rollback echo --env prod",
        "ucp rollback echo --env prod --to 1.3.0",
        "ucp rollback echo --env prod --release-hold",
    )
)
def rollback(
    ctx: typer.Context,
    app: AppArgument,
    env: Annotated[str, option("--env", "ENV", ENV_HELP, autocompletion=environment_names)] = "",
    to: Annotated[
        str,
        option(
            "--to",
            "TAG|COMMIT",
            "Earlier tag or chart version, or commit whose tags to restore. Default: the "
            "previous tag.",
        ),
    ] = "",
    release_hold: Annotated[
        bool,
        option("--release-hold", None, "Release the hold; without --to, nothing else is changed."),
    ] = False,
    hold: Annotated[
        bool,
        typer.Option(
            "--hold", help="Hold the current tag instead: nothing replaces it until released."
        ),
    ] = False,
    repo: RepoOption = "",
    branch: BranchOption = "",
    dry_run: Annotated[bool, option("--dry-run", None, DRY_RUN_HELP)] = False,
    timeout: Annotated[str, option("--timeout", "DURATION", TIMEOUT_HELP)] = "5m",
    output: OutputOption = Output.table,
) -> int:
    """Restore an earlier tag and hold the bad one, so that only newer tags can be promoted.

    While the hold is active, a promotion needs a sequence (with --semver: a version) above the
    highest one that landed, unless the hold is released.
    """
    check_name("app", app)
    call = invocation(ctx)
    if not env:
        with repeating(repo, branch):
            refuse_rollback_without_env(known_names(call, repo), app, typed_options(ctx))
    check_name("environment", env)
    if hold and (to or release_hold):
        other = "--to" if to else "--release-hold"
        raise UsageError(f"--hold and {other} are mutually exclusive", next="use only one of them")
    request = Rollback(app, env, release_hold=release_hold, hold=hold)
    deadline = seconds("--timeout", timeout)
    with repeating(repo, branch):
        landing, warning = land_rollback(call, request, to, repo, branch, deadline, dry_run=dry_run)
    if warning:
        call.console.warn(warning)
    return show_landing(call, landing, output, repo, branch, batch=False)


def land_rollback(
    call: Invocation,
    request: Rollback,
    to: str,
    repo: str,
    branch: str,
    deadline: float,
    *,
    dry_run: bool = False,
) -> tuple[Landing, str]:
    """Roll back, or set or release a hold; returns (result, warning for the user)."""
    run = find_run(os.environ)
    repository = app_repository(call, repo, branch)
    only_hold = request.hold or (request.release_hold and not to)

    def text(decisions: Sequence[Decision]) -> str:
        return message([each.note for each in decisions], run.link)

    with open_branch(
        repository,
        apps=[request.app],
        message=text,
        person=person(run),
        history=not only_hold,
        deadline=deadline,
        report=call.console.say,
    ) as remote:
        chosen = request if only_hold else _chosen(remote, remote.fetch(), request, to)

        def decide(tip: GitTip) -> list[Decision]:
            return [decide_rollback(tip, chosen)]

        pace = Pace(deadline=remote.seconds_left)
        if dry_run:
            return try_landing(remote, decide, text, pace, call.console.detail), ""
        landing = land(remote, decide, pace, call.console.detail)
        return landing, remote.settle(landing.commit) if landing.commit else ""


def _chosen(remote: RemoteBranch, tip: GitTip, request: Rollback, to: str) -> Rollback:
    """The rollback with the pins to restore, and the bad ones."""
    overlay = read_overlay(tip, request.app, request.env)
    known = pasts(remote.repository, tip.commit, request.app, request.env)
    if to:
        found = past_at(remote.repository, tip.commit, request.app, request.env, to)
        known = [*known, *([found] if found else [])]
        pins = named(overlay, known, to)
    else:
        pins = previous(overlay, known)
    charts = charts_in(remote.repository, overlay, pins, known)
    return replace(request, pins=pins, bad=overlay.pins, charts=charts)
