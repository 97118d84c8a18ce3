"""Load balancers and volumes of app clusters are recorded; only their cluster confirms deletion."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import Kind, Object
from k8s_ucp.reconciler.access.cluster_secret import Registration
from k8s_ucp.steps.teardown import external_resources
from k8s_ucp.steps.teardown.cloud_record import UNSEEN
from k8s_ucp.steps.teardown.external_resources import outside_of, responding_clusters, still_outside
from k8s_ucp.topology import Topology
from k8s_ucp.workspace import Workspace

BALANCER: Object = {
    "kind": "Service",
    "apiVersion": "v1",
    "metadata": {"name": "web", "namespace": "web", "uid": "s1"},
    "spec": {"type": "LoadBalancer"},
    "status": {"loadBalancer": {"ingress": [{"hostname": "lb.example.org"}]}},
}
VOLUME: Object = {
    "kind": "PersistentVolume",
    "apiVersion": "v1",
    "metadata": {
        "name": "pv-1",
        "uid": "v1",
        "annotations": {"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"},
    },
    "spec": {"persistentVolumeReclaimPolicy": "Delete", "csi": {"volumeHandle": "vol-7"}},
}
INGRESS: Object = {
    "kind": "Ingress",
    "apiVersion": "networking.k8s.io/v1",
    "metadata": {"name": "web", "namespace": "web", "uid": "i1"},
    "spec": {"rules": [{"host": "web.example.org"}, {}]},
}


class Cluster:
    """The API of an app cluster, in memory."""

    def __init__(self, *items: Object) -> None:
        self.items = items

    def list_all(self, kind: Kind) -> list[Object]:
        return [each for each in self.items if each["kind"] == kind.kind]

    def kind_of(self, api_version: str, kind: str) -> Kind:
        return Kind(api_version, kind, f"{kind.lower()}es")

    def close(self) -> None:
        pass


Clusters = dict[str, Cluster]


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Clusters:
    """Responding clusters by name; two are registered."""
    found: Clusters = {}

    def client(_: Any, cluster: str) -> Cluster:
        if cluster not in found:
            raise UcpError("it does not respond")
        return found[cluster]

    monkeypatch.setattr(external_resources, "_client", client)
    there = {each: registration(each) for each in ("demo-stage", "demo-prod")}
    monkeypatch.setattr(external_resources, "registered", lambda _: there)
    return found


def registration(cluster: str, **labels: str) -> Registration:
    data = {"name": base64.b64encode(cluster.encode()).decode()}
    found = {f"k8s-ucp.io/{name}": value for name, value in labels.items()}
    about = {"name": f"cluster-{cluster}", "uid": f"u-{cluster}", "labels": found}
    return Registration.of({"metadata": about, "data": data})


def context(tmp_path: Path, provider: str = "eks", **spec: Any) -> StartContext:
    environments = [{"name": each, "cluster": {"provider": provider}} for each in ("stage", "prod")]
    topology = Topology.model_validate(
        {"metadata": {"name": "demo"}, "spec": {"environments": environments, **spec}}
    )
    found = StartContext(workspace=Workspace.at(tmp_path), topology=topology)
    found.state.make()
    vars(found)["kube"] = None
    return found


def test_resources_outside_a_cluster_are_listed_with_their_cloud_names(
    tmp_path: Path, clusters: Clusters
) -> None:
    clusters["demo-stage"] = Cluster(BALANCER, VOLUME, INGRESS)
    clusters["demo-prod"] = Cluster()
    given = context(tmp_path, addons={"external-dns": True})
    assert list(map(str, outside_of(given))) == [
        "LoadBalancer lb.example.org of demo-stage",
        "PersistentVolume vol-7 of demo-stage",
        "DNSRecord web.example.org of demo-stage",
    ]
    assert [each.kind for each in outside_of(context(tmp_path))] == [
        "LoadBalancer",
        "PersistentVolume",
    ]


def test_an_unresponsive_cluster_may_have_cloud_resources_unless_it_is_simulated(
    tmp_path: Path, clusters: Clusters
) -> None:
    clusters["demo-stage"] = Cluster()
    (unseen,) = outside_of(context(tmp_path))
    assert (unseen.kind, unseen.cluster) == (UNSEEN, "demo-prod")
    assert responding_clusters(context(tmp_path), [unseen]) == {"demo-stage"}
    assert outside_of(context(tmp_path, clouds={"aws": {"simulated": True}})) == []
    assert outside_of(context(tmp_path, "embedded")) == []


def test_only_the_cluster_itself_confirms_the_deletion_of_its_resources(
    tmp_path: Path, clusters: Clusters
) -> None:
    clusters["demo-stage"] = Cluster(BALANCER, VOLUME)
    given = context(tmp_path)
    recorded = [each for each in outside_of(given) if each.kind != UNSEEN]
    clusters["demo-stage"] = Cluster(VOLUME)
    left, gone = still_outside(given, recorded)
    assert ([each.uid for each in left], gone) == (["v1"], {"s1"})
    del clusters["demo-stage"]
    assert still_outside(given, recorded) == ([], set())


def test_a_cluster_that_only_the_repositories_declare_is_queried_too(
    tmp_path: Path, clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment was committed by hand, and is not in ucp.yaml."""
    there = {
        "demo-eu": registration("demo-eu", provider="eks"),
        "demo-old": registration("demo-old", provider="existing"),
    }
    monkeypatch.setattr(external_resources, "registered", lambda _: there)
    clusters["demo-eu"] = Cluster(BALANCER)
    clusters["demo-old"] = Cluster(VOLUME)
    given = context(tmp_path)
    (found,) = outside_of(given)
    assert str(found) == "LoadBalancer lb.example.org of demo-eu"
    assert still_outside(given, [found]) == ([found], set())
    del clusters["demo-eu"]
    assert [each.kind for each in outside_of(given)] == [UNSEEN]
