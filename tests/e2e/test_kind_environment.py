"""An environment on a real kind cluster, with an embedded core: real pods, real faults.

The tests share a topology and run in order.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator

import pytest

from k8s_ucp.clusters.container_engine import CLUSTER_LABEL, ContainerEngine
from tests.docker_restart import COMMAND, DockerRestart
from tests.e2e.conftest import make_world
from tests.e2e.echo_app import answer
from tests.e2e.kind_world import bystanders, containers_of, leaving_nothing, volumes_of
from tests.e2e.world import Workbench, until
from tests.kind_clusters import NODE_IMAGE
from tests.kind_images import ECHO, TAGS, make_echo

pytestmark = [pytest.mark.kind, pytest.mark.timeout(900)]

TOPOLOGY = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {{name: {name}}}
spec:
  environments:
    - {{name: stage, cluster: {{provider: kind}}}}
    - {{name: prod, cluster: {{provider: embedded}}, promotesFrom: stage}}
  apps: [{{name: echo, image: {image}, tag: {tag}}}]
  images: {images}
"""


@pytest.fixture(scope="module")
def engine() -> ContainerEngine:
    return ContainerEngine()


@pytest.fixture(scope="module")
def world(toolbox: object, kind_toolbox: object, engine: ContainerEngine) -> Iterator[Workbench]:
    for world in make_world("kind work", watched=False):
        world.topology = f"ucp-{uuid.uuid4().hex[:8]}"
        archive = world.workspace / "images" / "echo.tar"
        archive.parent.mkdir()
        names = [make_echo(engine, tag) for tag in TAGS]
        engine.run("save", "--output", str(archive), *names, timeout=120)
        images = {"archives": ["images/echo.tar"]}
        if NODE_IMAGE:
            images["nodeImage"] = NODE_IMAGE
        (world.workspace / "ucp.yaml").write_text(
            TOPOLOGY.format(name=world.topology, image=ECHO, tag=TAGS[0], images=json.dumps(images))
        )
        world.environment["KUBECONFIG"] = str(world.home / "kubeconfig")
        yield world


def well(world: Workbench) -> bool:
    status = world.status()
    clusters = [each["cluster"] for each in status["environments"]]
    return all(each["ready"] and each["reachable"] for each in clusters) and all(
        (each["sync"], each["health"]) == ("Synced", "Healthy") for each in status["applications"]
    )


def node(world: Workbench) -> str:
    return f"{world.topology}-stage-control-plane"


def test_foreign_kind_cluster_of_the_same_name_stops_the_start(
    world: Workbench, engine: ContainerEngine
) -> None:
    """The start is refused before its first change, and the foreign cluster is left unchanged."""
    label = f"{CLUSTER_LABEL}={world.topology}-stage"
    theirs = engine.run("create", "--label", label, make_echo(engine, TAGS[0])).strip()
    try:
        for words in (("start", "--yes"), ("start", "--yes")):
            said = world.ucp(*words, expect=1).stderr
            assert "was not created by this workspace" in said
            assert "next: " in said
        assert not (world.workspace / ".ucp").exists()
        assert theirs in engine.run("ps", "--all", "--quiet", "--no-trunc").split()
    finally:
        engine.run("rm", theirs)


def test_start_is_refused_if_docker_does_not_run(world: Workbench) -> None:
    if ContainerEngine().name != "docker":
        pytest.skip("only Docker is asked by DOCKER_HOST")
    world.environment["DOCKER_HOST"] = f"unix://{world.home}/nobody.sock"
    try:
        said = world.ucp("start", "--yes", expect=1).stderr
    finally:
        del world.environment["DOCKER_HOST"]
    assert "Docker is not running" in said
    assert "systemctl start docker" in said
    assert not (world.workspace / ".ucp").exists()


def test_app_runs_in_a_real_pod_and_answers_with_its_tag(world: Workbench) -> None:
    world.ucp("start", "--yes", timeout=600)
    assert well(world)
    stage = world.status()["environments"][0]
    assert stage["cluster"]["provider"] == "kind"
    assert not stage["cluster"]["simulated"]
    assert answer(world, "stage") == TAGS[0]
    clusters = json.loads(world.ucp("clusters", "-o", "json").stdout)
    mine = next(each for each in clusters if each["name"] == f"{world.topology}-stage")
    assert mine["ready"]
    assert mine["addresses"]["http"].startswith("127.0.0.1:")


def test_app_answers_with_a_new_tag_after_a_push(world: Workbench) -> None:
    with world.commit("apps", "echo on stage: another tag") as clone:
        path = clone / "apps" / "echo" / "overlays" / "stage" / "kustomization.yaml"
        path.write_text(path.read_text().replace(TAGS[0], TAGS[1]))
    until("the other tag answers", lambda: answer(world, "stage") == TAGS[1])


def test_rerun_of_start_changes_nothing(world: Workbench, engine: ContainerEngine) -> None:
    had = containers_of(engine, world.topology), volumes_of(engine, world.topology)
    world.ucp("start", "--yes")
    assert (containers_of(engine, world.topology), volumes_of(engine, world.topology)) == had
    assert answer(world, "stage") == TAGS[1]


@pytest.mark.parametrize(
    "fault", [*(pytest.param(each, marks=pytest.mark.slow) for each in ("restart", "stop")), "kill"]
)
def test_stopped_node_is_restarted_automatically(
    world: Workbench, engine: ContainerEngine, fault: str
) -> None:
    engine.run(fault, node(world), timeout=60)
    until("the app answers again", lambda: answer(world, "stage") == TAGS[1])
    until("all is well", lambda: well(world))


def test_lost_kind_cluster_is_recreated_and_registered_again(
    world: Workbench, engine: ContainerEngine
) -> None:
    engine.run("rm", "--force", "--volumes", node(world))
    until("the app answers again", lambda: answer(world, "stage") == TAGS[1], seconds=240)
    until("all is well", lambda: well(world))


@pytest.mark.skipif(COMMAND not in os.environ, reason=f"{COMMAND} does not say how")
@pytest.mark.timeout(1800)
def test_environment_recovers_from_a_restart_of_docker(
    world: Workbench, docker_restart: DockerRestart
) -> None:
    had = containers_of(ContainerEngine(), world.topology)
    docker_restart.restart()
    until("the app answers again", lambda: answer(world, "stage") == TAGS[1], seconds=420)
    until("all is well", lambda: well(world), seconds=420)
    assert containers_of(ContainerEngine(), world.topology) == had


def test_stop_removes_everything_of_the_topology_and_nothing_else(
    world: Workbench, engine: ContainerEngine
) -> None:
    config = world.home / "kubeconfig"
    world.ucp("kubeconfig", "stage", "--merge")
    contexts = [each["name"] for each in json.loads(config.read_text())["contexts"]]
    assert contexts == [f"{world.topology}-stage"]
    with bystanders(engine), leaving_nothing(engine, world.topology):
        world.ucp("stop", "--yes")
    nodes = [each.cluster for each in engine.nodes()]
    assert f"{world.topology}-stage" not in nodes
    assert json.loads(config.read_text())["contexts"] == []
    assert world.processes() == []


@pytest.mark.slow
def test_start_after_a_stop_restores_the_state_in_git(world: Workbench) -> None:
    world.ucp("start", "--yes", timeout=600)
    assert well(world)
    assert answer(world, "stage") == TAGS[1]
