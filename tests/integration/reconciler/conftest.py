"""Three real control planes, shared by all tests here, and an empty core cluster for each test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp import names
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.clusters.ports import Ports
from k8s_ucp.components import manifests
from k8s_ucp.components.manifests import Manifest
from k8s_ucp.gitops.manifests.yaml_text import load_all
from k8s_ucp.kube import Kube
from k8s_ucp.tools.toolbox import Toolbox
from tests.control_planes import made, made_with, start_what_ended
from tests.end_of_run import ends_with_this_run
from tests.integration.reconciler.access.token_endpoint import Endpoint, token_endpoint
from tests.integration.reconciler.mirror_world import empty_mirrors
from tests.integration.reconciler.world import (
    Clusters,
    Standing,
    assert_no_secret_in_the_open,
    empty,
)

CRDS = Path(__file__).parents[2] / "golden/trees/demo/core/platform/reconciler"
ACCESS = CRDS / "access.yaml"
"""RBAC that `ucp start` applies; all tests here run with exactly these permissions."""


@dataclass
class Planes:
    """The control planes that all worlds share."""

    provider: EmbeddedProvider
    folder: Path
    core: Kube
    apps: dict[str, Kube]
    clean: bool = False
    """Nothing that a test left is on them."""

    def config(self, name: str) -> dict[str, Any]:
        return self.provider.kubeconfig(name)

    def start_what_ended(self) -> None:
        start_what_ended(self.provider, self.folder / "clusters")

    def clear(self) -> None:
        empty_mirrors(self.core, self.apps)
        empty(self.core, self.apps)
        self.clean = True


@pytest.fixture(scope="package")
def planes(toolbox: Toolbox) -> Iterator[Planes]:
    """Deleted after the last test here, since three per worker would slow down later tests."""
    folder = Path(tempfile.mkdtemp(prefix="ucp-test-"))
    ends_with_this_run(folder)
    provider = EmbeddedProvider(folder / "clusters", toolbox, ports=Ports(folder / "ports"))
    clusters = ("demo-stage", "demo-prod")
    try:
        with ThreadPoolExecutor(3) as pool:
            coming = pool.submit(made_with, provider, "test-core", toolbox, kinds(toolbox))
            others = {each: pool.submit(made, provider, each) for each in clusters}
        core = coming.result()
        make_room(core)
        apps = {name: each.result() for name, each in others.items()}
        yield Planes(provider, folder, core, apps)
    finally:
        for name in provider.names():
            provider.delete(name)
        shutil.rmtree(folder, ignore_errors=True)


def furnish(core: Kube, toolbox: Toolbox) -> None:
    """Apply the CRDs, namespaces and RBAC that the reconciler needs, as `ucp start` does."""
    found = kinds(toolbox)
    manifests.apply_all(core, found)
    make_room(core)
    manifests.wait_served(core, found)


def kinds(toolbox: Toolbox) -> list[Manifest]:
    """CRDs of LocalCluster, Syncer and Argo CD's Application."""
    applications = toolbox.module("argocd") / "manifests/crds/application-crd.yaml"
    paths = (CRDS / "crds.yaml", CRDS / "syncers.yaml", applications)
    return manifests.read({path.name: path.read_bytes() for path in paths})


def make_room(core: Kube) -> None:
    """Apply the namespaces that the reconciler works in, and its RBAC."""
    for name in (names.CLUSTERS_NAMESPACE, names.ARGOCD_NAMESPACE, "crossplane-system"):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        core.apply(namespace, manager="test")
    for item in load_all(ACCESS.read_text("utf-8")):
        core.apply(item, manager="test")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """A cloud's token endpoint."""
    with token_endpoint() as found:
        yield found


@pytest.fixture
def world(planes: Planes, tmp_path: Path) -> Iterator[Clusters]:
    """An empty core cluster whose list of environments contains stage and prod."""
    planes.start_what_ended()
    if not planes.clean:
        planes.clear()
    planes.clean = False
    provider = Standing({name: planes.config(name) for name in planes.apps})
    found = Clusters(planes.core, planes.config("test-core"), tmp_path, provider, planes.apps)
    found.list_environments("stage", "prod")
    yield found
    found.stop()
    assert_no_secret_in_the_open(found)
    planes.clear()
