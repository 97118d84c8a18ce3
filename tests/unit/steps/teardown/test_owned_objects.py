"""Which objects a teardown deletes as the topology's own, and which it keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.teardown.abandoned import AbandonedRecord
from k8s_ucp.kube import Object
from k8s_ucp.steps.teardown import checks, deletion, owned_objects
from k8s_ucp.steps.teardown.checks import check_destroyable
from k8s_ucp.steps.teardown.cloud_record import CloudRecord
from k8s_ucp.steps.teardown.owned_objects import OwnedObjects
from k8s_ucp.topology import Team, Topology, default
from k8s_ucp.workspace import Workspace
from tests.unit.gitops.topologies import on_clouds

EKS, EC2 = "eks.aws.m.upbound.io/v1beta1", "ec2.aws.m.upbound.io/v1beta1"


def item(api_version: str, kind: str, name: str, **labels: str) -> Object:
    about = {"name": name, "namespace": "ucp-clusters", "uid": f"{kind}-{name}"}
    named = {f"k8s-ucp.io/{key}": value for key, value in labels.items()}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {**about, "labels": named},
        "spec": {"forProvider": {"region": "eu-west-3"}},
    }


CLUSTER = item(EKS, "Cluster", "demo-stage", environment="stage")
VPC = item(EC2, "VPC", "demo-stage", environment="stage")
OTHER_VPC = item(EC2, "VPC", "demo-prod", environment="prod")
CLAIM = item("k8s-ucp.io/v1alpha1", "Postgres", "orders-stage", topology="demo")
CLAIM["spec"] = {
    "environment": "stage",
    "crossplane": {"compositionSelector": {"matchLabels": {"k8s-ucp.io/cloud": "aws"}}},
}
FOREIGN = item("example.org/v1", "Store", "photos")
INSTANCE = item("rds.aws.m.upbound.io/v1beta1", "Instance", "orders-stage")
INSTANCE["metadata"]["ownerReferences"] = [{"uid": CLAIM["metadata"]["uid"]}]


class Core:
    """The API of the core cluster, in memory."""

    def list_all(self, kind: Any, *_: Any, **__: Any) -> list[Object]:
        every = (CLUSTER, VPC, OTHER_VPC, INSTANCE)
        return [each for each in every if each["kind"] == getattr(kind, "kind", "")]

    def ready(self) -> bool:
        return True


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StartContext:
    found = StartContext(workspace=Workspace.at(tmp_path), topology=default())
    vars(found)["kube"] = Core()
    monkeypatch.setattr(owned_objects, "composites", lambda _: [CLAIM, FOREIGN])
    monkeypatch.setattr(owned_objects, "cluster_resources", lambda *_: [CLUSTER, VPC, OTHER_VPC])
    kinds = [type("K", (), {"kind": each}) for each in ("Cluster", "VPC", "Instance")]
    monkeypatch.setattr(owned_objects, "managed_kinds", lambda _: kinds)
    return found


def names(items: list[Object]) -> list[str]:
    return [f"{each['kind']} {each['metadata']['name']}" for each in items]


def test_a_kept_database_keeps_its_network(context: StartContext) -> None:
    found = OwnedObjects(context)
    assert found.claims == [CLAIM], "nobody's label claims the other"
    assert found.cloud_clusters == [CLUSTER]
    assert names(found.networks) == ["VPC demo-prod"]
    assert names(found.to_delete()) == ["Cluster demo-stage", "VPC demo-prod"]


def test_delete_data_deletes_databases_and_their_networks(context: StartContext) -> None:
    context.teardown.delete_data = True
    found = OwnedObjects(context)
    assert found.networks == [VPC, OTHER_VPC]
    assert INSTANCE in found.to_delete()


def test_only_team_claims_tracked_by_argo_cd_are_owned(
    context: StartContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = Team(name="shop")
    spec = context.topology.spec.model_copy(update={"teams": (team,)})
    context.topology = cast(Topology, context.topology.model_copy(update={"spec": spec}))
    mine, by_hand = (item("k8s-ucp.io/v1alpha1", "Postgres", name) for name in ("a", "b"))
    for each in (mine, by_hand):
        each["metadata"]["namespace"] = team.namespace
    tracking = f"{team.namespace}.claims:k8s-ucp.io/Postgres:{team.namespace}/a"
    mine["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": tracking}
    monkeypatch.setattr(owned_objects, "composites", lambda _: [mine, by_hand])
    assert OwnedObjects(context).claims == [mine]


def test_the_record_keeps_entries_of_an_earlier_run(tmp_path: Path) -> None:
    record = CloudRecord(tmp_path / "cloud-resources.json")
    observed = {**OTHER_VPC, "spec": {"managementPolicies": ["Observe"]}}
    record.add([CLUSTER, observed])
    record.add([VPC])
    assert [each.name for each in record.resources()] == ["demo-stage", "demo-stage"]
    assert str(record.resources()[1]) == "VPC demo-stage in eu-west-3"
    record.remove()
    assert record.resources() == []


def test_a_protected_environment_refuses_a_teardown(
    context: StartContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks.OwnedObjects, "local_clusters", [])
    check_destroyable(context)
    protected = item(EKS, "Cluster", "demo-prod", environment="prod", protected="true")
    monkeypatch.setattr(owned_objects, "cluster_resources", lambda *_: [CLUSTER, protected])
    with pytest.raises(UcpError, match="protected from deletion: demo-prod"):
        check_destroyable(context)


def test_abandoning_an_unresponsive_core_lists_what_would_remain_in_clouds(
    context: StartContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Core, "ready", lambda _: False)
    context.topology = on_clouds(["stage"], [])
    core = context.topology.core_cluster
    with pytest.raises(UcpError, match="is needed to find") as caught:
        check_destroyable(context)
    assert str(caught.value.next).endswith(
        "accept that nothing manages environment stage (gke) any more, nor ends what it costs: "
        f"ucp destroy --abandon {core}"
    )
    context.topology = default("demo", ["stage"])
    with pytest.raises(UcpError, match="is needed to find") as caught:
        check_destroyable(context)
    assert str(caught.value.next).endswith(
        "(nothing of demo is known to be in a cloud): ucp destroy --abandon demo-core"
    )


def only_observed(item: Object) -> Object:
    """The object as left by a start that was interrupted while comparing resources."""
    about = {**item["metadata"], "annotations": {"k8s-ucp.io/adopting": '["*"]'}}
    return {**item, "metadata": about, "spec": {**item["spec"], "managementPolicies": ["Observe"]}}


def test_a_teardown_refuses_resources_that_a_new_core_only_observes(
    context: StartContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleting such an object on the core would silently leave the resource in the cloud."""
    monkeypatch.setattr(checks.OwnedObjects, "local_clusters", [])
    observed = [only_observed(CLUSTER), only_observed(VPC)]
    monkeypatch.setattr(checks.OwnedObjects, "managed", [*observed, OTHER_VPC])
    with pytest.raises(UcpError, match="Cluster demo-stage, VPC demo-stage") as caught:
        check_destroyable(context)
    assert str(caught.value.next).startswith("ucp start, then: ucp destroy")
    context.teardown.abandon = frozenset(["Cluster/demo-stage"])
    with pytest.raises(UcpError, match="clouds: VPC demo-stage"):
        check_destroyable(context)
    context.teardown.abandon = frozenset(["Cluster/demo-stage", "VPC/demo-stage"])
    check_destroyable(context)
    context.state.make()
    context.teardown.delete_data = True
    monkeypatch.setattr(owned_objects, "cluster_resources", lambda *_: observed)
    monkeypatch.setattr(deletion, "outside_of", lambda _: [])
    monkeypatch.setattr(deletion, "responding_clusters", lambda *_: set())
    deletion.record_resources.run(context, lambda _: None)
    given_up = AbandonedRecord(context.state.abandoned).resources()
    assert [each.what for each in given_up] == [
        "Cluster demo-stage in eu-west-3",
        "VPC demo-stage in eu-west-3",
    ]


@pytest.mark.parametrize("resting", ["claim", "application"])
def test_a_teardown_refuses_claims_and_applications_paused_by_an_interrupted_start(
    context: StartContext, monkeypatch: pytest.MonkeyPatch, resting: str
) -> None:
    monkeypatch.setattr(checks.OwnedObjects, "local_clusters", [])
    application = only_observed(item("argoproj.io/v1alpha1", "Application", "clusters"))
    if resting == "claim":
        monkeypatch.setattr(owned_objects, "composites", lambda _: [only_observed(CLAIM)])
    else:
        monkeypatch.setattr(StartContext, "applications", lambda _: [application])
    with pytest.raises(UcpError, match="interrupted while it compared"):
        check_destroyable(context)


def test_clusters_are_found_by_tracking_id_if_argo_cd_lists_no_resources(
    context: StartContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Argo CD may fail to compare, or its Application was deleted; the clusters would be kept."""

    def marked(item: Object, application: str) -> Object:
        tracking = {"argocd.argoproj.io/tracking-id": f"{application}:x/Y:ucp-clusters/z"}
        return {**item, "metadata": {**item["metadata"], "annotations": tracking}}

    monkeypatch.setattr(owned_objects, "cluster_resources", lambda *_: [])
    others = [marked(INSTANCE, "databases"), marked(item(EC2, "VPC", "unlabeled"), "clusters")]
    listed = [marked(CLUSTER, "clusters"), marked(VPC, "clusters"), OTHER_VPC, *others]
    monkeypatch.setattr(checks.OwnedObjects, "managed", listed)
    context.teardown.delete_data = True
    found = OwnedObjects(context)
    assert names(found.cloud_clusters) == ["Cluster demo-stage"]
    assert names(found.networks) == ["VPC demo-stage"]
