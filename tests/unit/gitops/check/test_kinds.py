"""Kinds whose fields are known."""

from __future__ import annotations

from k8s_ucp.gitops.check.kinds import find_misfits, foreign_kinds, version
from k8s_ucp.tools.catalogue import CATALOGUE


def test_the_schema_table_matches_the_pinned_kubernetes_version() -> None:
    assert version() == f"v{CATALOGUE['kubernetes'].version}", "make kinds"
    assert list(find_misfits({"apiVersion": "apps/v1", "kind": "Deployment", "x": 1}))
    assert not list(find_misfits({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "x": 1}))


def test_foreign_kinds_lists_kinds_without_a_crd_among_the_objects() -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {"group": "own.example", "names": {"kind": "Own"}},
    }
    others = [("own.example/v1", "Own"), ("argoproj.io/v1alpha1", "Rollout"), ("v1", "Pod")]
    objects = [crd, *({"apiVersion": version, "kind": kind} for version, kind in others)]
    assert foreign_kinds(objects) == ["Rollout.argoproj.io"]
    assert foreign_kinds(objects[1:]) == ["Own.own.example", "Rollout.argoproj.io"]
