"""Environments and databases on clouds, as the pinned kustomize builds them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.gitops.manifests.kustomize import build
from k8s_ucp.gitops.publish.repositories import render_to
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import Environment
from tests import provider_fields
from tests.integration.gitops.conftest import roots
from tests.unit.gitops.topologies import FACTS, demo, on_clouds

KINDS = json.loads(provider_fields.TABLE.read_text("utf-8"))["kinds"]
NOT_RESOURCES = ("providerConfigRef", "passwordSecretRef", "writeConnectionSecretToRef")


@pytest.fixture(scope="module")
def built(toolbox: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Objects of every folder of the core repository, by folder."""
    out = tmp_path_factory.mktemp("clouds")
    render_to(out, render(on_clouds(), FACTS))
    return {
        folder.relative_to(out / "core").as_posix(): [
            each
            for each in YAML(typ="safe").load_all(build(toolbox.path("kustomize"), folder))
            if each
        ]
        for folder in roots(out / "core")
    }


def find(documents: list[Any], kind: str, name: str) -> Any:
    (found,) = [
        each for each in documents if (each["kind"], each["metadata"]["name"]) == (kind, name)
    ]
    return found


def test_every_object_has_only_fields_of_its_provider(built: dict[str, list[Any]]) -> None:
    wrong = [
        problem
        for folder in ("clusters", "databases", "providers")
        for each in built[folder]
        if provider_fields.is_ours_to_check(each)
        for problem in provider_fields.problems(each, KINDS)
    ]
    assert wrong == []


def references(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, name) of every reference to another managed resource."""
    if isinstance(value, dict):
        for key, each in value.items():
            if re.fullmatch(r"\w+Ref", key) and key not in NOT_RESOURCES:
                yield f"{path}.{key}", each["name"]
            elif re.fullmatch(r"\w+Refs", key):
                yield from ((f"{path}.{key}", one["name"]) for one in each)
            else:
                yield from references(each, f"{path}.{key}")
    elif isinstance(value, list):
        for each in value:
            yield from references(each, path)


def test_every_reference_has_the_suffix_of_its_environment(built: dict[str, list[Any]]) -> None:
    everything = built["clusters"] + built["databases"]
    names = {each["metadata"]["name"] for each in everything}
    found = [
        (each["kind"], each["metadata"]["name"], path, name)
        for each in everything
        if provider_fields.is_ours_to_check(each)
        for path, name in references(each["spec"])
    ]
    assert len(found) > 40
    assert [each for each in found if each[3] not in names] == []


def test_no_object_is_declared_twice(built: dict[str, list[Any]]) -> None:
    keys = [
        (each["apiVersion"], each["kind"], each["metadata"]["name"])
        for each in built["clusters"] + built["databases"] + built["api"] + built["providers"]
    ]
    assert len(keys) == len(set(keys))


def test_cluster_is_registered_under_its_own_name(built: dict[str, list[Any]]) -> None:
    """Registration takes name and labels from the object that owns the connection Secret."""
    owners = [
        each for each in built["clusters"] if "writeConnectionSecretToRef" in each.get("spec", {})
    ]
    assert {each["metadata"]["name"] for each in owners} == {
        f"shop-{name}" for name in ("stage", "auto", "eu", "az", "do", "prod")
    }
    for each in owners:
        environment = each["metadata"]["name"].removeprefix("shop-")
        labels = each["metadata"]["labels"]
        assert labels["k8s-ucp.io/environment"] == environment
        assert labels["k8s-ucp.io/topology"] == "shop"
        assert labels["k8s-ucp.io/region"]
        assert each["spec"]["writeConnectionSecretToRef"]["name"].endswith(f"-{environment}")
        assert each["metadata"]["namespace"] == "ucp-clusters"
    scoped = find(built["clusters"], "ClusterAuth", "shop-eu")["metadata"]
    assert scoped["labels"]["k8s-ucp.io/access"] == "scoped"
    assert scoped["annotations"]["k8s-ucp.io/namespaces"] == "echo"


def test_parameters_are_set_in_the_objects(built: dict[str, list[Any]]) -> None:
    stage = find(built["clusters"], "Cluster", "shop-stage")["spec"]["forProvider"]
    assert (stage["location"], stage["minMasterVersion"]) == ("europe-west1-b", "1.33")
    pool = find(built["clusters"], "NodePool", "shop-stage")["spec"]["forProvider"]
    assert (pool["nodeCount"], pool["nodeConfig"]["machineType"]) == (2, "e2-standard-4")
    subnetwork = find(built["clusters"], "Subnetwork", "shop-stage")["spec"]["forProvider"]
    assert (subnetwork["region"], subnetwork["ipCidrRange"]) == ("europe-west1", "10.2.0.0/16")
    eks = [
        each for each in built["clusters/overlays/eu"] if "region" in each["spec"]["forProvider"]
    ]
    assert {each["spec"]["forProvider"]["region"] for each in eks} == {"us-east-1"}
    zones = {
        each["spec"]["forProvider"]["availabilityZone"] for each in eks if each["kind"] == "Subnet"
    }
    assert zones == {"us-east-1a", "us-east-1b"}
    default = find(built["clusters"], "NodePool", "shop-prod")["spec"]["forProvider"]
    assert default["nodeConfig"]["machineType"] == "e2-medium"
    autopilot = find(built["clusters"], "Cluster", "shop-auto")["spec"]["forProvider"]
    assert autopilot["enableAutopilot"] is True
    assert "NodePool" not in {each["kind"] for each in built["clusters/overlays/auto"]}
    version = find(built["clusters"], "Cluster", "shop-do")["spec"]["forProvider"]["version"]
    assert version == "1.33.1-do.0"


def test_shared_network_is_only_observed(built: dict[str, list[Any]]) -> None:
    network = find(built["clusters"], "Network", "shop-auto")
    assert network["spec"]["managementPolicies"] == ["Observe"]
    assert network["metadata"]["annotations"]["crossplane.io/external-name"] == "shared-vpc"


def test_deletion_protection_is_set_and_unset(built: dict[str, list[Any]]) -> None:
    for name, protected in (("stage", False), ("prod", True)):
        cluster = find(built["clusters"], "Cluster", f"shop-{name}")
        assert cluster["spec"]["forProvider"]["deletionProtection"] is protected
    for environment in ("prod", "az"):
        for each in built[f"clusters/overlays/{environment}"]:
            options = each["metadata"]["annotations"]["argocd.argoproj.io/sync-options"].split(",")
            assert {"Prune=false", "Delete=false"} <= set(options)
            assert each["metadata"]["labels"]["k8s-ucp.io/protected"] == "true"
    # Azure has no such field.
    for each in built["clusters/overlays/az"]:
        assert "Delete" not in each["spec"]["managementPolicies"]
        assert "*" not in each["spec"]["managementPolicies"]


def test_management_policies_apply_to_every_object(built: dict[str, list[Any]]) -> None:
    for each in built["clusters/overlays/do"]:
        assert each["spec"]["managementPolicies"] == ["Observe"]


def test_observed_eks_cluster_is_registered(toolbox: Toolbox, tmp_path: Path) -> None:
    """ClusterAuth changes nothing in the cloud, and writes no kubeconfig if it is only observed."""
    eu = Environment.model_validate(
        {"name": "eu", "cluster": {"provider": "eks"}, "managementPolicies": ["Observe"]}
    )
    render_to(tmp_path, render(demo(core={"provider": "kind"}, environments=(eu,)), FACTS))
    text = build(toolbox.path("kustomize"), tmp_path / "core" / "clusters" / "overlays" / "eu")
    found = list(YAML(typ="safe").load_all(text))
    policies = {each["kind"]: each["spec"].get("managementPolicies") for each in found}
    assert policies.pop("ClusterAuth") is None
    assert len(policies) > 5
    assert {str(each) for each in policies.values()} == {"['Observe']"}
