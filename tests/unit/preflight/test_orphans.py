"""Managed resources of Crossplane are found by the category of their CRDs."""

from __future__ import annotations

from typing import Any

from k8s_ucp.kube import Kind
from k8s_ucp.preflight.orphans import managed_kinds


def crd(kind: str, categories: list[str] | None, scope: str = "Namespaced") -> dict[str, Any]:
    names: dict[str, Any] = {"kind": kind, "plural": f"{kind.lower()}s"}
    if categories is not None:
        names["categories"] = categories
    versions = [{"name": "v1beta1", "served": False}, {"name": "v1", "served": True}]
    return {"spec": {"group": "a.example", "names": names, "scope": scope, "versions": versions}}


def test_only_kinds_in_the_category_managed_are_found() -> None:
    found = managed_kinds(
        [
            crd("Cluster", ["crossplane", "managed", "gcp"]),
            crd("Bucket", ["managed"], "Cluster"),
            crd("Application", None),
            crd("Composition", ["crossplane"]),
        ]
    )
    assert found == [
        Kind("a.example/v1", "Cluster", "clusters"),
        Kind("a.example/v1", "Bucket", "buckets", namespaced=False),
    ]
