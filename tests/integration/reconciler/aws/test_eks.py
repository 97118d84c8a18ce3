"""An EKS environment in the simulated cloud, as rendered for AWS: created, restarted, deleted."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from k8s_ucp import names
from k8s_ucp.aws.installation import configuration, manifests
from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.cloud.faults import CloudFault
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.crossplane_objects import environment_resources
from k8s_ucp.inspect.status import environment_causes
from k8s_ucp.kube import CONFIG_MAP, SECRET, Kind, Kube, NotFound, Object
from k8s_ucp.reconciler.runtime.conditions import is_true
from k8s_ucp.reconciler.runtime.settings import MANAGED_RESOURCES, REGISTRATION
from tests.integration.reconciler.conftest import Planes
from tests.integration.reconciler.world import CLUSTERS, Clusters, as_argo_cd, eventually
from tests.simulated_cloud import CloudInThread, cloud_in_thread

pytestmark = pytest.mark.engines

RENDERED = Path(__file__).parents[3] / "golden/trees/clouds/core/clusters/base"
SETTLED = 90.0
"""Timeout in seconds: objects that reference others are retried with backoff."""


@dataclass
class Eks:
    """The rendered objects of an environment, and the simulated cloud for them."""

    world: Clusters
    provider: EmbeddedProvider
    cloud: CloudInThread
    items: dict[tuple[str, str], Object]
    """By kind and name."""

    def start(self) -> None:
        """Start the reconciler, as `ucp start` would."""
        self.world.start(
            provider=self.provider,
            limited=False,
            controllers=frozenset({MANAGED_RESOURCES, REGISTRATION}),
            aws=self.cloud.account,
        )

    def declare(self) -> None:
        for item in self.items.values():
            self.world.core.apply(item, manager="test")

    def delete(self) -> None:
        for kind, name in self.items:
            self.world.core.delete(_kind(self.items[kind, name]), name, CLUSTERS)

    def found(self, kind: str, name: str = "clouds") -> Object | None:
        return self.world.core.find(_kind(self.items[kind, name]), name, CLUSTERS)

    def await_ready(self) -> None:
        def unready() -> list[str]:
            return [
                f"{kind} {name}: {(item or {}).get('status', {}).get('conditions')}"
                for kind, name in self.items
                if not is_true((item := self.found(kind, name)) or {}, "Ready")
            ]

        with contextlib.suppress(AssertionError):
            eventually(lambda: not unready(), "all Ready", seconds=SETTLED)
        assert not unready(), self.world.logs.getvalue()[-3000:]

    def cause(self) -> str:
        """The cause of the environment's state, as `ucp status` determines it."""
        told = [
            {
                "group": item["apiVersion"].partition("/")[0],
                "version": item["apiVersion"].partition("/")[2],
                "kind": kind,
                "namespace": CLUSTERS,
                "name": name,
            }
            for (kind, name), item in self.items.items()
        ]
        found = environment_resources(self.world.core, [{"status": {"resources": told}}])
        return str(environment_causes(ClusterSnapshot(True, resources=found)).get("stage"))

    @contextlib.contextmanager
    def inside(self) -> Iterator[Kube]:
        """A client of the cluster with its kubeconfig Secret."""
        secret = self.world.core.get(SECRET, "clouds-kubeconfig", CLUSTERS)
        kube = Kube(json.loads(base64.b64decode(secret["data"]["kubeconfig"])))
        try:
            yield kube
        finally:
            kube.close()


def _kind(item: Object) -> Kind:
    group = item["apiVersion"].partition("/")[0]
    return KINDS[f"{item['kind']}.{group}"].kind


def _rendered() -> dict[tuple[str, str], Object]:
    yaml = YAML(typ="safe", pure=True)
    files = [
        *(RENDERED / "eks" / each for each in ("roles.yaml", "cluster.yaml", "node-group.yaml")),
        RENDERED / "eks-network" / "network.yaml",
    ]
    items = [item for each in files for item in yaml.load_all(each.read_text("utf-8"))]
    for each in items:
        each["metadata"].setdefault("labels", {})[names.ENVIRONMENT] = "stage"
    return {(each["kind"], each["metadata"]["name"]): each for each in items}


@pytest.fixture
def eks(world: Clusters, planes: Planes, tmp_path: Path) -> Iterator[Eks]:
    for each in manifests():
        world.core.apply(each, manager="test")
    for aws in KINDS.values():
        path = f"/apis/{aws.kind.api_version}/{aws.kind.plural}"
        eventually(lambda path=path: world.core.request("GET", path), f"{path} served")
    eventually(lambda: world.core.apply(configuration(), manager="test"), "an account")
    with cloud_in_thread(tmp_path / "cloud") as cloud:
        found = Eks(world, planes.provider, cloud, _rendered())
        try:
            yield found
        finally:
            world.stop()
            for kind, name in found.items:
                with contextlib.suppress(NotFound):
                    which = _kind(found.items[kind, name])
                    world.core.patch(which, name, CLUSTERS, {"metadata": {"finalizers": None}})
                    world.core.delete(which, name, CLUSTERS)
            for name in set(planes.provider.names()) - {"test-core", *planes.apps}:
                planes.provider.delete(name)


@pytest.mark.slow
def test_an_eks_environment_is_created_registered_restarted_with_its_data_and_deleted(
    eks: Eks,
) -> None:
    world, standing = eks.world, {*eks.provider.names()}
    eks.cloud.fail(CloudFault("throttle", operation="CreateCluster"))
    eks.start()
    eks.declare()
    refused = "Cluster clouds: CreateCluster: "
    eventually(lambda: eks.cause().startswith(refused), "the cloud's error", seconds=SETTLED)
    eks.cloud.fail()
    eks.await_ready()
    assert eks.cause() == "None"

    cluster = eks.found("Cluster")
    assert cluster is not None
    at = cluster["status"]["atProvider"]
    secret = eventually(lambda: world.cluster_secret("clouds"), "registered", seconds=SETTLED)
    assert base64.b64decode(secret["data"]["server"]).decode() == at["endpoint"]
    with as_argo_cd(secret) as argo:
        # The controller manager creates one in each namespace, sooner or later.
        eventually(
            lambda: argo.list_all(CONFIG_MAP, "default"), "Argo CD may read", seconds=SETTLED
        )
    (plane,) = {*eks.provider.names()} - standing
    assert eks.provider.state(plane).ready
    assert at["version"] in str(eks.provider.state(plane).version)
    assert (eks.cloud.left()["cluster"], eks.cloud.left()["node-group"]) == (1, 1)

    with eks.inside() as kube:
        kube.apply(CONFIG_MAP.object("kept", "default", data={"key": "value"}), manager="test")
    world.stop()
    eks.provider.stop(plane)
    eks.start()
    eventually(lambda: eks.provider.state(plane).ready, "running again", seconds=SETTLED)
    eks.await_ready()
    with eks.inside() as kube:
        assert kube.get(CONFIG_MAP, "kept", "default")["data"] == {"key": "value"}
    again = eks.found("Cluster")
    assert again is not None and again["status"]["atProvider"] == at

    eks.delete()
    for kind, name in eks.items:
        eventually(
            lambda kind=kind, name=name: eks.found(kind, name) is None,
            f"end of {kind} {name}",
            seconds=SETTLED,
        )
    eventually(lambda: world.cluster_secret("clouds") is None, "deregistered")
    assert {*eks.provider.names()} == standing
    assert not eks.cloud.left()
