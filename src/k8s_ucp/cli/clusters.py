"""`ucp clusters`: the control planes of this topology that are on this machine."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import typer

from k8s_ucp.cli.chosen import chosen_context
from k8s_ucp.cli.command import declare, invocation
from k8s_ucp.cli.console import table
from k8s_ucp.cli.output import Output, OutputOption, notation

app = declare()


@app.command()
def clusters(ctx: typer.Context, output: OutputOption = Output.table) -> None:
    """List the clusters, with their state, version and kubeconfig."""
    call = invocation(ctx)
    context = chosen_context(call)
    provider = context.provider
    names = provider.names()
    with ThreadPoolExecutor(max(1, len(names)), "state") as pool:
        states = list(pool.map(provider.state, names))
    data = [
        {
            "name": each.name,
            "provider": provider.info.name,
            "simulated": provider.info.simulated,
            "running": each.running,
            "ready": each.ready,
            "version": each.version,
            "message": each.message,
            "kubeconfig": str(context.state.kubeconfig(each.name)),
        }
        for each in states
    ]
    if output is not Output.table:
        call.console.data(notation(data, output))
        return
    rows = [
        [
            each["name"],
            f"{each['provider']}, simulated" if each["simulated"] else each["provider"],
            "ready" if each["ready"] else each["message"],
            each["version"],
        ]
        for each in data
    ]
    call.console.data(table(("name", "provider", "state", "version"), rows))
