"""EKS clusters with a real control plane behind them: both are created and deleted together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from k8s_ucp.aws.backing import BackedResource, BackingState
from k8s_ucp.aws.client import AwsAccount, ResourceNotFound
from k8s_ucp.aws.kinds import eks
from k8s_ucp.aws.resource import AwsResource
from k8s_ucp.managed.external import CloudFailed, Declared

PARAMETERS = {"region": "eu-west-3", "vpcConfig": {"subnetIds": ["s-1"], "subnetIdRefs": [{}]}}


@dataclass
class Cloud:
    """Clusters by name, as EKS describes them."""

    clusters: dict[str, dict[str, Any]] = field(default_factory=dict)
    in_use: bool = False

    def call(self, _service: str, _region: str, operation: str, **asked: Any) -> dict[str, Any]:
        name = asked["name"]
        if operation == "CreateCluster":
            record = {"status": "ACTIVE", "endpoint": "https://made-up", "arn": f"arn:{name}"}
            self.clusters[name] = {**asked, **record}
        if name not in self.clusters:
            raise ResourceNotFound(f"No cluster found for name: {name}.")
        if operation == "DeleteCluster":
            if self.in_use:
                raise CloudFailed("Cluster has nodegroups attached")
            return {"cluster": self.clusters.pop(name)}
        return {"cluster": self.clusters[name]}


@dataclass
class Programs:
    """Implements Backing: the control plane responds from the second check on."""

    running: dict[str, int] = field(default_factory=dict)

    def bring_up(self, resource: BackedResource) -> BackingState:
        self.running[resource.name] = self.running.get(resource.name, 0) + 1
        return self.state(resource)

    def state(self, resource: BackedResource) -> BackingState:
        if self.running.get(resource.name, 0) < 2:
            told = {"status": "CREATING", "endpoint": None}
            return BackingState(False, "not responding", told)
        access = {"kubeconfig": "a way in", "certificateAuthority": {"data": "Q0E="}}
        return BackingState(True, overrides={"endpoint": "https://127.0.0.1:1", **access})

    def exists(self, resource: BackedResource) -> bool:
        return resource.name in self.running

    def remove(self, resource: BackedResource) -> None:
        self.running.pop(resource.name, None)


@dataclass
class Setting:
    cloud: Cloud = field(default_factory=Cloud)
    programs: Programs = field(default_factory=Programs)

    def resource(self, kind: Any = eks.CLUSTER) -> AwsResource:
        return AwsResource(cast(AwsAccount, self.cloud), kind, self.programs)

    def made(self) -> AwsResource:
        """A cluster that is ready."""
        resource = self.resource()
        resource.create(declared())
        resource.observe(declared())
        assert resource.observe(declared()).ready
        return resource


def declared(name: str = "demo-stage", *, deleting: bool = False, **more: Any) -> Declared:
    return Declared({**PARAMETERS, **more}, name, name, deleting=deleting)


def test_a_cluster_is_ready_once_its_control_plane_responds() -> None:
    setting = Setting()
    resource = setting.resource()
    assert not resource.observe(declared()).exists

    resource.create(declared())
    early, up = resource.observe(declared()), resource.observe(declared())

    assert setting.cloud.clusters["demo-stage"]["resourcesVpcConfig"] == {"subnetIds": ["s-1"]}
    assert (early.exists, early.ready, early.why) == (True, False, "not responding")
    assert "endpoint" not in early.at_provider
    assert up.ready
    assert up.at_provider["endpoint"] == "https://127.0.0.1:1"
    assert up.at_provider["arn"] == "arn:demo-stage"


def test_an_endpoint_without_a_control_plane_is_marked_as_simulated() -> None:
    setting = Setting()
    resource = AwsResource(cast(AwsAccount, setting.cloud), eks.CLUSTER)
    resource.create(declared())

    seen = resource.observe(declared())

    assert seen.ready
    assert seen.at_provider["simulated"] == "nothing answers at this endpoint"


def test_a_control_plane_keeps_running_while_the_cloud_refuses_the_deletion() -> None:
    setting = Setting()
    resource = setting.made()
    setting.cloud.in_use = True

    with pytest.raises(CloudFailed, match="nodegroups"):
        resource.delete(declared(deleting=True))
    assert setting.programs.running

    setting.cloud.in_use = False
    resource.delete(declared(deleting=True))
    assert not setting.programs.running
    assert not resource.observe(declared(deleting=True)).exists


def test_a_protected_cluster_is_not_deleted() -> None:
    setting = Setting()
    resource = setting.made()

    with pytest.raises(CloudFailed, match="deletion protection"):
        resource.delete(declared(deleting=True, deletionProtection=True))

    assert setting.programs.running
    assert setting.cloud.clusters


def test_the_control_plane_of_a_cluster_being_deleted_is_not_restarted() -> None:
    setting = Setting()
    resource = setting.made()
    setting.programs.running.clear()

    assert resource.observe(declared(deleting=True)).exists
    assert not setting.programs.running


def test_a_control_plane_left_by_an_interrupted_deletion_is_stopped() -> None:
    setting = Setting()
    resource = setting.made()
    setting.cloud.clusters.clear()

    assert resource.observe(declared(deleting=True)).exists
    resource.delete(declared(deleting=True))

    assert not setting.programs.running
    assert not resource.observe(declared(deleting=True)).exists


def test_a_recreated_cluster_starts_without_the_old_control_plane() -> None:
    setting = Setting()
    resource = setting.made()
    setting.cloud.clusters.clear()

    assert not resource.observe(declared()).exists
    resource.create(declared())

    assert not setting.programs.running


def test_cluster_auth_returns_connection_details_and_never_creates_or_deletes() -> None:
    setting = Setting()
    access = setting.resource(eks.CLUSTER_AUTH)
    named = declared("access", clusterName="demo-stage")
    with pytest.raises(CloudFailed, match="demo-stage"):
        access.observe(named)

    setting.made()

    assert access.observe(named).details == {
        "kubeconfig": "a way in",
        "endpoint": "https://127.0.0.1:1",
        "clusterCA": "Q0E=",
    }
    assert not access.observe(declared("access", deleting=True, clusterName="demo-stage")).exists
    assert setting.programs.running
