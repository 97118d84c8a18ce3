"""`ucp kubeconfig NAME`: prints a cluster's kubeconfig, or merges it into the user's own."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from k8s_ucp.cli.command import Output, declare, examples, invocation, notation, option
from k8s_ucp.cli.topology_selection import asking_core, chosen_view, cluster_names
from k8s_ucp.clusters.user_contexts import (
    change_file,
    merged,
    own_file,
    refuse_others,
    replaced_server,
)
from k8s_ucp.context import TopologyView
from k8s_ucp.errors import UcpError, UsageError, unknown_name
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.reconciler.access.authenticators.base import EXEC_PLUGINS, NoAccess
from k8s_ucp.reconciler.access.kubeconfig import read
from k8s_ucp.reconciler.access.kubeconfig_verification import proven
from k8s_ucp.reconciler.access.owners import source_in
from k8s_ucp.reconciler.access.sources import KubeconfigSource, kubeconfig_in
from k8s_ucp.reconciler.aws.control_planes import is_plane_name
from k8s_ucp.topology import Topology
from k8s_ucp.topology.problems import nearest

_OF_PLUGINS = ("apiVersion", "command", "installHint", "interactiveMode", "provideClusterInfo")

app = declare()


@app.command(
    epilog=examples(
        "ucp kubeconfig stage > stage.yaml",
        "kubectl --kubeconfig stage.yaml get pods -A",
        "ucp kubeconfig stage --merge",
    )
)
def kubeconfig(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of a cluster or environment, such as demo-core, core or stage.",
            autocompletion=cluster_names,
        ),
    ],
    merge: Annotated[
        bool,
        option(
            "--merge", None, "Merge it into your own kubeconfig and make it the current context."
        ),
    ] = False,
    output: Annotated[
        Literal["yaml", "json"], option("-o", None, "Output format: yaml or json.", "--output")
    ] = "yaml",
) -> None:
    """Print a cluster's kubeconfig, which contains its admin credentials."""
    call = invocation(ctx)
    context = chosen_view(call)
    context.refuse_copy()
    environment = _cloud_environment(context.topology, name)
    if environment:
        cluster = context.topology.app_cluster(environment)
        config = renamed(_from_cloud(context, environment), cluster)
    else:
        cluster = _cluster(context, name)
        provider = next(each for each in context.providers.values() if cluster in each.names())
        config = renamed(provider.kubeconfig(cluster), cluster)
    if not merge:
        call.console.data(notation(config, Output(output)))
        return
    path = own_file()
    replaced = ""

    def change(found: dict[str, Any]) -> dict[str, Any]:
        nonlocal replaced
        refuse_others(found, config, path)
        replaced = replaced_server(found, config)
        return merged(found, config)

    change_file(path, change)
    call.console.say(f"merged the context {cluster} into {path} and made it the current context")
    if replaced:
        call.console.say(
            f"note: it replaces a context {cluster} for {replaced}: an earlier cluster, or that of "
            "another workspace, where the same command merges it again"
        )


def _cloud_environment(topology: Topology, name: str) -> str | None:
    """The environment that `name` refers to, if its cluster is in a cloud."""
    for each in topology.spec.environments:
        cluster = topology.app_cluster(each.name)
        if name in (each.name, cluster):
            return each.name if cluster in _in_clouds(topology) else None
    return None


def _in_clouds(topology: Topology) -> set[str]:
    """Names of clusters in clouds."""
    return {
        topology.app_cluster(each.name)
        for each in topology.spec.environments
        if PROVIDERS[each.cluster.provider].managed
    }


def _from_cloud(context: TopologyView, environment: str) -> dict[str, Any]:
    """The kubeconfig that Crossplane's provider wrote to the core cluster. Raises UcpError."""
    with asking_core(context):
        secret = context.cloud_secret(environment)
        written = kubeconfig_in(secret) if secret else b""
        if not secret or not written:
            raise UcpError(f"the cluster of {environment} has no kubeconfig yet", next="ucp status")
        return checked(written, environment, source_in(context.kube, secret))


def checked(content: bytes, environment: str, source: KubeconfigSource | None) -> dict[str, Any]:
    """A kubeconfig for kubectl, which runs the program and sends the files that it names.

    The Secret may have been written by others, so only the plugin of the cloud is allowed, and
    nothing that controls it. The plugin's token is the user's own: it may be sent only to the
    server that the owner declares. source: what the owner declares. Raises UcpError.
    """
    try:
        found = read(content)
    except NoAccess as error:
        raise _unsafe(environment, error.message) from error
    try:
        found = proven(source, found) if source else found
    except NoAccess as error:
        raise _forged(environment, error.message) from error
    user = dict(found.user)
    plugin = user.pop("exec", None)
    if user.pop("auth-provider", None):
        raise _unsafe(environment, "it uses an auth-provider")
    if plugin:
        if not isinstance(plugin, dict) or plugin.get("command") not in EXEC_PLUGINS:
            raise _unsafe(environment, "it runs a program that is not the plugin of a cloud")
        if plugin.get("args") or plugin.get("env"):
            raise _unsafe(environment, f"it has arguments for {plugin['command']}")
        if source is None or not source.known.trusted:
            why = (source.known.distrust if source else "") or "no cluster object vouches for it"
            sent = f"{plugin['command']} would send your own token to {found.server}"
            raise _forged(environment, f"{sent}, but {why}")
        user["exec"] = {name: plugin[name] for name in _OF_PLUGINS if name in plugin}
    return {"clusters": [{"cluster": dict(found.cluster)}], "users": [{"user": user}]}


def _forged(environment: str, why: str) -> UcpError:
    return UcpError(
        f"the kubeconfig of {environment} in the core cluster may be that of another cluster: "
        f"{why}",
        next="ucp status; or get one with the command of the cloud itself",
    )


def _unsafe(environment: str, why: str) -> UcpError:
    return UcpError(
        f"the kubeconfig of {environment} in the core cluster could run programs or read files on "
        f"this machine: {why}",
        next="get one with the command of the cloud itself",
    )


def _cluster(context: TopologyView, name: str) -> str:
    """The cluster that `name` refers to: its own name, or that of its environment."""
    made = (each for provider in context.providers.values() for each in provider.names())
    here = {each for each in made if not is_plane_name(each)}
    for each in (name, context.topology.app_cluster(name)):
        if each in here:
            return each
    known = sorted(here | _in_clouds(context.topology)) if here else []
    if not known:
        raise UcpError(f"{context.topology.name} has no clusters", next="ucp start")
    declared = [each.name for each in context.topology.spec.environments]
    if stopped := next(
        (each for each in declared if name in (each, context.topology.app_cluster(each))), None
    ):
        raise UsageError(
            f"the cluster of {stopped} does not exist: it is stopped or not created yet",
            next=f"ucp recreate --env {stopped}, or ucp status {stopped}",
        )
    short = [each.removeprefix(f"{context.topology.name}-") for each in known]
    meant = nearest(name, [*known, *short]) or known[0]
    raise unknown_name("cluster", name, known, next=f"ucp kubeconfig {meant}")


def renamed(config: dict[str, Any], name: str) -> dict[str, Any]:
    """A kubeconfig with the same cluster and user, in which everything is named `name`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": config["clusters"][0]["cluster"]}],
        "users": [{"name": name, "user": config["users"][0]["user"]}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
