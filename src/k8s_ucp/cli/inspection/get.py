"""`ucp get secrets`: prints URLs, users and passwords."""

from __future__ import annotations

import typer

from k8s_ucp.cli.command import Output, OutputOption, declare, invocation, notation
from k8s_ucp.cli.console import table
from k8s_ucp.cli.topology_selection import asking_core, chosen_view
from k8s_ucp.components import argocd
from k8s_ucp.components.argocd import AdminCredentials

app = declare("Print users and passwords.")


@app.command()
def secrets(ctx: typer.Context, output: OutputOption = Output.table) -> None:
    """Print users and passwords, read from the core cluster."""
    call = invocation(ctx)
    context = chosen_view(call)
    adopted = context.adopts(argocd.NAME)
    with asking_core(context):
        found = (
            AdminCredentials(None, None) if adopted else argocd.initial_credentials(context.kube)
        )
        data = [
            {
                "name": argocd.NAME,
                "url": context.argocd_url,
                "user": found.user,
                "password": found.password,
            }
        ]
    if output is not Output.table:
        call.console.data(notation(data, output))
        return
    password = found.password or "changed by a user; only its hash is stored"
    if adopted:
        password = "adopted; ask its administrator for a login"  # noqa: S105 (no password)
    rows = [[argocd.NAME, data[0]["url"], found.user or "", password]]
    call.console.data(table(("what", "url", "user", "password"), rows))
