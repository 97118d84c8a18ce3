"""`ucp destroy`: deletes a topology and its cloud resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from k8s_ucp.cli.command import (
    Invocation,
    Output,
    PlanOption,
    PlanOutputOption,
    declare,
    examples,
    option,
    plan_invocation,
)
from k8s_ucp.cli.git_credentials import credential_or_note
from k8s_ucp.cli.plan_runner import run_plan, show_plan
from k8s_ucp.cli.topology_selection import chosen_context, start_command
from k8s_ucp.engine.journal import unfinished_at
from k8s_ucp.engine.pipeline import StepState
from k8s_ucp.errors import UcpError, UsageError, some_of
from k8s_ucp.inspect.teardown.abandoned import AbandonedRecord
from k8s_ucp.inspect.teardown.destruction import Destruction, read_destruction

if TYPE_CHECKING:
    from k8s_ucp.context import StartContext

app = declare()


@app.command(
    epilog=examples(
        "ucp destroy --plan",
        "ucp destroy --delete-data",
    )
)
def destroy(
    ctx: typer.Context,
    yes: Annotated[
        bool, option("--yes", None, "Do not ask for the topology's name.", "-y")
    ] = False,
    delete_data: Annotated[
        bool,
        option("--delete-data", None, "Delete databases and machines, too, with their data."),
    ] = False,
    abandon: Annotated[
        list[str] | None,
        option(
            "--abandon",
            "NAME",
            "Abandon a resource, an Application, or all of a cluster or a region that can't be "
            "deleted: it is recorded, and no longer waited for. The core cluster's name: delete it "
            "although it does not respond; repeatable.",
        ),
    ] = None,
    wait: Annotated[
        int | None,
        option(
            "--wait",
            "SECONDS",
            "How long each step may wait. Default: depends on the resource, up to 40 minutes.",
            min=1,
        ),
    ] = None,
    plan: PlanOption = False,
    output: PlanOutputOption = Output.table,
) -> None:
    """Delete a topology: its apps, clusters, networks, and the core cluster.

    Environments are drained first. Databases and machines are kept unless --delete-data is given.
    At the end the clouds are checked: if anything is left, it is listed and the core is kept. The
    repositories are kept.
    """
    call = plan_invocation(ctx, output, plan=plan)
    context = chosen_context(call)
    from k8s_ucp.context import TeardownState

    context.teardown = TeardownState(
        destroys=True,
        delete_data=delete_data,
        abandon=frozenset(abandon or ()),
        longest_wait=wait,
    )
    if earlier := was_destroyed(context):
        _print_earlier(call, context, earlier)
        if plan:
            show_plan(call, [], context, output)
        return
    context.git_credential = credential_or_note(call, context.topology)
    from k8s_ucp import plans

    verified = _verified(context)
    given_up = (
        context.topology.core_cluster in context.teardown.abandon and not context.core_responds()
    )
    destruction = plans.destroy(core_responds=verified or not given_up, verified=verified)
    if plan:
        show_plan(call, [destruction], context, output)
        return
    if not yes:
        _confirm(context.topology.name)
    seconds = run_plan(destruction, context, call.console)
    _report(call, context, seconds)


def _report(call: Invocation, context: StartContext, seconds: float) -> None:
    """Print what was deleted and verified, and what is kept or may be left."""
    name = context.topology.name
    if context.teardown.read_back:
        seen = "in the cloud itself" if context.simulates_cloud else "on the core cluster"
        call.console.say(f"checked {context.teardown.read_back} resources {seen}; none is left")
    if context.teardown.dns_records:
        call.console.say(
            "DNS records of these hosts were left to external-dns; check that they are gone: "
            f"{some_of(context.teardown.dns_records)}"
        )
    if context.teardown.snapshots:
        call.console.say(
            "database snapshots that were kept; delete them yourself if not needed: "
            f"{some_of(context.teardown.snapshots)}"
        )
    _print_abandoned(call, context)
    if context.teardown.kept:
        call.console.say(
            f"kept, and billed where it is in a cloud: {some_of(context.teardown.kept)}\n"
            f"all else of {name} is deleted ({seconds:.1f} s), and its repositories are kept. "
            f"`{start_command(call, name)}` creates it again around what is kept."
        )
    else:
        call.console.say(
            f"{name} is destroyed ({seconds:.1f} s); its repositories are kept. "
            f"`{start_command(call, name)}` creates it again."
        )


def was_destroyed(context: StartContext) -> Destruction | None:
    """The record of a finished destruction, unless it was started since."""
    found = read_destruction(context.state.destroyed)
    unfinished = unfinished_at(context.state.journal, "destroy")
    if found is None or not found.ended or unfinished or context.core_responds():
        return None
    return found


def _print_earlier(call: Invocation, context: StartContext, earlier: Destruction) -> None:
    """Print the earlier result. Raises UcpError if a rerun can't do what was requested."""
    message = earlier.message(context.topology.name)
    if earlier.kept and context.teardown.delete_data:
        raise UcpError(message, next="ucp start, then: ucp destroy --delete-data")
    again = start_command(call, context.topology.name)
    call.console.say(f"{message}. `{again}` creates it again.")
    _print_abandoned(call, context)


def _print_abandoned(call: Invocation, context: StartContext) -> None:
    if lost := [each.what for each in AbandonedRecord(context.state.abandoned).resources()]:
        call.console.say(
            "abandoned; may still exist and be billed; delete it yourself (`ucp status` lists it): "
            f"{some_of(lost)}"
        )


def _verified(context: StartContext) -> bool:
    """Whether an interrupted run found the clouds empty and then stopped the core."""
    from k8s_ucp.steps.teardown.verify_clouds import REPORTED

    seen = read_destruction(context.state.destroyed)
    if seen is None or (context.core_responds() and not _began_to_stop(context)):
        return False
    result = context.teardown
    result.kept = list(seen.kept)
    for name in REPORTED:
        setattr(result, name, seen.told.get(name, getattr(result, name)))
    return True


def _began_to_stop(context: StartContext) -> bool:
    """Whether the interrupted run began to stop components; an existing core survives that."""
    last = unfinished_at(context.state.journal, "destroy")
    states = {each["id"]: each["state"] for each in last.steps} if last else {}
    return bool(states.get("stop-components", StepState.WAITING) != StepState.WAITING)


def _confirm(name: str) -> None:
    """Raises UsageError unless a person types the topology's name."""
    from k8s_ucp.cli import questions

    if not questions.can_ask():
        raise questions.NoTerminal(
            "the confirmation",
            next="ucp destroy --plan shows what is deleted; then: ucp destroy --yes",
        )
    if questions.typed(f"Type {name} to delete the topology and everything in it:") != name:
        raise UsageError("nothing was deleted")
