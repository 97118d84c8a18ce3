"""Objects that an app's AppProject would refuse are found by the check."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.gitops.check.permissions import Needed, Permissions, needed
from k8s_ucp.topology import App
from tests.unit.gitops.topologies import demo

WEB = App(
    name="web",
    image="i",
    tag="1",
    namespace="shop",
    namespaces=("jobs",),
    cluster_kinds=("ClusterRole", "Zone.example.org"),
)
PERMISSIONS = Permissions(demo(apps=(WEB,)))


def item(kind: str, name: str = "x", namespace: str | None = None, group: str = "v1") -> Any:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": group, "kind": kind, "metadata": metadata}


CRD = {
    **item("CustomResourceDefinition", group="apiextensions.k8s.io/v1"),
    "spec": {"group": "example.org", "scope": "Cluster", "names": {"kind": "Zone"}},
}


@pytest.mark.parametrize(
    "allowed",
    [
        item("Service"),
        item("Service", namespace="shop"),
        item("Service", namespace="jobs"),
        item("Namespace", "shop"),
        item("ClusterRole", group="rbac.authorization.k8s.io/v1"),
        item("Anything", group="example.org/v1"),
        {"apiVersion": "v1", "kind": "Service", "metadata": ["x"]},  # Another rule reports it.
    ],
)
def test_permitted_objects_have_no_faults(allowed: Any) -> None:
    assert list(PERMISSIONS.faults("web", [allowed])) == []


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (item("ClusterRoleBinding"), "clusterKinds: [ClusterRoleBinding]"),
        (item("CustomResourceDefinition"), "the app web may not create its kind"),
        (item("Service", namespace="web"), "may write to shop, jobs only"),
        (item("Namespace", "other"), "Namespace other is in the namespace other"),
    ],
)
def test_objects_beyond_the_projects_permissions_are_found(refused: Any, words: str) -> None:
    [found] = PERMISSIONS.faults("web", [refused])
    assert words in found.message


def test_the_scope_of_a_kind_is_read_from_the_apps_own_crd() -> None:
    zone = item("Zone", group="example.org/v1")
    assert len(list(PERMISSIONS.faults("web", [CRD, zone]))) == 1
    other = {**zone, "apiVersion": "example.com/v1"}
    assert list(PERMISSIONS.faults("web", [other])) == []
    assert needed([CRD, zone], "web").kinds == ("CustomResourceDefinition", "Zone")


def test_an_app_that_is_not_in_ucp_yaml_must_not_use_namespaces_of_others() -> None:
    service = item("Service", namespace="shop")
    [found] = PERMISSIONS.faults("stray", [service])
    assert "belongs to another app" in found.message
    assert list(PERMISSIONS.faults("stray", [item("Service", namespace="free")])) == []
    [found] = PERMISSIONS.faults("stray", [item("ClusterRole")])
    assert "only apps of ucp.yaml" in found.message


def test_without_a_topology_permissions_are_not_checked() -> None:
    assert list(Permissions(None).faults("web", [item("ClusterRole")])) == []


def test_needed_lists_cluster_kinds_and_foreign_namespaces() -> None:
    assert needed([item("Service")], "web") == Needed((), ())
    assert needed([item("Service", namespace="far")], "web") == Needed((), ("far",), True)
    assert needed([item("Service", namespace="${FAR}")], "web") == Needed((), ())
    mixed = [item("Service", namespace="far"), item("Service"), item("ClusterRole")]
    assert needed(mixed, "web") == Needed(("ClusterRole",), ("far",), False)
