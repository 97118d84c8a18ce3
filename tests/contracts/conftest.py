"""The providers that the contract suite runs against. A new provider is one more entry here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Protocol

import pytest

from k8s_ucp.cluster_provider import ClusterProvider
from k8s_ucp.clusters.gke import settings as gke_settings
from k8s_ucp.clusters.kind.config import LONGEST_NAME
from k8s_ucp.tools.toolbox import Toolbox
from tests.backing_clusters import Backing, backing_clusters
from tests.contracts.provider_harness import Desk, desk_of_its_own
from tests.control_planes import PAUSE_IMAGE, ControlPlanes, control_planes
from tests.fifth_provider import PlaygroundProvider
from tests.gke_clusters import Google, google_before
from tests.kind_clusters import KindClusters, kind_clusters


class Workshop(Protocol):
    """Creates providers of one kind, and lists what remains of their clusters."""

    names_are_shared: bool
    """Two workspaces can't have clusters of the same name at the same time."""
    longest_name: int
    too_short: float
    """Timeout in seconds that every creation exceeds while creations are slow."""

    @property
    def image(self) -> str:
        """An image that every new cluster can run."""

    def named(self, name: str) -> str:
        """The name of a test's cluster."""

    def provider(self, workspace: str = "one") -> ClusterProvider:
        """The provider of the topology in that workspace."""

    def remains(self, workspace: str = "one") -> list[object]:
        """Processes, containers and files of that workspace's clusters."""

    def slow_creations(self) -> AbstractContextManager[None]:
        """Within the block, every creation takes longer than `too_short`."""


class Embedded:
    names_are_shared = False
    longest_name = 63
    too_short = 0.7
    image = PAUSE_IMAGE

    def __init__(self, planes: ControlPlanes) -> None:
        self._planes = planes

    def named(self, name: str) -> str:
        return name

    def provider(self, workspace: str = "one") -> ClusterProvider:
        return self._planes.provider(workspace)

    def remains(self, workspace: str = "one") -> list[object]:
        return [*self._planes.processes(workspace), *_files(self._planes.folder(workspace))]

    def slow_creations(self) -> AbstractContextManager[None]:
        return nullcontext()


class Kind:
    names_are_shared = True
    longest_name = LONGEST_NAME
    too_short = 3.0
    """Long enough that the container exists by then."""

    def __init__(self, clusters: KindClusters) -> None:
        self._clusters = clusters

    @property
    def image(self) -> str:
        """The pause image, which every node has for its pods' sandboxes."""
        engine = self._clusters.engine
        node = next(each for each in engine.nodes() if each.name in self._clusters.containers())
        found = engine.execute(node, "ctr", "-n", "k8s.io", "images", "ls", "-q").split()
        return next(each for each in found if "/pause:" in each)

    def named(self, name: str) -> str:
        return self._clusters.named(name)

    def provider(self, workspace: str = "one") -> ClusterProvider:
        return self._clusters.provider(workspace)

    def remains(self, workspace: str = "one") -> list[object]:
        folder = self._clusters.folder(workspace)
        return [*self._clusters.containers(workspace), *_files(folder)]

    def slow_creations(self) -> AbstractContextManager[None]:
        return nullcontext()

    def in_node(self, name: str, *words: str) -> str:
        """Run a program in the node of a cluster; returns its output."""
        engine = self._clusters.engine
        (node,) = engine.nodes(name)
        return engine.execute(node, *words)


class Existing:
    names_are_shared = True
    longest_name = 63
    too_short = 0.0
    image = PAUSE_IMAGE

    def __init__(self, backing: Backing) -> None:
        self._backing = backing

    def named(self, name: str) -> str:
        return name

    def provider(self, workspace: str = "one") -> ClusterProvider:
        return self._backing.existing(workspace)

    def remains(self, workspace: str = "one") -> list[object]:
        return [*self._backing.marks(workspace), *_files(self._backing.folder(workspace))]

    def slow_creations(self) -> AbstractContextManager[None]:
        return nullcontext()


class Gke:
    names_are_shared = True
    longest_name = gke_settings.LONGEST_NAME
    too_short = 0.05
    image = PAUSE_IMAGE

    def __init__(self, cloud: Google) -> None:
        self._cloud = cloud

    def named(self, name: str) -> str:
        return name

    def provider(self, workspace: str = "one") -> ClusterProvider:
        return self._cloud.provider(workspace)

    def remains(self, workspace: str = "one") -> list[object]:
        """The folder of gcloud's own settings isn't counted, as it belongs to no cluster."""
        folder = self._cloud.folder(workspace)
        files = [each for each in _files(folder) if each != folder / "gcloud"]
        return [*self._cloud.clusters(f"owner-{workspace}"), *files]

    @contextmanager
    def slow_creations(self) -> Iterator[None]:
        usual = self._cloud.seen()["make_seconds"]
        self._cloud.change(make_seconds=5)
        try:
            yield
        finally:
            self._cloud.change(make_seconds=usual)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*")) if folder.exists() else []


PLAYGROUND_IN_CI = (
    "test_a_made_cluster_is_there_and_becomes_ready",
    "test_deleting_leaves_nothing",
)
"""Of the playground, the embedded provider by another name; its other tests run in the soak."""


EMBEDDED_IN_QUICK_RUNS = (
    "test_two_concurrent_creations_create_one_cluster",
    "test_a_creation_that_times_out_leaves_nothing",
)
"""Tests that take long with kind and GKE; gke/test_refusals.py has GKE's errors."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        case = item.name.partition("[")[2]
        if "playground" in case:
            always = item.name.startswith(PLAYGROUND_IN_CI)
            item.add_marker(pytest.mark.slow if always else pytest.mark.soak)
        if case.startswith(("gke", "kind")) and item.name.startswith(EMBEDDED_IN_QUICK_RUNS):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="package")
def backing(toolbox: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backing]:
    """API servers of the clusters that ucp doesn't run itself (`existing` and `gke`)."""
    with backing_clusters(tmp_path_factory.mktemp("backing"), toolbox) as found:
        yield found


@pytest.fixture(
    scope="package",
    params=[
        "embedded",
        "existing",
        "gke",
        "playground",
        pytest.param("kind", marks=pytest.mark.kind),
    ],
)
def workshop(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workshop]:
    """One kind of provider after the other; its clusters are deleted after its last test."""
    root: Path = tmp_path_factory.mktemp(request.param)
    if request.param == "kind":
        with kind_clusters(root, request.getfixturevalue("kind_toolbox")) as clusters:
            yield Kind(clusters)
        return
    toolbox = request.getfixturevalue("toolbox")
    if request.param == "embedded":
        with control_planes(root, toolbox) as planes:
            yield Embedded(planes)
    elif request.param == "playground":
        with control_planes(root, toolbox, PlaygroundProvider) as planes:
            yield Embedded(planes)
    elif request.param == "existing":
        yield Existing(request.getfixturevalue("backing"))
    else:
        with google_before(request.getfixturevalue("backing")) as cloud:
            yield Gke(cloud)


@pytest.fixture(scope="package")
def desk(toolbox: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Shared by all tests of managed resources; each leaves nothing in the cloud."""
    with desk_of_its_own(tmp_path_factory.mktemp("provider"), toolbox) as found:
        yield found
