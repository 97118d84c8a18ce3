"""Real control planes for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from k8s_ucp import process
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.process import ProcessIdentity
from tests.control_planes import ControlPlanes, control_planes

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox


@pytest.fixture
def planes(tmp_path: Path, toolbox: Toolbox) -> Iterator[ControlPlanes]:
    with control_planes(tmp_path, toolbox) as found:
        yield found


@pytest.fixture
def provider(planes: ControlPlanes) -> EmbeddedProvider:
    return planes.provider()


@pytest.fixture
def folder(planes: ControlPlanes) -> ClusterFolder:
    """Files of the cluster `one`."""
    return ClusterFolder(planes.folder(), "one")


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[ProcessIdentity]:
    """A foreign process, which ucp must not end."""
    found = process.spawn(
        ["sleep", "600"], env={"PATH": "/usr/bin:/bin"}, cwd=Path("/"), log=tmp_path / "log"
    )
    yield found
    process.terminate(found, grace=1)
