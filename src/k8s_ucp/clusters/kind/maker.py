"""The kind provider, as one topology uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k8s_ucp.clusters.kind.provider import KindProvider
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import Workspace

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology


def make(workspace: Workspace, topology: Topology, toolbox: Toolbox | None) -> KindProvider:
    images = topology.spec.images
    return KindProvider(
        workspace.state(topology.name).kind,
        toolbox,
        owner=workspace.machine_id(topology.name),
        node_image=images.node_image,
        mirror=images.mirror,
        archives=[workspace.root / each for each in images.archives],
    )
