"""Load balancers and volumes of app clusters are recorded; only their cluster confirms deletion."""

from __future__ import annotations

import base64
from pathlib import Path
from types import SimpleNamespace
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
from tests.unit.reconciler.objects import AUTHORITY, kubeconfig_secret

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


@pytest.mark.parametrize("odd", [5, ["x"], "x", None, {"x": 1}])
def test_objects_of_another_form_do_not_end_the_teardown(
    odd: Any, tmp_path: Path, clusters: Clusters
) -> None:
    """An app cluster's server may send anything."""

    def item(kind: str, **parts: Any) -> Object:
        return {"kind": kind, "apiVersion": "v1", "metadata": {"name": kind.lower()}, **parts}

    volume = {**VOLUME, "spec": {**VOLUME["spec"], "csi": odd}}
    clusters["demo-stage"] = Cluster(
        {**BALANCER, "status": {"loadBalancer": {"ingress": odd or [odd]}}},
        {**item("Service", spec=BALANCER["spec"]), "metadata": {"name": "s", "finalizers": odd}},
        item("Service", spec=odd, status=odd),
        {**volume, "metadata": {**VOLUME["metadata"], "uid": odd}},
        *(item("Ingress", spec=each) for each in (odd, {"rules": odd}, {"rules": [odd]})),
        item("Ingress", spec={"rules": [{"host": odd}]}),
    )
    clusters["demo-prod"] = Cluster()
    given = context(tmp_path, addons={"external-dns": True})
    found = [each for each in outside_of(given) if each.kind != "DNSRecord"]
    assert [each.kind for each in found] == ["LoadBalancer", "PersistentVolume"]
    still_outside(given, found)


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


def core_with(config: Any, **owner: Any) -> SimpleNamespace:
    """A core cluster with an EKS cluster at 10.0.0.1, and the kubeconfig that a Secret has."""
    item: Object = {
        "apiVersion": "eks.aws.m.upbound.io/v1beta1",
        "kind": "Cluster",
        "metadata": {"name": "demo-stage", "namespace": "ucp-clusters", "uid": "1"},
        "spec": {"writeConnectionSecretToRef": {"name": "demo-stage-kubeconfig"}},
        "status": {"atProvider": {"endpoint": "https://10.0.0.1"}},
    }
    secret = kubeconfig_secret({**item, **owner}, config)
    return SimpleNamespace(
        find=lambda *_: secret,
        get=lambda *_: item,
        kind_of=lambda api_version, kind: Kind(api_version, kind, "clusters"),
    )


def kubeconfig(server: str) -> Any:
    return {
        "clusters": [
            {"name": "x", "cluster": {"server": server, "certificate-authority-data": AUTHORITY}}
        ],
        "users": [{"name": "x", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "current-context": "x",
    }


def test_only_the_server_that_the_owner_declares_is_asked_what_is_left(tmp_path: Path) -> None:
    """Another one could say that nothing is left, which would then be billed."""
    given = context(tmp_path)
    vars(given)["kube"] = core_with(kubeconfig("https://10.0.0.1"))
    config = external_resources._of_cloud(given, "demo-stage")
    assert config["clusters"][0]["cluster"]["server"] == "https://10.0.0.1"
    assert config["users"][0]["user"] == {"token": "t"}

    vars(given)["kube"] = core_with(kubeconfig("https://10.6.6.6"))
    with pytest.raises(UcpError, match=r"refers to https://10\.6\.6\.6, but the owner's status"):
        external_resources._of_cloud(given, "demo-stage")

    other = {"name": "demo-stage", "namespace": "ucp-clusters", "uid": "2"}
    vars(given)["kube"] = core_with(kubeconfig("https://10.0.0.1"), metadata=other)
    with pytest.raises(UcpError, match="demo-stage has no kubeconfig"):
        external_resources._of_cloud(given, "demo-stage")


def test_a_kubeconfig_that_is_no_yaml_does_not_end_a_teardown(tmp_path: Path) -> None:
    given = context(tmp_path)
    found = core_with({})
    found.find()["data"]["kubeconfig"] = base64.b64encode(b"{[").decode()
    vars(given)["kube"] = found
    with pytest.raises(UcpError, match="neither YAML nor JSON"):
        external_resources._client(given, "demo-stage")
