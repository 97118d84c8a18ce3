"""The providers of clusters that run on, or are managed from, this machine."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, cast

from k8s_ucp.cluster_provider import (
    CONTEXT,
    HTTP,
    HTTPS,
    REGION,
    SIZE,
    ClusterProvider,
    ClusterRequest,
    CopyingProvider,
    Network,
)
from k8s_ucp.clusters.embedded import program_upgrade, programs
from k8s_ucp.clusters.embedded.folder import ClusterFolder, clusters_in
from k8s_ucp.errors import UcpError
from k8s_ucp.providers import PROVIDERS, local_providers
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology.parts import CorePorts
from k8s_ucp.workspace import StateFolder, Workspace

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

REPOSITORIES = "/srv/k8s-ucp/git"
"""Path in the nodes at which the folder with the bare repositories is mounted."""
COPY = "rehearsal"
"""Name of the throwaway copy of a core cluster."""


def make(
    provider: str, workspace: Workspace, topology: Topology, toolbox: Toolbox | None
) -> ClusterProvider:
    """Call the factory that the provider's row in PROVIDERS names."""
    made: ClusterProvider = resolve_name(PROVIDERS[provider].factory)(workspace, topology, toolbox)
    return made


def remove_copies(workspace: Workspace, topology: Topology) -> None:
    """Delete throwaway copies of the core, including those of a rehearsal that was killed.

    The caller holds the topology's lock, so that nobody uses them. Raises UcpError.
    """
    folder, provider = workspace.state(topology.name).copies, topology.spec.core.provider
    if not folder.is_dir() or not PROVIDERS[provider].can_copy:
        return
    copies = cast(CopyingProvider, make(provider, workspace, topology, None)).elsewhere(folder)
    for name in copies.names():
        copies.delete(name)
    shutil.rmtree(folder, ignore_errors=True)


def linked_entries(state: StateFolder) -> set[str]:
    """Cache entries of the programs that a topology's control planes run, or may roll back to.

    A cluster that was upgraded separately may differ from the versions that the topology keeps.
    """
    found: set[str] = set()
    for name in clusters_in(state.clusters):
        folder = ClusterFolder(state.clusters, name)
        found.update(programs.entries(folder).values())
        with contextlib.suppress(UcpError):
            before = program_upgrade.read_record(folder)
            found.update(before.entries.values() if before else ())
    return found


def why_unavailable(provider: str) -> UcpError | None:
    """Why the provider can't create clusters on this machine, with advice; None if it can."""
    check = PROVIDERS[provider].unavailable
    return cast(UcpError | None, resolve_name(check)()) if check else None


def make_local_providers(
    workspace: Workspace, topology: Topology, toolbox: Toolbox | None
) -> Mapping[str, ClusterProvider]:
    """Providers that LocalClusters can use, by name. toolbox: None if nothing is created."""
    return {each: make(each, workspace, topology, toolbox) for each in local_providers()}


def used_providers(
    workspace: Workspace, topology: Topology, toolbox: Toolbox | None
) -> Mapping[str, ClusterProvider]:
    """Providers that the topology uses or used; no others need to be available."""
    spec, root = topology.spec, workspace.state(topology.name).root
    names = {each.cluster.provider for each in spec.environments} & {*local_providers()}
    names.add(spec.core.provider)
    return {
        name: make(name, workspace, topology, toolbox)
        for name, info in PROVIDERS.items()
        if name in names or (info.factory and (root / info.state_folder).is_dir())
    }


def core_request(workspace: Workspace, topology: Topology) -> ClusterRequest:
    """Request for the core cluster."""
    core, info = topology.spec.core, PROVIDERS[topology.spec.core.provider]
    settings = {CONTEXT: core.context, REGION: core.region, SIZE: core.size}
    parameters = {name: value for name, value in settings.items() if value}
    ports, mounts = {}, {}
    if info.takes_traffic:
        wanted = core.ports or CorePorts()
        ports = {HTTP: wanted.http, HTTPS: wanted.https}
    if info.network is Network.CONTAINERS and topology.spec.git.provider == "local":
        mounts[REPOSITORIES] = workspace.gitops(topology.name).root
    return ClusterRequest(topology.core_cluster, core.version, parameters, ports, mounts)


def environment_requests(topology: Topology) -> Mapping[str, list[ClusterRequest]]:
    """Requests for app clusters of running environments, by local provider."""
    found: dict[str, list[ClusterRequest]] = {each: [] for each in local_providers()}
    for each in topology.spec.environments:
        cluster, name = each.cluster, topology.app_cluster(each.name)
        if each.state == "running" and cluster.provider in found:
            parameters = {CONTEXT: cluster.context} if cluster.context else {}
            request = ClusterRequest(name, cluster.version, parameters)
            found[cluster.provider].append(request)
    return found
