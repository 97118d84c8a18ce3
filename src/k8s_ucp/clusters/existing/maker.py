"""The provider of clusters that others made, as one topology uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k8s_ucp.clusters.existing.provider import ExistingProvider
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import Workspace

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology


def make(workspace: Workspace, topology: Topology, _: Toolbox | None = None) -> ExistingProvider:
    return ExistingProvider(
        workspace.state(topology.name).existing, owner=workspace.machine_id(topology.name)
    )
