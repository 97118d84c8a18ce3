"""Namespaces that are deleted with a removed app, and objects that retain them."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.cli.editing.namespace_deletion import held_by, made_for_apps

ARGOCD = [{"manager": "argocd-controller", "operation": "Apply"}]
TRACKED = "argocd.argoproj.io/tracking-id"
OURS = {"app.kubernetes.io/managed-by": "k8s-ucp"}


@pytest.mark.parametrize(
    ("about", "made"),
    [
        ({"managedFields": ARGOCD}, True),
        ({"labels": OURS}, True),
        ({"managedFields": [{"manager": "kubectl"}]}, False),
        ({}, False),
        ({"managedFields": ARGOCD, "annotations": {TRACKED: "other:/Namespace:a/b"}}, False),
    ],
    ids=["argocd", "ours", "somebody", "unknown", "declared"],
)
def test_namespaces_created_by_argocd_or_ucp_are_recognized(
    about: dict[str, Any], made: bool
) -> None:
    assert made_for_apps({"metadata": about}) is made


@pytest.mark.parametrize("simulated", [True, False])
def test_foreign_objects_retain_the_namespace(simulated: bool) -> None:
    items: list[tuple[str, dict[str, Any]]] = [
        ("ConfigMap", {"name": "kube-root-ca.crt"}),
        ("ServiceAccount", {"name": "default"}),
        ("Pod", {"name": "web-0", "ownerReferences": [{"kind": "StatefulSet"}]}),
        ("Deployment", {"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z"}),
        ("Job", {"name": "migrate", "annotations": {TRACKED: "web-prod:batch/Job:web/migrate"}}),
        ("RoleBinding", {"name": "k8s-ucp-mirror", "labels": OURS}),
        ("PersistentVolumeClaim", {"name": "data-web-0"}),
    ]
    found = [(kind, {"metadata": about}) for kind, about in items]
    claims = [] if simulated else ["PersistentVolumeClaim data-web-0"]
    assert list(held_by(found, "web-prod", volumes_too=simulated)) == claims
    theirs = [
        ("Secret", {"metadata": {"name": "by-hand"}}),
        ("Job", {"metadata": {"name": "x", "annotations": {TRACKED: "web-prod-2:batch/Job:a/x"}}}),
    ]
    assert list(held_by(theirs, "web-prod", volumes_too=True)) == ["Secret by-hand", "Job x"]
