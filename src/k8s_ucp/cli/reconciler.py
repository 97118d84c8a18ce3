"""`ucp reconciler run`: the controllers, in the foreground; `ucp start` has it supervised."""

from __future__ import annotations

from typing import Annotated

import typer

from k8s_ucp.cli.chosen import chosen_topology
from k8s_ucp.cli.command import declare, invocation
from k8s_ucp.errors import UsageError

app = declare("Makes clusters and registers them with Argo CD.")


@app.callback()
def _group() -> None:
    """Makes clusters and registers them with Argo CD."""


@app.command()
def run(
    ctx: typer.Context,
    controllers: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Of local-clusters, registration, passwords, mirrors, by commas. Default: all.",
        ),
    ] = None,
    health_port: Annotated[
        int | None, typer.Option(metavar="PORT", help="Serve /healthz and /readyz on loopback.")
    ] = None,
) -> None:
    """Run the controllers until SIGTERM."""
    from k8s_ucp.cluster_provider import Reach
    from k8s_ucp.clusters.local import local_providers
    from k8s_ucp.gitops.render import seconds
    from k8s_ucp.gitops.rendering.addons import password_namespaces
    from k8s_ucp.reconciler import manager
    from k8s_ucp.reconciler.settings import CONTROLLERS, Settings
    from k8s_ucp.tools.catalogue import EMBEDDED, KIND
    from k8s_ucp.tools.installer import Installer, Source
    from k8s_ucp.workspace import cache_folder

    call = invocation(ctx)
    topology = chosen_topology(call)
    wanted = frozenset(controllers.split(",")) if controllers else CONTROLLERS
    if unknown := sorted(wanted - CONTROLLERS):
        raise UsageError(
            f"no such controller: {', '.join(unknown)}; known: {', '.join(sorted(CONTROLLERS))}"
        )
    state = call.workspace.state(topology.name)
    settings = Settings(
        kubeconfig=state.kubeconfig(topology.core_cluster),
        machine=call.workspace.machine_id(topology.name),
        topology=topology.name,
        source_namespaces=topology.spec.reconciler.source_namespaces,
        mirror_namespaces=tuple({each.source.namespace for each in topology.spec.mirrors}),
        password_namespaces=password_namespaces(topology),
        token_lifetime=seconds(topology.spec.reconciler.token_lifetime),
        health_port=health_port,
        controllers=wanted,
        kubeconfigs=state.kubeconfigs,
        reach=Reach.PODS if topology.spec.core.provider == "kind" else Reach.MACHINE,
    )
    source = Source(topology.spec.tools.source)
    installer = Installer(cache_folder(), lambda _: None, source=source)
    # Without kind's clusters in the topology it may be missing; a commit may still ask for one.
    extra = KIND if not installer.missing(KIND) else ()
    toolbox = installer.find((*EMBEDDED, *extra))
    manager.run(settings, local_providers(call.workspace, topology, toolbox))
