"""Real kind clusters for tests, on the available container engine; deleted at the end.

UCP_TEST_NODE_IMAGE names a node image for machines that can't pull one.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.clusters.kind.provider import KindProvider
from k8s_ucp.clusters.ports import Ports, default_registry
from k8s_ucp.errors import UcpError

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

NODE_IMAGE = os.environ.get("UCP_TEST_NODE_IMAGE") or None


class KindClusters:
    """kind providers, one for each workspace. Names of kind clusters are global on a machine."""

    def __init__(self, root: Path, toolbox: Toolbox) -> None:
        self.root = root
        self.engine = ContainerEngine()
        self.run = uuid.uuid4().hex[:8]
        self._toolbox = toolbox
        self._ports = Ports(default_registry())
        self._providers: dict[str, KindProvider] = {}

    def named(self, name: str) -> str:
        """A cluster name that no other run of the tests uses."""
        return f"ucp-{self.run}-{name}"

    def provider(self, workspace: str = "one") -> KindProvider:
        """kind provider of the topology in that workspace."""
        if workspace not in self._providers:
            self._providers[workspace] = KindProvider(
                self.folder(workspace),
                self._toolbox,
                owner=self.owner(workspace),
                engine=self.engine,
                node_image=NODE_IMAGE,
                ports=self._ports,
            )
        return self._providers[workspace]

    def owner(self, workspace: str = "one") -> str:
        return f"{self.run}-{workspace}"

    def folder(self, workspace: str = "one") -> Path:
        """Folder of ucp's files for that workspace's clusters; its path contains a space on
        purpose.
        """
        return self.root / workspace / "my files" / "kind"

    def containers(self, workspace: str | None = None) -> list[str]:
        """Containers of that workspace's clusters, or of all clusters of this run."""
        mine = self.owner(workspace) if workspace else f"{self.run}-"
        return [each.name for each in self.engine.nodes() if each.owner.startswith(mine)]

    def remove(self) -> None:
        """Delete everything, and check that nothing is left."""
        for provider in self._providers.values():
            for name in provider.names():
                provider.delete(name)
        assert self.containers() == []
        assert not [each for each in self._ports.owners() if each.startswith(f"{self.root}/")]


@contextlib.contextmanager
def kind_clusters(root: Path, toolbox: Toolbox) -> Iterator[KindClusters]:
    """Yield providers that are cleaned up at the end."""
    clusters = KindClusters(root, toolbox)
    try:
        yield clusters
    finally:
        clusters.remove()


def why_not() -> str:
    """Reason why no kind cluster can be created here; empty if one can."""
    try:
        ContainerEngine().info()
    except (UcpError, ValueError) as error:
        return str(error).splitlines()[0]
    return ""
