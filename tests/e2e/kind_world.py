"""A topology on kind for machines that can't pull images: its requirements, and what it leaves."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psutil

from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.clusters.kind.network import NAME as KIND_NETWORK
from k8s_ucp.clusters.ports import Ports, default_registry
from k8s_ucp.kube import Kind
from tests.e2e.world import Workbench
from tests.kind_clusters import NODE_IMAGE
from tests.kind_images import ECHO, TAGS, make_echo

KIND_FLAGS = ("--core", "kind", "--env", "stage=kind", "--env", "prod=kind")
PROMOTED = ("7.0.1", "7.0.2", "7.0.3")
"""Tags that tests promote; all name the same image."""
POD = Kind("v1", "Pod", "pods")
SECONDS = 420
"""Of a recovery: an ApplicationSet controller may retry only after three minutes."""

_TOPOLOGY = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {{name: {name}}}
spec:
  core: {{provider: kind, ports: {{http: {http}, https: {https}}}}}
  environments:
    - {{name: stage, cluster: {{provider: kind}}}}
    - {{name: prod, cluster: {{provider: kind}}, promotesFrom: stage}}
  apps: [{{name: echo, image: {image}, tag: {tag}, hosts: [echo]}}]
  images: {images}
"""


def describe_kind(world: Workbench, engine: ContainerEngine, *, more: Sequence[str] = ()) -> None:
    """Write the topology, with names that no other run uses, and the archive of the app's images.

    more: images of the engine to add to the archive.
    """
    world.provider = "kind"
    world.topology = f"ucp-{uuid.uuid4().hex[:6]}"
    archive = world.workspace / "images" / "echo.tar"
    archive.parent.mkdir()
    names = [make_echo(engine, tag) for tag in TAGS]
    for tag in PROMOTED:
        engine.run("tag", names[1], f"{ECHO}:{tag}")
        names.append(f"{ECHO}:{tag}")
    engine.run("save", "--output", str(archive), *names, *more, timeout=120)
    images = {"archives": ["images/echo.tar"]} | ({"nodeImage": NODE_IMAGE} if NODE_IMAGE else {})
    ports = reserved_pair(world)
    text = _TOPOLOGY.format(
        name=world.topology,
        image=ECHO,
        tag=TAGS[0],
        images=json.dumps(images),
        **ports,
    )
    (world.workspace / "ucp.yaml").write_text(text)
    world.environment["KUBECONFIG"] = str(world.home / "kubeconfig")


def reserved_pair(world: Workbench) -> dict[str, int]:
    """{http, https}: ports that no other test gets while the workspace exists."""
    return Ports(default_registry()).reserve(str(world.workspace), ("http", "https"))


@contextmanager
def bystanders(engine: ContainerEngine) -> Iterator[None]:
    """Check that a container, a network and a volume of another owner exist after the block."""
    name = f"bystander-{uuid.uuid4().hex[:8]}"
    engine.run("network", "create", name)
    engine.run("volume", "create", name)
    where = ("--network", name, "--volume", f"{name}:/data")
    engine.run("create", "--name", name, *where, make_echo(engine, TAGS[0]))
    try:
        yield
        assert name in engine.run("ps", "--all", "--format", "{{.Names}}").split()
        assert name in networks(engine) & volumes(engine)
    finally:
        engine.run("rm", "--force", name)
        engine.run("network", "rm", name)
        engine.run("volume", "rm", name)


@contextmanager
def leaving_nothing(engine: ContainerEngine, topology: str) -> Iterator[None]:
    """Check after the block that the topology's containers and volumes are deleted.

    Other tests may use the engine at the same time, so only those of the topology count.
    """
    its_volumes = volumes_of(engine, topology)
    yield
    assert containers_of(engine, topology) == set()
    assert not its_volumes & volumes(engine)


def network_is_used_or_gone(engine: ContainerEngine) -> bool:
    """Return whether kind's network was deleted with the last cluster, if ucp created it."""
    return bool(engine.users_of_network(KIND_NETWORK)) or engine.network(KIND_NETWORK) is None


def containers_of(engine: ContainerEngine, topology: str) -> set[str]:
    """Ids of the topology's containers, running or not."""
    line = "{{.ID}} {{.Names}}"
    found = engine.run("ps", "--all", "--no-trunc", "--format", line).splitlines()
    pairs = (each.split() for each in found if each.strip())
    return {identity for identity, name in pairs if name.startswith(f"{topology}-")}


def volumes_of(engine: ContainerEngine, topology: str) -> set[str]:
    """Names of the volumes that its containers mount."""
    containers = containers_of(engine, topology)
    if not containers:
        return set()
    found = json.loads(engine.run("inspect", *sorted(containers)))
    mounts = (mount for each in found for mount in each["Mounts"])
    return {mount["Name"] for mount in mounts if mount["Type"] == "volume"}


def networks(engine: ContainerEngine) -> set[str]:
    return set(engine.run("network", "ls", "--format", "{{.Name}}").split())


def volumes(engine: ContainerEngine) -> set[str]:
    return set(engine.run("volume", "ls", "--quiet").split())


def well(world: Workbench) -> bool:
    """Everything is ready, and every Application is Synced and Healthy."""
    return world.is_well(clusters="reachable", applications=8)


def helpers(world: Workbench, program: str) -> list[psutil.Process]:
    """Processes of this topology on this machine with that word in their command line."""
    found = world.ask_processes(lambda each: (each, " ".join(each.cmdline())))
    return [each for each, line in found if program in line]
