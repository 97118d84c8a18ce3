"""A separate workspace for each test, in which the real command runs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.canaries import leaks
from tests.e2e.world import Workbench
from tests.end_of_run import ends_with_this_run
from tests.remembered_builds import remembered_builds

CORE_ALONE = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec: {environments: [], apps: []}
"""
"""The smallest topology."""


@contextmanager
def make_world() -> Iterator[Workbench]:
    """Yield a workspace; what runs in it is stopped, and outputs are searched for secrets."""
    folder = Path(tempfile.mkdtemp(prefix="ucp-cli-"))
    world = Workbench(folder / "work space", folder / "home", watched=True)
    world.home.mkdir()
    world.workspace.mkdir()
    ends_with_this_run(folder, world.identifier)
    try:
        yield world
        found = leaks(world, asking=False) if world.watched else []
        assert found == []
        if world.processes():
            world.ucp("stop", "--yes")
        assert world.processes() == []
    finally:
        world.kill_everything()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def world() -> Iterator[Workbench]:
    with make_world() as world:
        yield world


def files(world: Workbench) -> list[str]:
    """Paths of everything in the workspace."""
    return sorted(str(each.relative_to(world.workspace)) for each in world.workspace.rglob("*"))


@pytest.fixture(scope="module", autouse=True)
def remember_builds() -> Iterator[None]:
    """No test here is about what kustomize builds from the same files as before."""
    with remembered_builds():
        yield
