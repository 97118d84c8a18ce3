"""The resources of a removed environment's cluster that still exist."""

from __future__ import annotations

import copy
from typing import Any, cast

from k8s_ucp.inspect.cluster_deletion import ClusterDeletion, cluster_resources
from k8s_ucp.kube import Kind, Kube, Object

EKS, EC2 = "eks.aws.m.upbound.io/v1beta1", "ec2.aws.m.upbound.io/v1beta1"


class Core:
    """The API of the core cluster, in memory."""

    def __init__(self, *items: Object) -> None:
        self.items = list(items)

    def kind_of(self, api_version: str, kind: str) -> Kind:
        return Kind(api_version, kind, f"{kind.lower()}s")

    def find(self, kind: Kind, name: str, _: str | None = None) -> Object | None:
        named = (each for each in self.items if each["metadata"]["name"] == name)
        return next((each for each in named if each["kind"] == kind.kind), None)

    def list_all(self, kind: Kind, *_: Any, **__: Any) -> list[Object]:
        return [each for each in self.items if each["kind"] == kind.kind]


def resource(api_version: str, kind: str, name: str = "demo-prod", said: str = "") -> Object:
    labels = {"k8s-ucp.io/environment": name.removeprefix("demo-")}
    metadata = {"name": name, "namespace": "ucp-clusters", "uid": f"{kind}-{name}"}
    conditions = [{"type": "Synced", "status": "False" if said else "True", "message": said}]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {**metadata, "labels": labels},
        "status": {"conditions": conditions},
    }


def application(name: str, *items: Object) -> Object:
    told = [
        {
            "group": each["apiVersion"].partition("/")[0],
            "version": "v1beta1",
            "kind": each["kind"],
            "namespace": "ucp-clusters",
            "name": each["metadata"]["name"],
        }
        for each in items
    ]
    return {"kind": "Application", "metadata": {"name": name}, "status": {"resources": told}}


def leaving(item: Object) -> Object:
    return {**item, "metadata": {**item["metadata"], "deletionTimestamp": "now"}}


def deletion(core: Core, *resources: Object) -> ClusterDeletion:
    return ClusterDeletion(cast(Kube, core), "demo-prod", resources)


def test_other_environments_and_networks_of_databases_do_not_belong_to_the_cluster() -> None:
    cluster, other = resource(EKS, "Cluster"), resource(EKS, "Cluster", "demo-stage")
    vpc, of_database = resource(EC2, "VPC"), resource(EC2, "VPC", "orders-prod")
    of_database["metadata"]["labels"] = vpc["metadata"]["labels"]
    core = Core(cluster, other, vpc, of_database)
    told = [application("clusters", cluster, other, vpc), application("databases", of_database)]
    assert cluster_resources(cast(Kube, core), told, "prod") == [vpc, cluster]


def test_failed_deletions_are_listed_before_those_that_wait_for_them() -> None:
    stuck = leaving(resource(EKS, "Cluster", said="DeleteCluster: Throttling: slower"))
    vpc, subnet = leaving(resource(EC2, "VPC")), resource(EC2, "Subnet")
    assert deletion(Core(vpc, subnet, stuck), vpc, subnet, stuck).left() == (
        "Cluster demo-prod (DeleteCluster: Throttling: slower), "
        "VPC demo-prod (being deleted), Subnet demo-prod (not deleted yet)"
    )


def test_a_deletion_is_complete_once_the_argo_cd_secret_is_deleted_too() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "cluster-demo-prod"}}
    vpc, core = resource(EC2, "VPC"), Core(secret)
    assert "Argo CD's Secret" in deletion(core, vpc).left()
    core.items.clear()
    assert deletion(core, vpc).left() == ""


def test_a_recreated_resource_of_the_same_name_is_not_waited_for() -> None:
    before, now = resource(EC2, "VPC"), copy.deepcopy(resource(EC2, "VPC"))
    now["metadata"]["uid"] = "other"
    assert deletion(Core(now), before).left() == ""


def test_a_deletion_in_progress_is_detected() -> None:
    vpc = resource(EC2, "VPC")
    local = leaving(resource("k8s-ucp.io/v1alpha1", "LocalCluster"))
    assert not deletion(Core(vpc), vpc).has_begun()
    assert deletion(Core(), leaving(vpc)).has_begun()
    assert deletion(Core(local)).has_begun()
    assert "still exists" in deletion(Core(local)).left()
