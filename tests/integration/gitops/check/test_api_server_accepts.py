"""Rendered objects at a real API server: built-in kinds, ours and those of clouds are accepted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.gitops.check.repositories import check_rendered
from k8s_ucp.gitops.manifests.yaml_text import load_all
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.kube import Kube, KubeError
from k8s_ucp.tools.toolbox import Toolbox
from tests import provider_fields
from tests.integration.gitops.check.rendered import built
from tests.unit.compositions.platform import claim, composed, machine
from tests.unit.gitops.topologies import FACTS, on_clouds

pytestmark = pytest.mark.engines

ADDONS = {
    "ingress": "gateway",
    "prometheus": True,
    "loki": True,
    "external-dns": True,
    "velero": True,
}


@pytest.fixture(scope="module")
def core(serving_core: Kube) -> Kube:
    return serving_core


def test_every_rendered_object_of_a_served_kind_is_accepted(
    core: Kube, toolbox: Toolbox, tmp_path: Path
) -> None:
    topology = on_clouds(addons=ADDONS, guardRails={"dev": "warn", "prod": "deny"})
    roots = (
        "bootstrap/kind",
        "providers",
        "api",
        "databases",
        "clusters",
        "policies/overlays/prod",
    )
    found = built(topology, toolbox, tmp_path, *roots)
    monitoring = render(topology, FACTS).core["platform/reconciler/monitoring.yaml"].decode()
    found += [each for each in load_all(monitoring) if each]
    assert refusals(core, found) == []
    kinds = {each["kind"] for each in found}
    assert {
        "Application",
        "ApplicationSet",
        "AppProject",
        "Composition",
        "CompositeResourceDefinition",
        "ConfigMap",
        "DeploymentRuntimeConfig",
        "Function",
        "LocalCluster",
        "Postgres",
        "Provider",
        "Secret",
        "ValidatingAdmissionPolicy",
    } <= kinds

    clouds = {each["apiVersion"] for each in found if provider_fields.is_ours_to_check(each)}
    assert {api_version.split("/")[0].split(".m.")[0].split(".")[-1] for api_version in clouds} == {
        "aws",
        "azure",
        "digitalocean",
        "gcp",
    }


def test_check_finds_no_problem_in_objects_for_clouds(toolbox: Toolbox) -> None:
    facts = replace(
        FACTS,
        topology_file=b"apiVersion: k8s-ucp.io/v1alpha1\nkind: Topology\nmetadata: {name: shop}\n",
        engine={},
        reconciler_image="k8s-ucp/reconciler:0.1.0",
        repositories="/srv/k8s-ucp/git",
        owner=1000,
    )
    found = check_rendered(toolbox.path("kustomize"), render(on_clouds(addons=ADDONS), facts))
    assert found.findings == []


def refusals(core: Kube, items: Iterable[dict[str, Any]]) -> list[str]:
    """Errors of the API server, one for each object that it rejects."""
    found = []
    for each in items:
        try:
            core.apply(each, dry_run=True)
        except KubeError as error:
            found.append(f"{each['kind']} {each['metadata']['name']}: {error.message}")
    return found


@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_composed_resources_of_claims_are_accepted(core: Kube, cloud: str) -> None:
    asked = (claim(cloud, namespace="apps"), machine(cloud, namespace="apps"))
    children = [each for one in asked for each in composed(one)]
    assert len(children) >= 5
    assert refusals(core, children) == []


def test_field_that_a_cloud_does_not_have_is_refused(core: Kube) -> None:
    instance = composed(machine("aws", namespace="apps"))[-1]
    instance["spec"]["forProvider"]["instanceTyp"] = "t3.micro"
    (refused,) = refusals(core, [instance])
    assert "spec.forProvider.instanceTyp" in refused


def test_object_with_a_misspelt_field_is_refused(core: Kube) -> None:
    """It proves that the dry run checks fields, so the tests above are meaningful."""
    with pytest.raises(KubeError, match=r"spec\.pakcage"):
        core.apply(
            {
                "apiVersion": "pkg.crossplane.io/v1",
                "kind": "Provider",
                "metadata": {"name": "x"},
                "spec": {"pakcage": "xpkg.example.org/x:v1"},
            },
            dry_run=True,
        )


def test_database_objects_match_their_schema(core: Kube, toolbox: Toolbox, tmp_path: Path) -> None:
    documents = built(on_clouds(), toolbox, tmp_path, "databases")
    postgres = [each for each in documents if each["kind"] == "Postgres"]
    assert len(postgres) == 5
    for each in postgres:
        core.apply(each, dry_run=True)
    for change, why in (
        ({"storageGB": 1}, "should be greater than or equal to 10"),
        ({"size": "huge"}, "Unsupported value"),
        ({"version": "latest"}, "should match"),
        ({"environment": "../prod"}, "should match"),
    ):
        with pytest.raises(KubeError, match=why):
            core.apply({**postgres[0], "spec": {**postgres[0]["spec"], **change}}, dry_run=True)
