"""Topologies for the end-to-end tests. One is started once and shared by the tests of a worker."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.world import World

if TYPE_CHECKING:
    from k8s_ucp.tools.installer import Toolbox


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks that all of them carry. The tests of a file share a topology and run in order."""
    for item in items:
        if "/e2e/" in item.path.as_posix():
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.timeout(420))


@pytest.fixture
def world(toolbox: Toolbox) -> Iterator[World]:
    """A fresh workspace that is not started; whatever was started in it is ended afterwards."""
    yield from make_world("demo work space")


@pytest.fixture(scope="session")
def demo(toolbox: Toolbox) -> Iterator[World]:
    """The topology that `ucp start --yes` brings up: stage, prod, echo."""
    for world in make_world("work"):
        world.ucp("start", "--yes")
        yield world


def make_world(name: str) -> Iterator[World]:
    """A workspace of that name; whatever was started in it is ended when the generator goes on."""
    folder = Path(tempfile.mkdtemp(prefix="ucp-e2e-"))
    home, workspace = folder / "home", folder / name
    home.mkdir()
    workspace.mkdir()
    world = World(workspace, home)
    try:
        yield world
        if world.state.is_dir():
            world.ucp("stop", "--yes")
        assert world.processes() == []
    finally:
        world.kill_everything()
        shutil.rmtree(folder, ignore_errors=True)
