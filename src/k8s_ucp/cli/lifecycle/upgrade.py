"""`ucp upgrade`: upgrades components and clusters to the versions of this ucp release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from k8s_ucp.cli.command import (
    Invocation,
    Output,
    PlanOption,
    declare,
    examples,
    notation,
    option,
    plan_invocation,
)
from k8s_ucp.cli.editing.topology_edit import context_of, refuse_changed
from k8s_ucp.cli.plan_runner import alone, command_line, open_journal, run_plan, show_plan
from k8s_ucp.cli.topology_selection import declared_file, declared_topology, upgradable_names
from k8s_ucp.context import StartContext
from k8s_ucp.engine import pipeline
from k8s_ucp.engine.journal import UPGRADE, Journal
from k8s_ucp.engine.pipeline import Plan
from k8s_ucp.errors import UcpError, UsageError, some_of
from k8s_ucp.topology import Topology, read_topology

app = declare()

WAIT_SECONDS = 300


@app.command(
    epilog=examples(
        "ucp upgrade --plan",
        "ucp upgrade --rehearse",
        "ucp upgrade argocd stage",
    )
)
def upgrade(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMPONENT]...",
            help="argocd, crossplane, argo-rollouts, core, or an environment. Default: all.",
            autocompletion=upgradable_names,
        ),
    ] = None,
    wait: Annotated[
        int,
        option(
            "--wait",
            "SECONDS",
            "How long a part may take to be as healthy as before; then it is rolled back.",
            min=1,
        ),
    ] = WAIT_SECONDS,
    rehearse: Annotated[
        bool,
        typer.Option(
            "--rehearse",
            help="Upgrade a throwaway copy of the core cluster and report which of its objects "
            "would change or be lost; change nothing.",
        ),
    ] = False,
    plan: PlanOption = False,
    output: Annotated[
        Output,
        typer.Option("-o", "--output", help="With --plan or --rehearse: table, json or yaml."),
    ] = Output.table,
) -> None:
    """Upgrade components and embedded clusters to the versions of this ucp release.

    One part at a time: the core cluster, Crossplane, Argo CD, the environments in the order of
    promotion. Each must become as healthy as before, or it is rolled back to its old version.
    Data is kept.
    """
    call = plan_invocation(ctx, output, plan=plan or rehearse)
    topology = declared_topology(call)

    from k8s_ucp import plans

    _check_names(topology, names or ())
    context = context_of(call, topology, read_topology(declared_file(call)))
    context.upgrade.parts, context.upgrade.patience = frozenset(names or ()), float(wait)
    if rehearse:
        if plan:
            raise UsageError("--plan and --rehearse are mutually exclusive", next="use one of them")
        rehearse_upgrade(call, context, output)
        return
    half = half_moved_parts(context)
    upgrade_plans = [plans.upgrade(topology, context.upgrade.parts)]
    if half:
        upgrade_plans.insert(0, plans.resume_upgrade(topology, half))
    if plan:
        if half and not context.core_responds():
            call.console.say("note: the rest of the plan needs a running core cluster")
            upgrade_plans.pop()
        show_plan(call, upgrade_plans, context, output)
        return
    seconds = _run(call, context, upgrade_plans)
    if context.upgrade.changes:
        lines = "\n".join(f"  {each}" for each in context.upgrade.changes)
        call.console.say(f"upgraded, and as healthy as before ({seconds:.1f} s):\n{lines}")
    else:
        call.console.say(f"{topology.name} runs the versions of this ucp release ({seconds:.1f} s)")


def _check_names(topology: Topology, names: Sequence[str]) -> None:
    """Raises UsageError for names of what ucp does not upgrade, if it upgrades anything."""
    from k8s_ucp.steps.upgrading.parts import parts
    from k8s_ucp.topology.problems import nearest

    known = [each.name for each in parts(topology)]
    if unknown := [each for each in names if known and each not in known]:
        raise UsageError(
            f"{', '.join(unknown)} can't be upgraded by ucp, but {', '.join(known)} can",
            next=f"ucp upgrade {nearest(unknown[0], known) or known[0]}",
        )


def _run(call: Invocation, context: StartContext, plans: Sequence[Plan[StartContext]]) -> float:
    """Run the plans with one journal; returns the seconds that they took."""
    file = context.state.unfinished_file(UPGRADE)
    with open_journal(file, UPGRADE, command_line(), call.console).until_done() as journal:
        return sum(
            run_plan(
                each,
                context,
                call.console,
                before=lambda: refuse_changed(context, declared_file(call)),
                part_of=journal,
            )
            for each in plans
        )


def half_moved_parts(context: StartContext) -> list[str]:
    """Parts of an interrupted upgrade; none if the topology is stopped, which is refused later."""
    from k8s_ucp.steps.upgrading.resume import interrupted_parts

    if context.in_pods or not context.placement.is_running():
        return []
    context.journal = Journal(context.state.unfinished_file(UPGRADE), UPGRADE)
    return interrupted_parts(context, context.journal.resumed)


def rehearse_upgrade(call: Invocation, context: StartContext, output: Output) -> None:
    """Run a rehearsal and print its findings. Raises UcpError if the upgrade would fail."""
    from k8s_ucp import plans
    from k8s_ucp.components import argocd, crossplane
    from k8s_ucp.steps.upgrading.parts import CORE, chosen, moves
    from k8s_ucp.steps.upgrading.rehearsal.report import shortened
    from k8s_ucp.steps.upgrading.rehearsal.steps import Rehearsal, check_copyable, remove_copy

    known = (CORE, crossplane.NAME, argocd.NAME)
    if others := sorted(context.upgrade.parts - {*known}):
        raise UsageError(
            f"{', '.join(others)} can't be rehearsed: the copy is of the core cluster",
            next=f"ucp upgrade --rehearse {' '.join(known)}",
        )
    context.upgrade.parts = context.upgrade.parts or frozenset(known)
    check_copyable(context)  # First, so that this is the only problem reported.
    rehearsal, topology = Rehearsal(), context.topology.name
    pipeline.preflight(plans.rehearse(rehearsal), context)
    if not any(moves(context, each) for each in chosen(context)):
        call.console.say(
            f"nothing to rehearse: the core of {topology} runs the versions of this ucp release"
        )
        if output is not Output.table:
            call.console.data(notation(rehearsal.findings.data(topology), output))
        return
    with alone(context.workspace, topology):
        try:
            journal = Journal(None, "rehearse")
            run_plan(plans.rehearse(rehearsal), context, call.console, locked=True, part_of=journal)
        finally:
            remove_copy(context)
    found = rehearsal.findings
    call.show_list(output, found.data(topology), ("what", "on the copy"), found.rows())
    if output is Output.table:
        for title, lines in found.lists().items():
            if lines:
                call.console.data(
                    "\n".join(["", f"{title}:", *(f"  {e}" for e in shortened(lines))])
                )
        memory = f"{found.peak_megabytes} MB of memory, {found.seconds:.0f} s"
        call.console.say(f"the copy is removed ({memory}); {topology} was not changed")
    if problems := found.problems():
        raise UcpError(
            f"the upgrade of {topology} would fail on its core: {some_of(problems, 2)}",
            next="fix these problems, or upgrade other parts only; then: ucp upgrade --rehearse",
        )
