"""The providers that the contract suite runs against. A new provider is one more entry here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from k8s_ucp.cluster_provider import ClusterProvider
from tests.control_planes import ControlPlanes, control_planes

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox


class Workshop:
    """Makes providers of one kind and tells what is left of their clusters."""

    def __init__(self, planes: ControlPlanes) -> None:
        self._planes = planes

    def provider(self, workspace: str = "one") -> ClusterProvider:
        """The provider as the topology in that workspace has it."""
        return self._planes.provider(workspace)

    def remains(self, workspace: str = "one") -> list[object]:
        """Processes and files of that workspace's clusters."""
        folder = self._planes.folder(workspace)
        files = sorted(folder.rglob("*")) if folder.exists() else []
        return [*self._planes.processes(workspace), *files]


@pytest.fixture(scope="session", params=["embedded"])
def workshop(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, toolbox: Toolbox
) -> Iterator[Workshop]:
    """One kind of provider after the other, with clusters that go when the session ends."""
    root: Path = tmp_path_factory.mktemp(request.param)
    with control_planes(root, toolbox) as planes:
        yield Workshop(planes)
