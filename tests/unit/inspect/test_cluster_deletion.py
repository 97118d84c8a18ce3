"""The resources of a removed environment's cluster that still exist."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest

from k8s_ucp.cli.editing.deletion import await_cluster_deleted, clusters_first, refuse_unattended
from k8s_ucp.cli.plan_runner import EditKept
from k8s_ucp.errors import UsageError
from k8s_ucp.inspect.cluster_deletion import (
    ClusterDeletion,
    cluster_resources,
    to_hold,
    to_release,
)
from k8s_ucp.kube import Kind, Kube, Object
from k8s_ucp.names import HELD, PAUSED

EKS, EC2 = "eks.aws.m.upbound.io/v1beta1", "ec2.aws.m.upbound.io/v1beta1"
IAM = "iam.aws.m.upbound.io/v1beta1"


class Core:
    """The API of the core cluster, in memory."""

    def __init__(self, *items: Object) -> None:
        self.items = list(items)
        self.deleted: list[str] = []

    def kind_of(self, api_version: str, kind: str) -> Kind:
        return Kind(api_version, kind, f"{kind.lower()}s")

    def find(self, kind: Kind, name: str, _: str | None = None) -> Object | None:
        named = (each for each in self.items if each["metadata"]["name"] == name)
        return next((each for each in named if each["kind"] == kind.kind), None)

    def list_all(self, kind: Kind, *_: Any, **__: Any) -> list[Object]:
        return [each for each in self.items if each["kind"] == kind.kind]

    def patch(self, kind: Kind, name: str, _: str | None, change: Object) -> None:
        """Apply a change of annotations; then Crossplane deletes what is leaving."""
        item = self.find(kind, name)
        assert item is not None
        annotations = {
            **item["metadata"].get("annotations", {}),
            **change["metadata"]["annotations"],
        }
        annotations = {key: value for key, value in annotations.items() if value is not None}
        item["metadata"]["annotations"] = annotations
        self.delete_in_clouds()

    def prune(self) -> None:
        """Delete all, as Argo CD does after a commit."""
        self.items = [leaving(each) for each in self.items]
        self.delete_in_clouds()

    def delete_in_clouds(self) -> None:
        for each in self.items.copy():
            about = each["metadata"]
            if "deletionTimestamp" in about and PAUSED not in about.get("annotations", {}):
                self.deleted.append(each["kind"])
                self.items.remove(each)


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


def held(item: Object) -> Object:
    metadata = {**item["metadata"], "annotations": {PAUSED: "true", HELD: "true"}}
    return {**item, "metadata": metadata}


def test_networks_and_roles_are_held_until_the_clusters_are_gone() -> None:
    cluster, nodes = resource(EKS, "Cluster"), resource(EKS, "NodeGroup")
    vpc, role = resource(EC2, "VPC"), resource(IAM, "Role")
    by_a_person = resource(EC2, "Subnet")
    by_a_person["metadata"]["annotations"] = {PAUSED: "true"}
    assert to_hold([vpc, cluster, by_a_person, role, nodes]) == [vpc, role]
    assert to_hold([vpc, role]) == []
    assert to_release([leaving(nodes), held(vpc)]) == []
    assert to_release([held(vpc), by_a_person, held(role)]) == [held(vpc), held(role)]


def test_the_cluster_of_an_environment_is_deleted_before_its_network_and_roles() -> None:
    parts = [resource(IAM, "Role"), resource(EC2, "VPC"), resource(EKS, "Cluster")]
    core = Core(*parts)
    removal = deletion(core, *parts)
    with clusters_first([removal]):
        core.prune()
    assert core.deleted == ["Cluster"]
    assert (
        removal.left()
        == "Role demo-prod (waits for the cluster), VPC demo-prod (waits for the cluster)"
    )
    await_cluster_deleted(removal, "ucp env remove prod", seconds=5)
    assert core.deleted == ["Cluster", "Role", "VPC"]


def test_roles_of_a_cluster_are_not_deleted_while_nobody_waits_for_it() -> None:
    """AWS deletes them in use; other clouds delete a network only after its cluster."""
    roles = [resource(IAM, "Role"), resource(EC2, "VPC")]
    parts = [*roles, resource(EKS, "Cluster")]
    with pytest.raises(UsageError, match="--wait 0: demo-prod can't be deleted") as refused:
        refuse_unattended([deletion(Core(*parts), *parts)], "ucp env remove prod")
    assert refused.value.next == "ucp env remove prod"
    refuse_unattended([deletion(Core(*roles), *roles)], "ucp env remove prod")
    parts = [resource(EC2, "VPC"), resource(EKS, "Cluster")]
    refuse_unattended([deletion(Core(*parts), *parts)], "ucp env remove prod")


def test_nothing_stays_held_if_the_commit_fails() -> None:
    parts = [resource(IAM, "Role"), resource(EKS, "Cluster")]
    core = Core(*parts)
    with pytest.raises(KeyboardInterrupt), clusters_first([deletion(core, *parts)]):
        assert core.items[0]["metadata"]["annotations"] == {PAUSED: "true", HELD: "true"}
        raise KeyboardInterrupt
    assert core.items[0]["metadata"]["annotations"] == {}


def test_networks_and_roles_stay_held_if_an_interrupted_commit_was_pushed() -> None:
    """Argo CD deletes everything at once then; the same command continues the wait."""
    parts = [resource(IAM, "Role"), resource(EKS, "Cluster")]
    core = Core(*parts)
    removal = deletion(core, *parts)
    with pytest.raises(EditKept), clusters_first([removal]):
        raise EditKept("interrupted; the edit of ucp.yaml was pushed")
    core.prune()
    assert core.deleted == ["Cluster"]
    await_cluster_deleted(removal, "ucp env remove prod", seconds=5)
    assert core.deleted == ["Cluster", "Role"]
