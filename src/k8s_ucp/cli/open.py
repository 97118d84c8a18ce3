"""`ucp open argocd`: opens a component's page in the browser."""

from __future__ import annotations

import webbrowser

import typer

from k8s_ucp.board.idle import is_woken
from k8s_ucp.cli.board import serve_board
from k8s_ucp.cli.command import Invocation, declare, invocation
from k8s_ucp.cli.topology_selection import chosen_view
from k8s_ucp.components import argocd as component
from k8s_ucp.components.adoption import adopted_argocd
from k8s_ucp.errors import UcpError
from k8s_ucp.preflight.adoption import settings_of

app = declare("Open a component in the browser.")


@app.command()
def argocd(ctx: typer.Context) -> None:
    """Open Argo CD and print its URL. `ucp get secrets` prints user and password.

    An Argo CD that was built from source has no web UI: then the board is opened instead, until
    Ctrl-C.
    """
    call = invocation(ctx)
    if is_woken():
        serve_board(call)
        return
    context = chosen_view(call)
    adopted = context.adopts(component.NAME)
    if adopted and (address := settings_of(context.kube, adopted_argocd.SETTINGS).get("url")):
        # The address at which its operators have people log in.
        call.console.data(address)
        if context.argocd_health().ready:
            call.console.say(f"also at {context.argocd_url} while the topology is running")
        _browse(call, address)
        return
    health = context.argocd_health()
    if not health.ready:
        if context.is_stopped():
            raise UcpError(f"{context.topology.name} is stopped", next="ucp start")
        raise UcpError(f"argocd-server is not responding: {health.message}", next="ucp start")
    url = context.argocd_url
    call.console.data(url)
    # An adopted one is not queried by us, since its certificate is for another name.
    if adopted or component.ui_available(context.argocd_port):
        _browse(call, url)
        return
    call.console.say(
        f"this Argo CD was built from source without its web UI, and {url} tells how to get it; "
        "opening the board (Ctrl-C ends it)"
    )
    serve_board(call)


def _browse(call: Invocation, url: str) -> None:
    if not webbrowser.open(url):
        call.console.say("no browser found: open the URL yourself")
