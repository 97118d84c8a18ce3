"""LocalClusters with the real embedded provider: created, repaired, refused, deleted."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from k8s_ucp import names
from k8s_ucp.cluster_provider import ClusterRequest, Reach, Report
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.clusters.embedded.processes import find_own
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import DEPLOYMENT, LOCAL_CLUSTER, SECRET, Invalid, Kube, Object
from k8s_ucp.process import ProcessIdentity, is_running
from k8s_ucp.tools.toolbox import Toolbox
from tests.integration.reconciler.conftest import Planes
from tests.integration.reconciler.world import (
    CLUSTERS,
    Clusters,
    Standing,
    as_argo_cd,
    deployment,
    eventually,
)

pytestmark = pytest.mark.engines


@pytest.fixture
def provider(planes: Planes, toolbox: Toolbox) -> Iterator[EmbeddedProvider]:
    """The real provider, with a folder of its own for the test."""
    found = EmbeddedProvider(planes.folder / "made", toolbox, ports=planes.provider._ports)
    yield found
    for name in found.names():
        found.delete(name)


def processes(planes: Planes, name: str) -> list[ProcessIdentity]:
    return find_own(ClusterFolder(planes.folder / "made", name))


def test_declared_clusters_are_created_registered_repaired_and_deleted(
    world: Clusters, planes: Planes, provider: EmbeddedProvider
) -> None:
    world.start(provider=provider)
    world.declare("stage")
    world.declare("prod")
    for name in ("demo-stage", "demo-prod"):
        secret = world.await_registered(name)
        with as_argo_cd(secret) as kube:
            kube.apply(deployment("echo", "default"))
            available = eventually(
                lambda kube=kube: kube.get(DEPLOYMENT, "echo", "default")["status"].get(
                    "availableReplicas"
                ),
                "simulated pods",
            )
            assert available == 1
        item = world.local_cluster(name)
        assert item is not None
        assert item["status"]["version"] == provider.state(name).version
        assert item["status"]["observedGeneration"] == item["metadata"]["generation"]
        file = world.folder / "kubeconfigs" / f"{name}.yaml"
        assert file.stat().st_mode & 0o777 == 0o600
        kube = Kube.from_file(file)
        assert kube.version() == item["status"]["version"]
        kube.close()
    drift_is_repaired(world, provider)
    # One is deleted, the other stays.
    before = processes(planes, "demo-stage")
    assert before
    world.delete("demo-stage")
    world.await_gone("demo-stage")
    assert provider.names() == ["demo-prod"]
    assert not [each for each in before if is_running(each)]
    assert world.core.find(SECRET, "demo-stage-kubeconfig", CLUSTERS) is None
    assert not (world.folder / "kubeconfigs" / "demo-stage.yaml").exists()
    assert world.condition(names.READY, "demo-prod") == ("True", "Running")


def drift_is_repaired(world: Clusters, provider: EmbeddedProvider) -> None:
    """What demo-stage consists of is deleted or stopped, and comes back."""
    # A deleted Secret is written again, without effect on the registration.
    registered = world.cluster_secret()
    world.core.delete(SECRET, "demo-stage-kubeconfig", CLUSTERS)
    eventually(
        lambda: world.core.find(SECRET, "demo-stage-kubeconfig", CLUSTERS), "the Secret again"
    )
    assert world.cluster_secret() == registered
    (world.folder / "kubeconfigs" / "demo-stage.yaml").unlink()
    eventually((world.folder / "kubeconfigs" / "demo-stage.yaml").exists, "the file again")
    # A stopped cluster is started again, with its data.
    provider.stop("demo-stage")
    eventually(lambda: provider.state("demo-stage").ready, "the cluster again")
    kube = Kube(provider.kubeconfig("demo-stage"))
    assert kube.get(DEPLOYMENT, "echo", "default")
    kube.close()
    world.await_condition(names.READY, "True")
    world.await_condition(names.REACHABLE, "True")
    assert world.cluster_secret() == registered


def test_a_cluster_of_another_machine_is_left_alone(world: Clusters) -> None:
    world.start()
    before = world.declare(spec={"machine": "elsewhere"})
    world.declare("prod")
    world.await_registered("demo-prod")
    time.sleep(1)
    assert world.local_cluster() == before
    world.delete()
    assert world.local_cluster() is None
    assert world.provider.deleted == []


class Replacing(Standing):
    """Another machine's LocalCluster takes the place of the first one that is looked up."""

    def __init__(self, world: Clusters) -> None:
        super().__init__(world.provider.configs)
        self._world = world
        self.successor: Object | None = None

    def kubeconfig(self, name: str, *, reach: Reach = Reach.MACHINE) -> dict[str, Any]:
        if not self.successor:
            without = {"metadata": {"finalizers": None}}
            self._world.core.patch(LOCAL_CLUSTER, name, CLUSTERS, without)
            self._world.delete()
            self.successor = self._world.declare(spec={"machine": "elsewhere"})
        return super().kubeconfig(name, reach=reach)


def test_a_successor_on_another_machine_is_left_alone(world: Clusters) -> None:
    provider = Replacing(world)
    world.start(provider=provider)
    world.declare()
    world.declare("prod")
    world.await_registered("demo-prod")
    time.sleep(1)
    assert provider.successor
    assert world.local_cluster() == provider.successor


def test_a_declaration_with_the_name_of_the_core_is_refused(world: Clusters) -> None:
    world.start()
    world.declare("core", name="demo-core")
    world.await_condition(names.READY, "False", "NameRefused", "demo-core")
    world.delete("demo-core")
    eventually(lambda: world.local_cluster("demo-core") is None, "its end")
    assert world.provider.made == {}
    assert world.provider.deleted == []


def test_a_missing_provider_is_reported(world: Clusters) -> None:
    world.start()
    world.declare(spec={"provider": "kind"})
    world.await_condition(names.READY, "False", "ProviderMissing")
    world.delete()
    eventually(lambda: world.local_cluster() is None, "its end")


def test_a_failed_creation_is_reported_and_retried(world: Clusters) -> None:
    world.provider.failing = "port 6443 is taken"
    world.start()
    world.declare()
    world.await_condition(names.READY, "False", "CreateFailed")
    assert "port 6443 is taken" in world.message(names.READY)
    world.provider.failing = ""
    world.await_registered()


class Failing(Standing):
    """Every creation fails; records the reason that people see during each."""

    def __init__(self, world: Clusters) -> None:
        super().__init__(world.provider.configs)
        self._world = world
        self.seen: list[str] = []

    def create(self, request: ClusterRequest, report: Report, *, timeout: float = 120) -> None:
        self.seen.append(self._world.condition(names.READY)[1])
        raise UcpError("its data is damaged")


def test_a_retried_creation_does_not_hide_why_the_previous_one_failed(world: Clusters) -> None:
    provider = Failing(world)
    world.start(provider=provider)
    world.declare()
    seen = eventually(lambda: provider.seen[2:], "the third attempt")
    assert seen[0] == "CreateFailed"
    assert provider.seen[0] == "Creating"


def test_a_foreign_kubeconfig_secret_is_left_alone(world: Clusters) -> None:
    before = world.core.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "demo-stage-kubeconfig", "namespace": CLUSTERS},
            "stringData": {"mine": "yes"},
        }
    )
    world.start()
    world.declare()
    world.await_condition(names.READY, "False", "SecretTaken")
    world.delete()
    eventually(lambda: world.local_cluster() is None, "its end")
    assert world.core.get(SECRET, "demo-stage-kubeconfig", CLUSTERS) == before


def test_the_provider_is_called_once_per_change(world: Clusters) -> None:
    world.start(resync_seconds=0.1)
    world.declare()
    world.await_registered()
    time.sleep(1)
    assert world.provider.made == {"demo-stage": 1}
    world.declare(spec={"nodes": 3})
    eventually(lambda: world.provider.made["demo-stage"] == 2, "one more call")
    time.sleep(1)
    assert world.provider.made == {"demo-stage": 2}


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"spec": {"provider": "magic"}}, "provider"),
        ({"spec": {"nodes": -1}}, "nodes"),
        ({"spec": {"version": "latest"}}, "version"),
        ({"spec": {"machine": ""}}, "machine"),
        ({"name": "demo.stage"}, "a-z, 0-9"),
    ],
)
def test_the_schema_rejects_invalid_fields_with_an_explanation(
    world: Clusters, changes: dict[str, Any], word: str
) -> None:
    with pytest.raises(Invalid, match=word):
        world.declare(**changes)


def test_the_provider_of_a_cluster_cannot_be_changed(world: Clusters) -> None:
    world.declare()
    with pytest.raises(Invalid, match="delete it and create another"):
        world.core.patch(LOCAL_CLUSTER, "demo-stage", CLUSTERS, {"spec": {"provider": "kind"}})


PROGRAM = """
import json, sys
from pathlib import Path
from k8s_ucp.cli.main import leave
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.clusters.ports import Ports
from k8s_ucp.reconciler.manager import run
from k8s_ucp.reconciler.runtime.settings import Settings
from k8s_ucp.tools.toolbox import Toolbox
told = json.loads(sys.stdin.read())
paths = {name: Path(path) for name, path in told["programs"].items()}
provider = EmbeddedProvider(
    Path(told["folder"]), Toolbox(paths, {}), ports=Ports(Path(told["ports"]))
)
settings = Settings(
    kubeconfig=Path(told["kubeconfig"]), machine="here", topology="demo", resync_seconds=1
)
run(settings, {"embedded": provider})
leave(0)
"""


def test_the_process_stops_quickly_and_resumes_after_a_restart(
    world: Clusters, planes: Planes, toolbox: Toolbox, provider: EmbeddedProvider
) -> None:
    config = world.folder / "core.kubeconfig"
    config.write_text(json.dumps(world.core_config))
    told = json.dumps(
        {
            "programs": {name: str(path) for name, path in toolbox.programs.items()},
            "folder": str(planes.folder / "made"),
            "ports": str(planes.folder / "ports"),
            "kubeconfig": str(config),
        }
    )
    processes: list[subprocess.Popen[str]] = []

    def log(process: subprocess.Popen[str]) -> str:
        return (world.folder / f"log-{processes.index(process)}").read_text()

    def start() -> subprocess.Popen[str]:
        with (world.folder / f"log-{len(processes)}").open("w") as stream:
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=stream, text=True
            )
        processes.append(process)
        assert process.stdin is not None
        process.stdin.write(told)
        process.stdin.close()
        return process

    def end(process: subprocess.Popen[str]) -> int:
        process.terminate()
        began = time.monotonic()
        code = process.wait(60)
        assert time.monotonic() - began < 20
        return code

    try:
        first = start()
        world.declare()
        world.await_condition(names.READY, "False", "Creating")
        # The process is stopped while it creates a control plane.
        assert end(first) == 0
        second = start()
        world.await_registered()
        world.await_condition(names.READY, "True")
        before = world.versions()
        second.kill()
        second.wait()
        third = start()
        eventually(lambda: '"working"' in log(third), "its work")
        time.sleep(2)
        assert world.versions() == before
        world.delete()
        world.await_gone()
        assert end(third) == 0
    finally:
        for each in processes:
            each.kill()
            each.wait()
            world.logs.write(log(each))
    assert provider.names() == []
