"""Objects that one app creates and another one reads."""

from __future__ import annotations

from typing import Any

from k8s_ucp.gitops.check.objects.item import named
from k8s_ucp.gitops.check.shared_namespaces import (
    SharedNamespaces,
    provided_by,
    with_neighbors,
)
from k8s_ucp.topology import App
from tests.unit.gitops.topologies import demo


def item(kind: str, name: str, namespace: str | None = None, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}


def test_what_another_app_creates_in_a_namespace_of_the_app_is_provided() -> None:
    shared = SharedNamespaces()
    sealed = item("SealedSecret", "token", "shop")
    shared.add("web", "shop", [item("Deployment", "web"), item("Pod", "job", "jobs")])
    shared.add("web-more", "shop", [item("Secret", "login"), item("Service", "web")])
    shared.add("secrets", "secrets", [item("ConfigMap", "conf", "jobs"), sealed])
    shared.add("other", "other", [item("Secret", "own"), {"kind": "Secret", "metadata": 1}])
    assert provided_by(shared.neighbors("web")) == {
        "Secret/login",
        "ConfigMap/conf",
        "Secret/token",
    }
    assert [named(each) for each in shared.neighbors("web")] == [
        *("Secret/login", "Service/web", "ConfigMap/conf", "SealedSecret/token")
    ]
    assert shared.neighbors("other") == shared.neighbors("unknown") == []


def test_apps_that_share_a_namespace_are_checked_together() -> None:
    topology = demo(
        apps=(
            App(name="web", image="i", tag="1", namespace="shop"),
            App(name="secrets", image="i", tag="1", namespaces=("shop", "jobs")),
            App(name="batch", image="i", tag="1", namespace="jobs"),
            App(name="other", image="i", tag="1"),
        )
    )
    assert with_neighbors({"web"}, topology) == {"web", "secrets", "batch"}
    assert with_neighbors({"other", "stray"}, topology) == {"other", "stray"}
    assert with_neighbors({"web"}, None) == {"web"}
