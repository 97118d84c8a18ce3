"""`ucp upgrade`: what runs moves to the versions that this ucp brings, or stays as it is."""

from __future__ import annotations

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
from k8s_ucp.cli.editing.topology_edit import context_of, read_topology
from k8s_ucp.cli.plan_runner import run_plan, show_plan
from k8s_ucp.errors import UsageError
from k8s_ucp.topology import load

app = declare()

WAIT_SECONDS = 300


@app.command()
def upgrade(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMPONENT]...",
            help="argocd, crossplane, argo-rollouts, core, or an environment. Default: all.",
        ),
    ] = None,
    wait: Annotated[
        int,
        option(
            "--wait",
            "SECONDS",
            "How long a part may take to be as healthy as before; then it goes back.",
            min=1,
        ),
    ] = WAIT_SECONDS,
    plan: PlanOption = False,
    output: PlanOutputOption = Output.table,
) -> None:
    """Upgrade components and embedded clusters to the versions that this ucp brings.

    One part at a time: the core cluster, Crossplane, Argo CD, the environments in the order of
    promotion. Each must become as healthy as before, or it goes back to its old version. Data is
    kept.
    """
    call = invocation(ctx)
    path = call.workspace.topology_file
    topology = load(path)

    from k8s_ucp import plans
    from k8s_ucp.steps.upgrading.parts import parts

    known = [each.name for each in parts(topology)]
    if unknown := [each for each in names or () if known and each not in known]:
        raise UsageError(
            f"{', '.join(unknown)} can't be upgraded by ucp", next=f"one of: {', '.join(known)}"
        )
    context = context_of(call, topology, read_topology(path))
    context.upgraded, context.patience = frozenset(names or ()), float(wait)
    wanted = plans.upgrade(topology, context.upgraded)
    if plan:
        show_plan(call, [wanted], context, output)
        return
    seconds = run_plan(wanted, context, call.console)
    if context.moved:
        lines = "\n".join(f"  {each}" for each in context.moved)
        call.console.say(f"upgraded, and as healthy as before ({seconds:.1f} s):\n{lines}")
    else:
        call.console.say(f"{topology.name} runs what this ucp brings ({seconds:.1f} s)")
