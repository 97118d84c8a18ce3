"""Objects stuck in deletion or paused: by what, since when, and the next command."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.inspect.doctor.objects import STUCK_SECONDS, foreign, paused, stuck
from k8s_ucp.timestamps import stamp

NOW = 1_800_000_000.0
KUBECTL = "kubectl --kubeconfig core.yaml"


def deleted(
    *finalizers: str, kind: str = "Secret", seconds: float = 7 * 60, **more: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {
            "name": "it",
            "namespace": "shop",
            "deletionTimestamp": stamp(NOW - seconds),
            "finalizers": list(finalizers),
        },
        **more,
    }


@pytest.mark.parametrize(
    ("finalizer", "owner", "command"),
    [
        ("resources-finalizer.argocd.argoproj.io", "Argo CD", "ucp logs argocd"),
        ("resources-finalizer.argocd.argoproj.io/background", "Argo CD", "ucp logs argocd"),
        (
            "composite.apiextensions.crossplane.io",
            "Crossplane",
            "ucp logs crossplane",
        ),
        ("k8s-ucp.io/local-cluster", "the reconciler", "ucp logs reconciler"),
        (
            "kubernetes.io/pvc-protection",
            "Kubernetes: a Pod still uses it",
            f"{KUBECTL} describe secret it -n shop",
        ),
        (
            "operators.example/cleanup",
            "the controller for operators.example",
            f"{KUBECTL} describe secret it -n shop",
        ),
    ],
)
def test_a_stuck_finalizer_is_reported_with_its_controller(
    finalizer: str, owner: str, command: str
) -> None:
    (found,) = stuck("demo-core", KUBECTL, [deleted(finalizer)], NOW)
    assert found.id == "deletion/demo-core/Secret/shop/it"
    assert found.severity == "error"
    assert found.message == (
        "Secret shop/it on demo-core has been terminating for 7 min: "
        f"finalizer {finalizer} of {owner}"
    )
    assert found.next == command


def test_a_terminating_namespace_is_reported_with_its_remaining_content() -> None:
    left = "Some content in the namespace has finalizers remaining: a.b/c in 1 resource instances"
    conditions = [
        {"type": "NamespaceFinalizersRemaining", "status": "True", "message": left},
        {"type": "NamespaceDeletionContentFailure", "status": "False", "message": "all deleted"},
    ]
    item = deleted(kind="Namespace", seconds=3 * 86400, status={"conditions": conditions})
    del item["metadata"]["namespace"]
    (found,) = stuck("demo-stage", KUBECTL, [item], NOW)
    assert found.message == f"Namespace it on demo-stage has been terminating for 3 d: {left}"
    assert found.next == f"{KUBECTL} describe namespace it"


def test_an_object_deleted_recently_is_not_stuck() -> None:
    fresh = deleted("a.b/c", seconds=STUCK_SECONDS - 1)
    there = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    assert list(stuck("demo-core", KUBECTL, [fresh, there], NOW)) == []


def annotated(name: str, value: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "rds.aws.m.upbound.io/v1beta1",
        "kind": "Instance",
        "metadata": {"name": "orders", "namespace": "shop", "annotations": {name: value}}
        | metadata,
    }


def test_a_paused_object_is_reported_with_its_field_manager_and_time() -> None:
    fields = {"f:metadata": {"f:annotations": {"f:crossplane.io/paused": {}}}}
    writes = [
        {"manager": "provider", "time": stamp(NOW - 60), "fieldsV1": {"f:spec": {}}},
        {"manager": "kubectl-annotate", "time": stamp(NOW - 5 * 3600), "fieldsV1": fields},
    ]
    item = annotated("crossplane.io/paused", "true", managedFields=writes)
    (found,) = paused("demo-core", KUBECTL, [item], NOW)
    assert (found.id, found.severity) == ("paused/demo-core/Instance/shop/orders", "warning")
    assert found.message == (
        "Instance shop/orders on demo-core has been paused for 5 h "
        "(crossplane.io/paused, set by kubectl-annotate): Crossplane does not reconcile it"
    )
    assert found.next == (
        f"{KUBECTL} annotate instance.rds.aws.m.upbound.io orders -n shop crossplane.io/paused-"
    )


def test_only_known_annotations_with_the_value_true_pause() -> None:
    items = [annotated("crossplane.io/paused", "false"), annotated("some.else/paused", "true")]
    assert list(paused("demo-core", KUBECTL, items, NOW)) == []
    (found,) = paused(
        "demo-core", KUBECTL, [annotated("argocd.argoproj.io/skip-reconcile", "true")], NOW
    )
    assert "has been paused (argocd.argoproj.io/skip-reconcile): Argo CD" in found.message


def test_a_cluster_that_crossplane_found_in_the_cloud_is_reported() -> None:
    """Another topology of the same name may have created it, and would lose it."""
    found: dict[str, Any] = {
        "apiVersion": "eks.aws.m.upbound.io/v1beta1",
        "kind": "Cluster",
        "metadata": {"name": "demo-stage", "namespace": "ucp-clusters"},
        "spec": {"managementPolicies": ["*"]},
        "status": {"conditions": [{"type": "Synced", "status": "True"}]},
    }
    (finding,) = foreign("demo-core", KUBECTL, [found], NOW)
    assert "may belong to another topology of the same name" in finding.message
    command = "annotate cluster.eks.aws.m.upbound.io demo-stage -n ucp-clusters"
    assert f"{KUBECTL} {command} k8s-ucp.io/owned=true" in finding.next
    created = {"annotations": {"crossplane.io/external-create-pending": "2026-01-01T00:00:00Z"}}
    ours = {**found, "metadata": {**found["metadata"], **created}}
    network = {**found, "kind": "VPC", "apiVersion": "ec2.aws.m.upbound.io/v1beta1"}
    assert not list(foreign("demo-core", KUBECTL, [ours, network], NOW))
