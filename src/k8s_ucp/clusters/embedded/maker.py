"""The embedded provider, as one topology uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import Workspace

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology


def make(workspace: Workspace, topology: Topology, toolbox: Toolbox | None) -> EmbeddedProvider:
    return EmbeddedProvider(workspace.state(topology.name).clusters, toolbox)
