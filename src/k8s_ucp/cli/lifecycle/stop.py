"""`ucp stop`: everything that runs ends, or an environment; repositories and data stay."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from k8s_ucp.cli.command import (
    Output,
    PlanOption,
    PlanOutputOption,
    declare,
    invocation,
    option,
)
from k8s_ucp.cli.git_credentials import credential_of
from k8s_ucp.cli.lifecycle.environment_states import WAIT_SECONDS, stop_environments
from k8s_ucp.cli.plan_runner import run_plan, show_plan
from k8s_ucp.cli.topology_selection import chosen_context
from k8s_ucp.credentials import BadCredential
from k8s_ucp.errors import UsageError

app = declare()


@app.command()
def stop(
    ctx: typer.Context,
    yes: Annotated[bool, option("--yes", None, "Do not ask for confirmation.")] = False,
    env: Annotated[
        list[str] | None,
        option(
            "--env",
            "NAME",
            "Stop this environment only: its cluster is deleted, its declaration and its "
            "databases are kept; repeatable.",
        ),
    ] = None,
    wait: Annotated[
        int,
        option(
            "--wait",
            "SECONDS",
            "With --env: how long to wait for the cluster to be deleted. 0: don't wait.",
            min=0,
        ),
    ] = WAIT_SECONDS,
    abandon: Annotated[
        str | None,
        option(
            "--abandon",
            "NAME",
            "Delete the kind core cluster NAME although it does not respond. The cloud "
            "resources that it created are kept.",
        ),
    ] = None,
    plan: PlanOption = False,
    output: PlanOutputOption = Output.table,
) -> None:
    """Stop a topology: first its components, then its clusters.

    Commits nothing except pending changes of the backup. Embedded clusters keep their data. kind
    clusters are deleted with their workloads; a kind core is first checked for data that exists
    nowhere else. A GKE cluster is scaled to zero nodes. From an existing core cluster, the objects
    of ucp are removed. `ucp start` restores the same state from the repositories.

    With --env, commits `state: stopped` for environments, whose clusters are then drained and
    deleted; `ucp recreate --env NAME` brings them back.
    """
    call = invocation(ctx)
    if env:
        if abandon is not None:
            raise UsageError("--env and --abandon are mutually exclusive")
        stop_environments(call, env, yes=yes, wait=wait, plan=plan, output=output)
        return
    context = chosen_context(call)
    core = context.topology.core_cluster
    if abandon not in (None, core):
        raise UsageError(
            f"--abandon: {abandon!r} is not the core cluster of {context.topology.name}",
            next=f"ucp stop --abandon {core}",
        )
    context.abandon = abandon or ""
    try:
        context.git_credential = credential_of(context.topology, call.workspace)
    except BadCredential as error:
        # What the repositories still lack is told by the step that can't push it.
        call.console.say(f"note: {error.message}")
    from k8s_ucp import plans

    if plan:
        show_plan(call, [plans.stop()], context, output)
        return
    if not yes and sys.stdin.isatty():
        from k8s_ucp.cli.questions import confirm

        if not confirm(f"Stop the topology {context.topology.name}?"):
            raise UsageError("nothing was stopped")
    seconds = run_plan(plans.stop(), context, call.console)
    if context.unasked:
        call.console.say(
            f"{core} was deleted without checking its cloud resources, which may still "
            f"exist and be billed: {', '.join(context.unasked)}"
        )
    call.console.say(
        f"{context.topology.name} is stopped ({seconds:.1f} s); its repositories are "
        "kept. Start it again with `ucp start`."
    )
