"""Which kinds go with a removed app, and what keeps them."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.cli.editing.kind_deletion import declared_kinds, declaring, why_retained

ARGOCD = {"manager": "argocd-controller"}
SERVER = {"manager": "kube-apiserver"}
NAME = "boats.example.org"


def application(name: str, cluster: str, *kinds: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"destination": {"name": cluster}},
        "status": {
            "resources": [
                {"kind": "Deployment", "name": NAME},
                *({"kind": "CustomResourceDefinition", "name": each} for each in kinds),
            ]
        },
    }


@pytest.mark.parametrize(
    ("managers", "declared_by", "objects", "why"),
    [
        ([ARGOCD, SERVER], [], 0, ""),
        ([ARGOCD, SERVER], [], 1, "an object of it exists"),
        ([ARGOCD, SERVER], [], 2, "2 objects of it exist"),
        ([ARGOCD, SERVER], ["fleet-prod"], 0, "fleet-prod declares it too"),
        ([ARGOCD, {"manager": "kubectl"}], [], 0, "kubectl wrote to it"),
        ([], [], 0, "it is not known who created it"),
    ],
)
def test_a_kind_stays_as_long_as_anybody_would_miss_it(
    managers: list[dict[str, str]], declared_by: list[str], objects: int, why: str
) -> None:
    crd = {"metadata": {"name": NAME, "managedFields": managers}}
    assert why_retained(crd, declared_by, objects) == why


def test_the_applications_of_a_cluster_that_declare_a_kind() -> None:
    there = [
        application("fleet-prod", "demo-prod", NAME),
        application("fleet-stage", "demo-stage", NAME),
        application("web-prod", "demo-prod"),
    ]
    assert declaring(there, NAME, "demo-prod") == ["fleet-prod"]
    assert declared_kinds(there[0]) == {NAME}
    assert declared_kinds({}) == frozenset()
