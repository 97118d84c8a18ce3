"""The policy on the core that keeps clusters and databases which may be another topology's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from k8s_ucp.gitops.manifests.yaml_text import load_all
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.inspect.doctor.objects import foreign
from k8s_ucp.kube import Kind, Kube, KubeError, Object
from k8s_ucp.names import CLUSTERS_NAMESPACE, CREATION_SUCCEEDED, OWNED
from tests.control_planes import eventually
from tests.unit.gitops.topologies import FACTS, demo, on_clouds

pytestmark = pytest.mark.engines

PATH = "platform/crossplane/config/unproven-deletions.yaml"
CLUSTER = Kind("eks.aws.m.upbound.io/v1beta1", "Cluster", "clusters")
CREATED = {CREATION_SUCCEEDED: "2026-01-01T00:00:00Z"}
FOUND = {"conditions": [{"type": "Ready", "status": "True"}]}
ABSENT = {"conditions": [{"type": "Synced", "status": "False"}]}


def cluster(
    namespace: str = CLUSTERS_NAMESPACE,
    *,
    status: Object = FOUND,
    policies: list[str] | None = None,
    annotations: dict[str, str] | None = None,
    owner: str = "",
) -> Object:
    spec: dict[str, Any] = {"forProvider": {"region": "eu-west-3", "vpcConfig": {}}}
    owners = [{"apiVersion": owner, "kind": "Kept", "name": "kept", "uid": "1"}] if owner else []
    return {
        "apiVersion": CLUSTER.api_version,
        "kind": CLUSTER.kind,
        "metadata": {
            "name": "demo-stage",
            "namespace": namespace,
            "annotations": annotations or {},
            "ownerReferences": owners,
        },
        "spec": {**spec, "managementPolicies": policies} if policies else spec,
        "status": status,
    }


def refusal(kube: Kube, item: Object) -> str:
    """Why an object with these properties can't be deleted; it is not left behind."""
    namespace = item["metadata"]["namespace"]
    warned = [each.severity for each in foreign("demo-core", "kubectl", [item], 0)]
    kube.apply(item)
    kube.patch(CLUSTER, "demo-stage", namespace, {"status": item["status"]}, subresource="status")
    try:
        kube.delete(CLUSTER, "demo-stage", namespace)
    except KubeError as error:
        proof = {"metadata": {"annotations": {OWNED: "true"}}}
        kube.patch(CLUSTER, "demo-stage", namespace, proof)
        kube.delete(CLUSTER, "demo-stage", namespace)
        assert warned == ["warning"], "the doctor tells it before"
        return error.message
    return ""


@pytest.fixture(scope="module")
def core(serving_core: Kube) -> Iterator[Kube]:
    policy = [each for each in load_all(render(on_clouds(), FACTS).core[PATH].decode()) if each]
    for each in policy:
        serving_core.apply(each)
    eventually(lambda: bool(refusal(serving_core, cluster())))
    yield serving_core
    for each in policy:
        kind = serving_core.kind_of(each["apiVersion"], each["kind"])
        serving_core.delete(kind, each["metadata"]["name"])


def test_a_cluster_that_crossplane_found_is_not_deleted(core: Kube) -> None:
    """Another topology of the same name may have created it."""
    said = refusal(core, cluster())
    assert "Cluster demo-stage was in the cloud before this core managed it" in said
    command = "kubectl -n ucp-clusters annotate clusters.eks.aws.m.upbound.io demo-stage"
    assert f"{command} {OWNED}=true" in said
    assert refusal(core, cluster(annotations={OWNED: "false"}))
    assert refusal(core, cluster("apps", owner="k8s-ucp.io/v1alpha1"))
    assert refusal(core, cluster(policies=["Observe", "Delete"]))


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(cluster(annotations=CREATED), id="created by this core"),
        pytest.param(cluster(annotations={OWNED: "true"}), id="in the backup, or confirmed"),
        pytest.param(cluster(status=ABSENT), id="not in the cloud"),
        pytest.param(cluster(status={}), id="not observed yet"),
        pytest.param(cluster(policies=["Observe", "Update"]), id="kept in the cloud"),
        pytest.param(cluster("apps", owner="example.org/v1"), id="of other people"),
        pytest.param(cluster("apps"), id="of no composite"),
    ],
)
def test_other_clusters_can_be_deleted(core: Kube, item: Object) -> None:
    assert refusal(core, item) == ""
    assert not list(foreign("demo-core", "kubectl", [item], 0))


def test_a_topology_without_clouds_has_no_such_policy() -> None:
    assert PATH not in render(demo(), FACTS).core
