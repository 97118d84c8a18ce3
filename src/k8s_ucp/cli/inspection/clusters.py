"""`ucp clusters`: lists the control planes on this machine, or deregisters a cluster."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import typer

from k8s_ucp import names
from k8s_ucp.cli.command import (
    Invocation,
    ListOutput,
    ListOutputOption,
    YesOption,
    declare,
    invocation,
    option,
    with_given_options,
)
from k8s_ucp.cli.topology_selection import asking_core, chosen_view
from k8s_ucp.engine.waiting import Cancel, wait_until
from k8s_ucp.kube import SECRET
from k8s_ucp.reconciler.access.cluster_secret import Registration
from k8s_ucp.reconciler.registration import forced_deregistration

app = declare("List the clusters on this machine, or deregister one.")


@app.callback(invoke_without_command=True)
def clusters(ctx: typer.Context, output: ListOutputOption = ListOutput.table) -> None:
    """List the clusters, with their state, version and kubeconfig."""
    if ctx.invoked_subcommand is None:
        _show(invocation(ctx), output)


@app.command("list")
def show(ctx: typer.Context, output: ListOutputOption = ListOutput.table) -> None:
    """List the clusters on this machine, as `ucp clusters` does."""
    before: ListOutput = ctx.parent.params["output"] if ctx.parent else output
    _show(invocation(ctx), before if output is ListOutput.table else output)


def _show(call: Invocation, output: ListOutput) -> None:
    context = chosen_view(call)
    made = [
        (provider, name) for provider in context.providers.values() for name in provider.names()
    ]
    with ThreadPoolExecutor(max(1, len(made)), "state") as pool:
        states = list(pool.map(lambda each: each[0].state(each[1]), made))
    data = [
        {
            "name": state.name,
            "provider": provider.info.name,
            "simulated": provider.info.simulated,
            "running": state.running,
            "ready": state.ready,
            "version": state.version,
            "message": state.message,
            "addresses": dict(state.addresses),
            "kubeconfig": str(context.state.kubeconfig(state.name)),
        }
        for (provider, _), state in zip(made, states, strict=True)
    ]
    rows = [
        [
            row["name"],
            f"{row['provider']}, simulated" if row["simulated"] else row["provider"],
            "ready" if row["ready"] else row["message"],
            row["version"],
            row["addresses"].get("http", ""),
        ]
        for row in data
    ]
    columns = ("name", "provider", "state", "version", "http")
    none = f"no clusters on this machine; start them: {with_given_options('ucp start', call.given)}"
    call.show_list(output, data, columns, rows, none=none)


@app.command(short_help="Deregister a cluster that is permanently unreachable.")
def forget(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the app cluster, such as demo-stage.")
    ],
    yes: YesOption = False,
    undo: Annotated[
        bool, option("--undo", None, "Allow the cluster to be registered again.")
    ] = False,
    timeout: Annotated[
        int, typer.Option(metavar="SECONDS", help="How long to wait for the deregistration.")
    ] = 180,
) -> None:
    """Deregister a cluster that is declared but permanently unreachable.

    Its Applications are deleted, and their resources if the cluster is reachable. The cluster
    itself is kept.
    """
    call = invocation(ctx)
    context = chosen_view(call)
    if undo:
        with asking_core(context):
            forced_deregistration.undo(context.kube, name)
        call.console.say(f"{name} can be registered again; `ucp status` shows its state.")
        return
    # Before the question: a name that is not registered is refused.
    with asking_core(context):
        existing = forced_deregistration.registration_of(context.kube, name)
    if not yes:
        _confirm(name)
    forced_deregistration.forget(context.kube, existing)

    def pending() -> str:
        found = context.kube.find(SECRET, existing.name, names.ARGOCD_NAMESPACE)
        if found is None or found["metadata"]["uid"] != existing.uid:
            return ""
        draining = Registration.of(found).draining_since
        return f"its Applications are being deleted since {draining}" if draining else "not started"

    wait_until(
        f"{name} deregistered",
        pending,
        seconds=timeout,
        cancel=Cancel(),
        next="see `ucp logs reconciler`; the deregistration continues in the background",
    )
    call.console.say(
        f"{name} is deregistered; `ucp clusters forget {name} --undo` registers it again."
    )


def _confirm(name: str) -> None:
    """Ask the person at the terminal. Raises UsageError, also if the question would not be seen."""
    from k8s_ucp.cli import questions

    questions.require_consent(
        f"Deregister {name} and delete its Applications?",
        "the cluster was not deregistered",
        next=f"ucp clusters forget {name} --yes",
    )
