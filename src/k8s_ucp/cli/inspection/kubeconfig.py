"""`ucp kubeconfig NAME`: a way into a cluster with kubectl, printed or merged into the user's."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from k8s_ucp.cli.command import declare, invocation, option
from k8s_ucp.cli.topology_selection import chosen_view
from k8s_ucp.clusters.user_contexts import change_file, merged, own_file
from k8s_ucp.context import TopologyView
from k8s_ucp.errors import UcpError, UsageError

app = declare()


@app.command()
def kubeconfig(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of a cluster or environment, such as demo-core, core or stage.",
        ),
    ],
    merge: Annotated[
        bool,
        option(
            "--merge", None, "Merge it into your own kubeconfig and make it the current context."
        ),
    ] = False,
) -> None:
    """Print a cluster's kubeconfig, which contains its admin credentials."""
    call = invocation(ctx)
    context = chosen_view(call)
    cluster = _cluster(context, name)
    maker = next(each for each in context.providers.values() if cluster in each.names())
    config = renamed(maker.kubeconfig(cluster), cluster)
    if not merge:
        call.console.data(json.dumps(config, indent=2))
        return
    path = own_file()
    change_file(path, lambda found: merged(found, config))
    call.console.say(f"merged the context {cluster} into {path} and made it the current context")


def _cluster(context: TopologyView, name: str) -> str:
    """The cluster that is meant: by its own name, or by its environment's."""
    known = sorted(name for maker in context.providers.values() for name in maker.names())
    for each in (name, context.topology.app_cluster(name)):
        if each in known:
            return each
    if not known:
        raise UcpError(f"{context.topology.name} has no clusters", next="ucp start")
    raise UsageError(
        f"the cluster {name} does not exist; available: {', '.join(known)}",
        next=f"ucp kubeconfig {known[0]}",
    )


def renamed(config: dict[str, Any], name: str) -> dict[str, Any]:
    """A kubeconfig whose one cluster, user and context are called `name`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": config["clusters"][0]["cluster"]}],
        "users": [{"name": name, "user": config["users"][0]["user"]}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
