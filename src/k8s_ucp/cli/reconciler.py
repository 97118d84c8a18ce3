"""`ucp reconciler run`: runs the controllers in the foreground; `ucp start` supervises it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from k8s_ucp.cli.command import Invocation, declare, invocation, option
from k8s_ucp.cli.topology_selection import STARTED, chosen_topology
from k8s_ucp.cluster_provider import Reach
from k8s_ucp.errors import UcpError, UsageError, unknown_name

if TYPE_CHECKING:
    from k8s_ucp.aws.backing import Backing
    from k8s_ucp.cluster_provider import ClusterProvider
    from k8s_ucp.reconciler.runtime.settings import Settings

app = declare("Run the controllers that create clusters and register them with Argo CD.")


@app.command()
def run(
    ctx: typer.Context,
    controllers: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help=(
                "Comma-separated controllers: local-clusters, registration, passwords, "
                "applications, mirrors, backup, managed-resources. Default: all that can run here."
            ),
        ),
    ] = None,
    health_port: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="Port to serve /healthz, /readyz and /metrics on."),
    ] = None,
    in_cluster: Annotated[
        bool,
        option(
            "--in-cluster",
            None,
            "Run as a pod of the core cluster: without a workspace, configured by options only.",
        ),
    ] = False,
    source_namespace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=(
                "With --in-cluster: namespace to read kubeconfig Secrets and Syncers from; "
                "repeatable."
            ),
        ),
    ] = None,
    sources_by_name: Annotated[
        bool,
        option(
            "--sources-by-name",
            None,
            "With --in-cluster: register unlabeled kubeconfig Secrets with -k8s- in their names.",
        ),
    ] = False,
    mirror_namespace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="With --in-cluster: additional namespace to mirror from; repeatable.",
        ),
    ] = None,
    password_namespace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="With --in-cluster: namespace in which to generate passwords; repeatable.",
        ),
    ] = None,
    token_lifetime: Annotated[
        str, typer.Option(metavar="DURATION", help="With --in-cluster: lifetime of tokens.")
    ] = "24h",  # noqa: S107 (a duration)
) -> None:
    """Run the controllers until SIGTERM."""
    from k8s_ucp.aws.account import account_file
    from k8s_ucp.fence.files import FenceFiles
    from k8s_ucp.names import CLUSTERS_NAMESPACE
    from k8s_ucp.reconciler import manager
    from k8s_ucp.reconciler.runtime.settings import CONTROLLERS, ON_MACHINES

    call = invocation(ctx)
    known = CONTROLLERS - ON_MACHINES if in_cluster else CONTROLLERS
    wanted = frozenset(controllers.split(",")) if controllers else known
    if unknown := sorted(wanted - known):
        raise unknown_name(
            "controller", unknown[0], sorted(known), next="ucp reconciler run --help"
        )
    if in_cluster:
        settings = _in_pod(
            call,
            controllers=wanted,
            health_port=health_port,
            source_namespaces=tuple(source_namespace or ()),
            sources_by_name=sources_by_name,
            mirror_namespaces=tuple(mirror_namespace or ()),
            password_namespaces=tuple(password_namespace or (CLUSTERS_NAMESPACE,)),
            token_lifetime=token_seconds(token_lifetime),
        )
        manager.run(settings, {})
    else:
        settings, providers = _on_machine(call, wanted, health_port)
        state = call.workspace.state(settings.topology)
        fence = FenceFiles(state.fence).settings_file
        files = (state.root / STARTED, account_file(state), fence)
        manager.run(
            settings,
            providers,
            Outdated(files, lambda: settings_here(call, wanted, health_port) != settings),
            _backings(call, settings.topology) if settings.aws else {},
        )


def token_seconds(duration: str) -> int:
    """The seconds of `--token-lifetime`. Raises UsageError."""
    from k8s_ucp.topology.values import DURATION_PATTERN, in_seconds

    if not re.fullmatch(DURATION_PATTERN, duration):
        raise UsageError(
            f"--token-lifetime {duration!r} is not a valid duration",
            next="use a duration such as 24h or 1h30m",
        )
    return in_seconds(duration)


class Outdated:
    """Whether the settings have changed, so that the process should be restarted by its supervisor.

    The settings are read again only if a file has changed; if that fails, nothing counts as
    changed.
    """

    def __init__(self, files: Iterable[Path], differs: Callable[[], bool]) -> None:
        self._files, self._differs = tuple(files), differs
        self._seen = self._version()

    def __call__(self) -> bool:
        version = self._version()
        if version == self._seen:
            return False
        self._seen = version
        try:
            return self._differs()
        except UcpError:
            return False

    def _version(self) -> list[tuple[int, int] | None]:
        return [_version_of(each) for each in self._files]


def _version_of(file: Path) -> tuple[int, int] | None:
    try:
        about = file.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_ino


def _in_pod(call: Invocation, **options: Any) -> Settings:
    """Settings of a pod. options: those given by flags."""
    from k8s_ucp.reconciler.runtime.settings import Settings

    if not call.topology or not options["source_namespaces"]:
        raise UsageError("--in-cluster requires --topology and --source-namespace")
    return Settings(
        kubeconfig=None,
        # LocalClusters belong to machines, and a pod is none.
        machine="",
        topology=call.topology,
        health_address="0.0.0.0",  # noqa: S104 (the pod's own, for the kubelet)
        place=os.environ.get("HOSTNAME", "pod"),
        **options,
    )


def _on_machine(
    call: Invocation, controllers: frozenset[str], health_port: int | None
) -> tuple[Settings, Mapping[str, ClusterProvider]]:
    from k8s_ucp.clusters.admin_kubeconfigs import keep_access
    from k8s_ucp.clusters.local import make_local_providers, used_providers
    from k8s_ucp.tools.kept_versions import topology_installer
    from k8s_ucp.tools.required import needed_tools

    topology = chosen_topology(call)
    state = call.workspace.state(topology.name)
    toolbox = topology_installer(topology, state).find(needed_tools(topology))
    core = used_providers(call.workspace, topology, toolbox)[topology.spec.core.provider]
    path = state.kubeconfig(topology.core_cluster)
    keep_access(core, topology.core_cluster, path, call.console.say)
    settings = settings_here(call, controllers, health_port)
    return settings, make_local_providers(call.workspace, topology, toolbox)


def _backings(call: Invocation, topology: str) -> Mapping[str, Backing]:
    """What this machine runs for resources of the simulated cloud, except control planes."""
    from k8s_ucp.aws.kinds import rds
    from k8s_ucp.clusters.ports import Ports, default_registry
    from k8s_ucp.components.databases import Databases
    from k8s_ucp.components.host.placement import HostPlacement

    workspace = call.workspace
    placement = HostPlacement(workspace.state(topology), workspace.runtime_folder(topology))
    databases = Databases(placement, Ports(default_registry()), workspace.machine_id(topology))
    return {rds.DATABASE_SERVER: databases}


def settings_here(
    call: Invocation, controllers: frozenset[str], health_port: int | None
) -> Settings:
    """Settings for this machine, from the topology as it was last started or edited."""
    from k8s_ucp.aws.account import account_file, read_account
    from k8s_ucp.fence.files import FenceFiles
    from k8s_ucp.gitops.publish.addresses import addresses
    from k8s_ucp.gitops.render.values.addons import password_namespaces
    from k8s_ucp.gitops.render.values.reconciler_access import mirror_sources
    from k8s_ucp.reconciler.runtime.settings import BackupSettings, Settings
    from k8s_ucp.topology.placement import in_pods
    from k8s_ucp.topology.values import in_seconds

    topology = chosen_topology(call)
    state, gitops = call.workspace.state(topology.name), call.workspace.gitops(topology.name)
    epoch = FenceFiles(state.fence).epoch
    account = read_account(account_file(state)) if topology.spec.clouds.simulated else None
    if account and epoch:
        # So that the cloud's ledger shows which core made a call.
        account = replace(account, caller=f"{account.caller} epoch/{epoch}")
    return Settings(
        kubeconfig=state.kubeconfig(topology.core_cluster),
        machine=call.workspace.machine_id(topology.name),
        topology=topology.name,
        source_namespaces=topology.spec.reconciler.source_namespaces,
        sources_by_name=topology.spec.reconciler.sources_by_name,
        mirror_namespaces=mirror_sources(topology),
        password_namespaces=password_namespaces(topology),
        token_lifetime=in_seconds(topology.spec.reconciler.token_lifetime),
        health_port=health_port,
        controllers=controllers,
        kubeconfigs=state.kubeconfigs,
        backup=BackupSettings(
            state.backup,
            call.workspace.backup_key,
            gitops.core,
            addresses(topology, gitops).core,
            topology.spec.git.branch,
            others_too="crossplane" in topology.spec.core.adopt,
        ),
        reach=Reach.PODS if in_pods(topology) else Reach.MACHINE,
        fence=state.fence,
        epoch=epoch,
        aws=account,
    )
