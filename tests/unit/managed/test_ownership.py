"""What may be another topology's: one rule, in Python and in the CEL of the core's policy."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.gitops.manifests.yaml_text import load_all
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.managed.ownership import (
    CONDITIONS,
    NAMED_KINDS,
    OBSERVED,
    is_declared_by_us,
    may_be_foreign,
)
from k8s_ucp.names import CLUSTERS_NAMESPACE, CREATION, CREATION_FAILED, GROUP, OWNED
from tests.unit.gitops.topologies import FACTS, on_clouds


@pytest.fixture(scope="module")
def policy() -> Any:
    path = "platform/crossplane/config/unproven-deletions.yaml"
    found = load_all(render(on_clouds(), FACTS).core[path].decode())
    return next(each["spec"] for each in found if "matchConstraints" in (each or {})["spec"])


def test_the_policy_has_the_same_kinds_and_conditions(policy: Any) -> None:
    kinds = {
        (group, plural)
        for rule in policy["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for plural in rule["resources"]
    }
    assert kinds == {(group, plural) for group, (_, plural) in NAMED_KINDS.items()}
    assert [each["name"] for each in policy["matchConditions"]] == [*CONDITIONS]


def test_the_policy_looks_at_the_same_names(policy: Any) -> None:
    declared, observed, _ = (each["expression"] for each in policy["matchConditions"])
    (proof,) = policy["validations"]
    assert f"namespace == '{CLUSTERS_NAMESPACE}'" in declared
    assert f"startsWith('{GROUP}/')" in declared
    assert f"each.type in {[*OBSERVED]}" in observed
    assert f"startsWith('{CREATION}')" in proof["expression"]
    assert f"each == '{OWNED}'" in proof["expression"]
    assert f"{OWNED}=true" in proof["messageExpression"]


@pytest.mark.parametrize(
    ("annotations", "status", "spec", "foreign"),
    [
        ({}, "True", {}, True),
        ({OWNED: "false"}, "True", {}, True),
        ({OWNED: "true"}, "True", {}, False),
        ({CREATION_FAILED: "2026-01-01T00:00:00Z"}, "True", {}, False),
        ({}, "False", {}, False),
        ({}, "True", {"managementPolicies": ["Observe", "Update"]}, False),
        ({}, "True", {"managementPolicies": ["Observe", "Delete"]}, True),
    ],
)
def test_only_what_was_observed_before_it_was_created_may_be_foreign(
    annotations: dict[str, str], status: str, spec: dict[str, Any], foreign: bool
) -> None:
    item = {
        "apiVersion": "eks.aws.m.upbound.io/v1beta1",
        "kind": "Cluster",
        "metadata": {"namespace": CLUSTERS_NAMESPACE, "annotations": annotations},
        "spec": spec,
        "status": {"conditions": [{"type": "Ready", "status": status}]},
    }
    assert may_be_foreign(item) is foreign
    assert not may_be_foreign({**item, "kind": "VPC", "apiVersion": "ec2.aws.m.upbound.io/v1beta1"})
    assert not may_be_foreign({**item, "metadata": {"namespace": "team"}})


def test_managed_resources_declared_by_ucp_are_recognized() -> None:
    composite = [{"apiVersion": "k8s-ucp.io/v1alpha1", "kind": "Postgres"}]
    assert is_declared_by_us({"metadata": {"namespace": "ucp-clusters"}})
    assert is_declared_by_us({"metadata": {"namespace": "team", "ownerReferences": composite}})
    assert not is_declared_by_us({"metadata": {"namespace": "team"}})
