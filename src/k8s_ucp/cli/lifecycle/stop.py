"""`ucp stop`: stops the topology, or environments; repositories are kept."""

from __future__ import annotations

from typing import Annotated

import typer

from k8s_ucp.cli.command import (
    Invocation,
    Output,
    PlanOption,
    PlanOutputOption,
    YesOption,
    declare,
    examples,
    option,
    plan_invocation,
)
from k8s_ucp.cli.git_credentials import credential_or_note
from k8s_ucp.cli.lifecycle.destroy import was_destroyed
from k8s_ucp.cli.lifecycle.environment_states import (
    WAIT_SECONDS,
    all_environments,
    stop_environments,
)
from k8s_ucp.cli.plan_runner import run_plan, show_plan
from k8s_ucp.cli.topology_selection import chosen_context, environment_names, start_command
from k8s_ucp.context import StartContext
from k8s_ucp.errors import UsageError

app = declare()


@app.command(
    epilog=examples(
        "ucp stop --plan",
        "ucp stop --env stage",
    )
)
def stop(
    ctx: typer.Context,
    yes: YesOption = False,
    env: Annotated[
        list[str] | None,
        option(
            "--env",
            "NAME",
            "Stop this environment only: its cluster is deleted, its declaration and its "
            "databases are kept; repeatable.",
            autocompletion=environment_names,
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
    keep_core: Annotated[
        bool,
        option(
            "--keep-core",
            None,
            "Stop all environments as with --env; the core cluster keeps running.",
        ),
    ] = False,
    delete_data: Annotated[
        bool,
        option(
            "--delete-data",
            None,
            "Also delete the data of clusters on this machine: everything that is not in a "
            "repository.",
        ),
    ] = False,
    delete_repos: Annotated[
        bool,
        option(
            "--delete-repos",
            None,
            "Delete the repositories of this topology on this machine, with their history; remote "
            "ones are kept.",
        ),
    ] = False,
    abandon: Annotated[
        str | None,
        option(
            "--abandon",
            "NAME",
            "Delete the kind core cluster NAME, or release the existing one, although it does not "
            "respond. The cloud resources that it created are kept. With --delete-data: although "
            "it can't be backed up.",
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

    --delete-data and --delete-repos delete what is otherwise kept; --plan says what is lost.

    With --env, commits `state: stopped` for environments, whose clusters are then drained and
    deleted; `ucp recreate --env NAME` brings them back.
    """
    call = plan_invocation(ctx, output, plan=plan)
    if env or keep_core:
        if abandon is not None or delete_data or delete_repos or (env and keep_core):
            raise UsageError(
                "--env and --keep-core are mutually exclusive, and exclude --abandon, "
                "--delete-data and --delete-repos"
            )
        names = env or all_environments(call)
        stop_environments(call, names, yes=yes, wait=wait, plan=plan, output=output)
        return
    context = chosen_context(call)
    core = context.topology.core_cluster
    if abandon not in (None, core):
        raise UsageError(
            f"--abandon: {abandon!r} is not the core cluster of {context.topology.name}",
            next=f"ucp stop --abandon {core}",
        )
    context.teardown.abandon = frozenset([abandon] if abandon else ())
    context.teardown.delete_data = delete_data
    context.git_credential = credential_or_note(call, context.topology)
    from k8s_ucp import plans

    stopping = plans.stop(delete_repos=delete_repos)
    if plan:
        show_plan(call, [stopping], context, output)
        return
    if not yes:
        if delete_repos:
            for line in lost_repositories(context):
                call.console.say(line)
        _confirm(context, loses=delete_data or delete_repos)
    seconds = run_plan(stopping, context, call.console)
    _report(call, context, seconds, delete_repos=delete_repos)


def _report(call: Invocation, context: StartContext, seconds: float, *, delete_repos: bool) -> None:
    """Print what was stopped, and what is kept or may be left."""
    if context.teardown.unasked:
        released = "released" if context.provider.info.adopts else "deleted"
        call.console.say(
            f"{context.topology.core_cluster} was {released} without checking its cloud "
            f"resources, which may still exist and be billed: {', '.join(context.teardown.unasked)}"
        )
    if earlier := was_destroyed(context):
        deleted = "; its repositories are deleted now" if delete_repos else ""
        message = earlier.message(context.topology.name)
        call.console.say(
            f"{message}{deleted}. None of it is running; `ucp start` creates it again."
        )
        return
    kept = "its repositories are deleted" if delete_repos else "its repositories are kept"
    if delete_repos and context.gitops.root.exists():
        kept += f" (what ucp did not create is kept in {context.gitops.root})"
    lost = " and its clusters' data deleted" if context.teardown.delete_data else ""
    call.console.say(
        f"{context.topology.name} is stopped{lost} ({seconds:.1f} s); {kept}. "
        f"Start it again with `{start_command(call, context.topology.name)}`."
    )


def lost_repositories(context: StartContext) -> list[str]:
    """What --delete-repos deletes for good; among it is the work of teams."""
    from k8s_ucp.steps.shutdown.stop import delete_repositories

    changes = delete_repositories.preview(context)
    return [f"lost for good: {each.lost}" for each in changes if each.lost]


def _confirm(context: StartContext, *, loses: bool) -> None:
    """Ask if possible; if data is deleted, a confirmation is required.

    Raises UsageError.
    """
    from k8s_ucp.cli import questions

    also = " and delete what the flags name" if loses else ""
    questions.require_consent(
        f"Stop the topology {context.topology.name}{also}?",
        "nothing was stopped",
        next="add --plan to see what is lost for good; then --yes",
        default=not loses,
        needed=loses,
    )
