"""The provider of core clusters on GKE, as one topology uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k8s_ucp.clusters.gke.provider import GkeProvider
from k8s_ucp.credentials import load, place_of
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import Workspace

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology


def make(workspace: Workspace, topology: Topology, _: Toolbox | None) -> GkeProvider:
    """Of a core cluster; environments on GKE are Crossplane's business."""
    gcp = topology.spec.credentials.gcp
    return GkeProvider(
        workspace.state(topology.name).gke,
        owner=workspace.machine_id(topology.name),
        key=lambda: load("gcp", place_of(topology, workspace, "gcp")),
        project=gcp.project if gcp else None,
    )
