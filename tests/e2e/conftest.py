"""Topologies for the end-to-end tests. One is started per worker and shared by its tests.

It is stopped after the last test in this folder: an idle topology would slow down what follows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import CACHE
from tests.e2e.canaries import leaks
from tests.e2e.existing_cluster import TheirCluster, their_cluster
from tests.e2e.kind_world import (
    KIND_FLAGS,
    KIND_NETWORK,
    bystanders,
    describe_kind,
    leaving_nothing,
    network_is_used_or_gone,
)
from tests.e2e.world import Workbench, until
from tests.end_of_run import ends_with_this_run
from tests.integration.gitops.promotion.git_servers import HttpGit, http_git
from tests.kind_images import make_ingress, make_quote

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add the marks that all tests here carry."""
    for item in items:
        if _is_ours(item):
            item.add_marker(pytest.mark.e2e)
            # A timeout mark of the test would override one of its module.
            if "kind" in item.keywords or item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(1800 if "kind" in item.keywords else 900))


def _is_ours(item: pytest.Item) -> bool:
    return "/e2e/" in item.path.as_posix()


@pytest.fixture
def world(toolbox: Toolbox) -> Iterator[Workbench]:
    """A new workspace that is not started; what a test starts in it is stopped afterwards."""
    yield from make_world("demo work space")


@pytest.fixture(scope="package", params=["embedded", pytest.param("kind", marks=pytest.mark.kind)])
def demo(request: pytest.FixtureRequest) -> Iterator[Workbench]:
    """A started topology with stage, prod and echo, all on one provider.

    embedded: what `ucp start --yes` creates without further options, in a login session that has
    ended.
    """
    if request.param == "kind":
        yield from kind_demo()
        return
    request.getfixturevalue("toolbox")
    for world in make_world("work"):
        with world.login():
            world.ucp("start", "--yes")
            world.uids_in_login = world.uids()
        yield world
        # Tests have stopped and started it since, outside of a login session.
        with world.login():
            world.ucp("stop", "--yes")
        assert world.processes() == []


@pytest.fixture
def started(demo: Workbench) -> Workbench:
    """The shared topology, started again if another test has stopped it."""
    if not demo.status()["core"]["ready"]:
        demo.ucp("start", "--yes")
    return demo


@pytest.fixture(scope="package")
def newcomer(toolbox: Toolbox) -> Iterator[Workbench]:
    """The workspace in which the pages of docs/ are followed, before its first start."""
    yield from make_world("reader")


@pytest.fixture
def reader(newcomer: Workbench) -> Workbench:
    """That workspace, started by the first page or, if that test did not run, by this fixture."""
    if not newcomer.state.is_dir():
        newcomer.ucp("start", "--yes")
    return newcomer


def kind_demo() -> Iterator[Workbench]:
    from k8s_ucp.clusters.container_engine import ContainerEngine
    from k8s_ucp.providers import PROVIDERS
    from k8s_ucp.tools.catalogue import PODS
    from k8s_ucp.tools.installer import Installer

    Installer(CACHE, lambda event: None).install((*PODS, *PROVIDERS["kind"].tools))
    engine = ContainerEngine()
    for world in make_world("work", watched=False):
        describe_kind(world, engine, more=[make_ingress(engine), *make_quote(engine).values()])
        network_of_others = engine.network(KIND_NETWORK) is not None
        try:
            with bystanders(engine):
                world.ucp("start", *KIND_FLAGS, "--yes")
                yield world
                with leaving_nothing(engine, world.topology):
                    world.ucp("stop", "--yes")
            if not network_of_others:
                until("the network goes", lambda: network_is_used_or_gone(engine))
        finally:
            world.remove_clusters()


def make_world(name: str, *, watched: bool = True) -> Iterator[Workbench]:
    """Yield a workspace of that name; everything that runs in it is stopped afterwards.

    watched: fail if any of its secrets is then in a place that others can read.
    """
    folder = Path(tempfile.mkdtemp(prefix="ucp-e2e-"))
    home, workspace = folder / "home", folder / name
    home.mkdir()
    workspace.mkdir()
    world = Workbench(workspace, home, watched=watched)
    ends_with_this_run(folder, world.identifier)
    try:
        yield world
        found = leaks(world) if world.watched else []
        assert found == []
        if world.state.is_dir():
            world.ucp("stop", "--yes")
        assert world.processes() == []
    finally:
        world.kill_everything()
        for each in (folder, world.database_folder):
            shutil.rmtree(each, ignore_errors=True)


@pytest.fixture
def theirs(toolbox: Toolbox) -> Iterator[TheirCluster]:
    """A cluster of another owner that cores can use."""
    # It contains sockets, and pytest's own folders have paths that are too long for them.
    folder = Path(tempfile.mkdtemp(prefix="ucp-t"))
    with their_cluster(folder, toolbox) as found:
        yield found
    shutil.rmtree(folder)


@pytest.fixture
def git_host(tmp_path: Path) -> Iterator[HttpGit]:
    """A git server with both repositories, which are empty."""
    for name in ("core", "apps"):
        bare = tmp_path / "git" / f"{name}.git"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(bare)], check=True)
        subprocess.run(["git", "-C", str(bare), "config", "http.receivepack", "true"], check=True)
    with http_git(tmp_path / "git", dict(os.environ), auth=False) as found:
        yield found
