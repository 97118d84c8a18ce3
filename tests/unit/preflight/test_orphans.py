"""Managed resources of Crossplane are found by the category of their CRDs."""

from __future__ import annotations

from k8s_ucp.kube import Kind
from k8s_ucp.preflight.orphans import managed_kinds
from tests.unit.preflight.crds import crd


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
