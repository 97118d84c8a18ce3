"""The makers of clusters that this machine drives, as one topology uses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from k8s_ucp.cluster_provider import ClusterProvider, ClusterRequest
from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.clusters.existing.provider import CONTEXT, ExistingProvider
from k8s_ucp.clusters.gke.provider import GkeProvider
from k8s_ucp.clusters.gke.settings import REGION, SIZE
from k8s_ucp.clusters.kind.checks import default_ports
from k8s_ucp.clusters.kind.config import HTTP, HTTPS
from k8s_ucp.clusters.kind.provider import KindProvider
from k8s_ucp.credentials import load, place_of
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import Workspace

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

REPOSITORIES = "/srv/k8s-ucp/git"
"""Where the nodes of a kind core see the folder with the bare repositories."""


def embedded(workspace: Workspace, topology: Topology, toolbox: Toolbox | None) -> EmbeddedProvider:
    return EmbeddedProvider(workspace.state(topology.name).clusters, toolbox)


def kind(
    workspace: Workspace,
    topology: Topology,
    toolbox: Toolbox | None,
    engine: ContainerEngine | None = None,
) -> KindProvider:
    images = topology.spec.images
    return KindProvider(
        workspace.state(topology.name).kind,
        toolbox,
        owner=workspace.machine_id(topology.name),
        engine=engine,
        node_image=images.node_image,
        mirror=images.mirror,
        archives=[workspace.root / each for each in images.archives],
    )


def existing(workspace: Workspace, topology: Topology) -> ExistingProvider:
    return ExistingProvider(
        workspace.state(topology.name).existing, owner=workspace.machine_id(topology.name)
    )


def gke(workspace: Workspace, topology: Topology) -> GkeProvider:
    """Of a core cluster; environments on GKE are Crossplane's business."""
    gcp = topology.spec.credentials.gcp
    return GkeProvider(
        workspace.state(topology.name).gke,
        owner=workspace.machine_id(topology.name),
        key=lambda: load("gcp", place_of(topology, workspace, "gcp")),
        project=gcp.project if gcp else None,
    )


def local_providers(
    workspace: Workspace, topology: Topology, toolbox: Toolbox | None
) -> Mapping[str, ClusterProvider]:
    """Those that LocalClusters may ask for, by name. toolbox: None where nothing is made."""
    return {
        "embedded": embedded(workspace, topology, toolbox),
        "kind": kind(workspace, topology, toolbox),
        "existing": existing(workspace, topology),
    }


def used_providers(
    workspace: Workspace, topology: Topology, toolbox: Toolbox | None
) -> Mapping[str, ClusterProvider]:
    """Those with clusters of the topology, as it is or as it was: nobody else need answer."""
    spec = topology.spec
    names = {spec.core.provider, *(each.cluster.provider for each in spec.environments)}
    names -= {"gke"} if spec.core.provider != "gke" else set()
    state = workspace.state(topology.name)
    names |= {"embedded"} if state.clusters.is_dir() else set()
    names |= {"kind"} if state.kind.is_dir() else set()
    names |= {"existing"} if state.existing.is_dir() else set()
    names |= {"gke"} if state.gke.is_dir() else set()
    makers = {
        **local_providers(workspace, topology, toolbox),
        "gke": gke(workspace, topology),
    }
    return {name: maker for name, maker in makers.items() if name in names}


def core_request(workspace: Workspace, topology: Topology) -> ClusterRequest:
    """The core cluster, for its provider."""
    core = topology.spec.core
    if core.provider != "kind":
        said = {CONTEXT: core.context, REGION: core.region, SIZE: core.size}
        parameters = {name: value for name, value in said.items() if value}
        return ClusterRequest(topology.core_cluster, core.version, parameters)
    mounts = {}
    if topology.spec.git.provider == "local":
        mounts[REPOSITORIES] = workspace.gitops(topology.name).root
    ports = {HTTP: core.ports.http, HTTPS: core.ports.https} if core.ports else default_ports()
    return ClusterRequest(topology.core_cluster, core.version, ports=ports, mounts=mounts)


def environment_requests(topology: Topology) -> Mapping[str, list[ClusterRequest]]:
    """The app clusters of running environments that this machine makes or adopts, by provider."""
    found: dict[str, list[ClusterRequest]] = {"embedded": [], "kind": [], "existing": []}
    for each in topology.spec.environments:
        cluster, name = each.cluster, topology.app_cluster(each.name)
        if each.state == "running" and cluster.provider in found:
            parameters = {CONTEXT: cluster.context} if cluster.context else {}
            request = ClusterRequest(name, cluster.version, parameters)
            found[cluster.provider].append(request)
    return found
