"""`ucp stop`: everything that runs ends; repositories and data stay."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from k8s_ucp.cli.chosen import chosen_context
from k8s_ucp.cli.command import declare, invocation
from k8s_ucp.cli.git_credentials import credential_of
from k8s_ucp.cli.running import run_plan
from k8s_ucp.credentials import BadCredential
from k8s_ucp.errors import UsageError

app = declare()


@app.command()
def stop(
    ctx: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask whether you mean it.")] = False,
    abandon: Annotated[
        str | None,
        typer.Option(
            "--abandon",
            metavar="NAME",
            help="Remove a kind core that can't be asked what is lost with it: NAME is the core "
            "cluster. What it made in clouds stays there.",
        ),
    ] = None,
) -> None:
    """Stop a topology: components first, then all control planes.

    Nothing is committed but what the backup of passwords still lacks. Embedded clusters keep their
    data; kind clusters are removed with what they ran, a kind core only after it was asked what
    would be lost with it; a cluster on GKE loses its nodes; from a
    core that others made everything of ours is taken away. `ucp start` brings the same state back
    from the repositories.
    """
    call = invocation(ctx)
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
    if not yes and sys.stdin.isatty():
        from k8s_ucp.cli.questions import confirm

        if not confirm(f"Stop the topology {context.topology.name}?"):
            raise UsageError("nothing was stopped")

    from k8s_ucp import plans

    seconds = run_plan(plans.stop(), context, call.console)
    if context.unasked:
        call.console.say(
            f"{core} is gone and could not be asked. What it made in clouds may be there still, "
            f"and be billed: {', '.join(context.unasked)}"
        )
    call.console.say(
        f"{context.topology.name} is stopped, {seconds:.1f} s; its repositories stay. "
        "`ucp start` brings it back."
    )
