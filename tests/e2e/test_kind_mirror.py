"""`images.mirror` on a real kind core: its nodes pull all images of the components from it."""

from __future__ import annotations

import ipaddress
import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.clusters.images import mirrored
from k8s_ucp.clusters.kind.provider import NODE_IMAGE as PINNED
from k8s_ucp.components.pods.component import POD
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.tools.catalogue import PODS
from k8s_ucp.tools.installer import Installer
from tests.conftest import CACHE
from tests.e2e.conftest import make_world
from tests.e2e.kind_world import reserved_pair
from tests.e2e.world import Workbench
from tests.kind_clusters import NODE_IMAGE
from tests.kind_images import ARGOCD, CROSSPLANE, REDIS
from tests.registry import Registry, build, running

pytestmark = pytest.mark.kind

HOST = "mirror.test:5000"
"""Host name that only the nodes can resolve."""
MIRROR = f"{HOST}/hub"
ENGINES = (ARGOCD, CROSSPLANE, REDIS)
TOPOLOGY = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {{name: {name}}}
spec:
  core: {{provider: kind, ports: {{http: {http}, https: {https}}}}}
  images: {{mirror: "{mirror}", nodeImage: "{node}"}}
"""
DOCKERFILE = f"""\
ARG BASE
FROM $BASE
COPY hosts.toml /etc/containerd/certs.d/{HOST}/hosts.toml
"""


@pytest.fixture
def engine() -> ContainerEngine:
    found = ContainerEngine()
    if found.name != "docker":
        pytest.skip("where nodes reach this machine is known of Docker's bridge only")
    return found


@pytest.fixture
def registry(engine: ContainerEngine, tmp_path: Path) -> Iterator[Registry]:
    """A registry with the components' images, on this machine's address on Docker's bridge."""
    (bridge,) = json.loads(engine.run("network", "inspect", "bridge"))
    config = bridge["IPAM"]["Config"][0]
    # A dockerd that has just created its bridge reports only the subnet.
    address = config.get("Gateway") or str(ipaddress.ip_network(config["Subnet"])[1])
    with running(build(CACHE), tmp_path, address) as found:
        for each in ENGINES:
            found.push(engine, each, mirrored(each, MIRROR).removeprefix(f"{HOST}/"))
        yield found


@pytest.fixture
def node_image(engine: ContainerEngine, registry: Registry, tmp_path: Path) -> Iterator[str]:
    """A custom node image whose containerd knows the mirror's address."""
    base = NODE_IMAGE or PINNED
    tag = base.partition("@")[0].rpartition(":")[2]
    name = f"ucp-tests/node-{uuid.uuid4().hex[:8]}:{tag}"
    folder = tmp_path / "node"
    folder.mkdir()
    (folder / "hosts.toml").write_text(f'server = "http://{registry.address}"\n')
    (folder / "Dockerfile").write_text(DOCKERFILE)
    arguments = ("--build-arg", f"BASE={base}", "--tag", name)
    engine.run("build", *arguments, str(folder), timeout=120)
    yield name
    engine.run("rmi", name)


@pytest.fixture
def mirrored_core(registry: Registry, node_image: str) -> Iterator[Workbench]:
    """A described topology; its clusters are deleted at the end."""
    Installer(CACHE, lambda event: None).install((*PODS, *PROVIDERS["kind"].tools))
    for world in make_world("work", watched=False):
        world.provider, world.topology = "kind", f"ucp-{uuid.uuid4().hex[:6]}"
        world.environment["KUBECONFIG"] = str(world.home / "kubeconfig")
        text = TOPOLOGY.format(
            name=world.topology, mirror=MIRROR, node=node_image, **reserved_pair(world)
        )
        (world.workspace / "ucp.yaml").write_text(text)
        try:
            yield world
            world.ucp("stop", "--yes")
        finally:
            world.remove_clusters()


def test_every_image_of_the_components_is_pulled_from_the_mirror(
    engine: ContainerEngine, registry: Registry, mirrored_core: Workbench
) -> None:
    before = registry.seen()
    mirrored_core.ucp("start", "--yes")
    assert all(each["ready"] for each in mirrored_core.status()["components"])
    wanted = {mirrored(each, MIRROR) for each in ENGINES}
    assert {f"{HOST}/{each}" for each in registry.asked_for(since=before)} == wanted
    kube = mirrored_core.kube("core")
    run = {
        container["image"]
        for namespace in ("argocd", "crossplane-system")
        for pod in kube.list_all(POD, namespace)
        for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])
    }
    kube.close()
    assert run == wanted
