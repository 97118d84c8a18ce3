"""`ucp open argocd`: a component's page in the browser."""

from __future__ import annotations

import webbrowser

import typer

from k8s_ucp.cli.command import Invocation, declare, invocation
from k8s_ucp.cli.topology_selection import chosen_view
from k8s_ucp.components import argocd as component
from k8s_ucp.components.adoption import adopted_argocd
from k8s_ucp.errors import UcpError
from k8s_ucp.preflight.adoption import settings_of

app = declare("Open a component in the browser.")


@app.command()
def argocd(ctx: typer.Context) -> None:
    """Open Argo CD and print its URL. `ucp get secrets` prints user and password."""
    call = invocation(ctx)
    context = chosen_view(call)
    theirs = context.adopts(component.NAME)
    if theirs and (address := settings_of(context.kube, adopted_argocd.SETTINGS).get("url")):
        # Where whoever runs it has people log in.
        call.console.data(address)
        if context.argocd_answers().ready:
            call.console.say(f"also at {context.argocd_url} while the topology is running")
        _browse(call, address)
        return
    health = context.argocd_answers()
    if not health.ready:
        raise UcpError(f"argocd-server is not responding: {health.message}", next="ucp start")
    url = context.argocd_url
    call.console.data(url)
    # One that others run is asked by the browser alone: its certificate is for another name.
    if not theirs and not component.ui_available(context.argocd_port):
        raise UcpError(
            f"this Argo CD was built from source without the web UI: {url} serves the API only",
            next="ucp status",
        )
    _browse(call, url)


def _browse(call: Invocation, url: str) -> None:
    if not webbrowser.open(url):
        call.console.say("no browser found: open the URL yourself")
