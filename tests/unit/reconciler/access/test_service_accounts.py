"""Removal of ucp's identities from an app cluster; objects of other topologies are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from k8s_ucp import names
from k8s_ucp.kube import Kind, Kube, NotFound, Object
from k8s_ucp.reconciler.access import service_accounts
from tests.unit.reconciler.objects import source

OURS = {names.MANAGED_BY: names.OURS}


class Cluster:
    """Objects in memory."""

    def __init__(self, *items: Object) -> None:
        self.items = list(items)

    def request(self, *_: Any, **__: Any) -> Object:
        return {}

    def kind_of(self, api_version: str, kind: str) -> Kind:
        raise NotFound(f"no {kind}: an old server")

    def find(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        for each in self.items:
            about = each["metadata"]
            if (each["kind"], about["name"], about.get("namespace")) == (
                kind.kind,
                name,
                namespace,
            ):
                return each
        return None

    def create(self, item: Object) -> None:
        self.items.append({**item, "metadata": {**item["metadata"], "uid": str(len(self.items))}})

    def list_all(self, kind: Kind, *, labels: str) -> list[Object]:
        name, _, value = labels.partition("=")
        return [
            each
            for each in self.items
            if each["kind"] == kind.kind and each["metadata"]["labels"].get(name) == value
        ]

    def delete(self, kind: Kind, name: str, namespace: str | None = None, *, uid: str) -> None:
        found = self.find(kind, name, namespace)
        if found is None or found["metadata"]["uid"] != uid:
            raise NotFound(name)
        self.items.remove(found)

    def names(self) -> list[str]:
        return sorted(
            f"{each['kind']} {each['metadata'].get('namespace', '')}/{each['metadata']['name']}"
            for each in self.items
        )


def item(kind: str, name: str, namespace: str | None, **labels: str) -> Object:
    about = {"name": name, "uid": f"{kind}{name}{namespace}", "labels": {**OURS, **labels}}
    return {"kind": kind, "metadata": about | ({"namespace": namespace} if namespace else {})}


def test_removing_an_identity_keeps_the_roles_of_other_topologies() -> None:
    """The cluster may be the core of another topology, whose Roles have the same label."""
    of_another = {names.TOPOLOGY: "other"}
    theirs = [
        item("Role", "k8s-ucp-reconciler", "ucp-clusters"),
        item("RoleBinding", "k8s-ucp-reconciler", "ucp-clusters"),
        item("Role", names.ARGOCD_IDENTITY, "shop", **of_another),
        item("RoleBinding", names.MIRROR_IDENTITY, "shop", **of_another),
    ]
    cluster = Cluster(
        *theirs,
        item("Role", names.ARGOCD_IDENTITY, "echo", **{names.TOPOLOGY: "demo"}),
        # Created by an earlier version, without the topology label.
        item("RoleBinding", names.ARGOCD_IDENTITY, "echo"),
        item("Role", names.MIRROR_IDENTITY, "echo"),
        item("Namespace", names.IDENTITY_NAMESPACE, None, **{names.TOPOLOGY: "demo"}),
    )
    service_accounts.remove(cast(Kube, cluster), "demo", timeout=1)
    assert cluster.items == theirs


def test_roles_and_bindings_are_labeled_with_their_topology() -> None:
    cluster = Cluster()
    one = replace(source(), scoped=True, namespaces=("echo",))
    service_accounts.establish(cast(Kube, cluster), one, "demo", fresh=True)
    labels = {
        each["kind"]: each["metadata"]["labels"].get(names.TOPOLOGY)
        for each in cluster.items
        if each["metadata"].get("namespace") == "echo"
    }
    assert labels == {"Role": "demo", "RoleBinding": "demo"}
    service_accounts.remove(cast(Kube, cluster), "demo", timeout=1)
    assert "Role echo/k8s-ucp-argocd" not in cluster.names()
