"""A fifth cluster provider, for tests only: everything that a provider consists of.

`playground` runs the control planes of the embedded engine, and `ucp stop` deletes them.
providers.py would contain its row; docs/extending.md shows this file.
"""

from __future__ import annotations

from k8s_ucp.cluster_provider import Network, Placement, ProviderInfo
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import Topology
from k8s_ucp.workspace import Workspace

ROW = ProviderInfo(
    "playground",
    "tests.fifth_provider:make",
    core=True,
    network=Network.LOOPBACK,
    placement=Placement.HOST,
    simulated=True,
    removed_by_stop=True,
    megabytes=550,
    comment="control planes that a stop deletes",
)


class PlaygroundProvider(EmbeddedProvider):
    """Implements ClusterProvider; code that is specific to the provider would be here."""

    @property
    def info(self) -> ProviderInfo:
        return ROW


def make(workspace: Workspace, topology: Topology, toolbox: Toolbox | None) -> PlaygroundProvider:
    folder = workspace.state(topology.name).root / ROW.state_folder
    return PlaygroundProvider(folder, toolbox)
