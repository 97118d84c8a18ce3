"""Clouds: packages in use, credentials, and fields that exist in the providers' schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.clouds import CLOUDS
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.gitops.render.values import clouds, databases
from k8s_ucp.gitops.render.values.clouds import without_zone
from k8s_ucp.gitops.render.values.cluster_overlays import cluster_overlay
from k8s_ucp.topology import Environment, Spec, Topology
from tests import provider_fields
from tests.unit.gitops.topologies import FACTS, demo, on_clouds

TABLE = json.loads(provider_fields.TABLE.read_text("utf-8"))
KINDS = TABLE["kinds"]


def documents(topology: Topology, *folders: str) -> list[Any]:
    core = render(topology, FACTS).core
    return [
        document
        for path, text in sorted(core.items())
        if path.startswith(folders) and path.endswith(".yaml") and "/overlays/" not in path
        for document in YAML(typ="safe").load_all(text.decode())
        if document and document.get("kind") not in (None, "Kustomization")
    ]


def test_the_schema_table_matches_the_pinned_packages() -> None:
    assert TABLE["packages"] == {name: each.version for name, each in CLOUDS.items()}


def test_bases_use_only_fields_of_the_providers() -> None:
    found = [
        each
        for each in documents(on_clouds(), "clusters/", "databases/", "providers/")
        if provider_fields.is_ours_to_check(each)
    ]
    assert len(found) > 30
    wrong = [problem for each in found for problem in provider_fields.problems(each, KINDS)]
    assert wrong == []


def test_a_misspelt_field_is_found() -> None:
    document = {
        "apiVersion": "container.gcp.m.upbound.io/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": "x"},
        "spec": {"forProvider": {"nodeCount": "2", "nodeConfig": {"machinetype": "e2-medium"}}},
    }
    wrong = "\n".join(provider_fields.problems(document, KINDS))
    assert "spec.forProvider.nodeCount: '2' is no number" in wrong
    assert "spec.forProvider.nodeConfig.machinetype: no such field" in wrong


def test_compositions_patch_only_fields_of_the_providers() -> None:
    compositions = [
        each for each in documents(on_clouds(), "api/") if each["kind"] == "Composition"
    ]
    assert len(compositions) == 4
    wrong = []
    for composition in compositions:
        sets = {
            each["name"]: each["patches"]
            for step in composition["spec"]["pipeline"]
            for each in step["input"].get("patchSets", ())
        }
        for resource in provider_fields.composed(composition):
            if not provider_fields.is_ours_to_check(resource["base"]):
                continue
            kind = provider_fields.key(resource["base"])
            for patch in resource["patches"]:
                for each in sets[patch["patchSetName"]] if "patchSetName" in patch else [patch]:
                    if each.get("type") == "ToEnvironmentFieldPath":
                        continue  # writes to the pipeline's context, not to the resource
                    problem = provider_fields.path_problem(each["toFieldPath"], kind, KINDS)
                    wrong += [problem] if problem else []
    wrong += [
        problem
        for each in provider_fields.bases(compositions)
        for problem in provider_fields.problems(each, KINDS)
        if "'patched' is no" not in problem
    ]
    assert wrong == []


def test_the_listed_parts_are_those_of_the_compositions() -> None:
    found: dict[str, set[str]] = {}
    for each in documents(on_clouds(), "api/"):
        if each["kind"] == "Composition":
            parts = found.setdefault(each["spec"]["compositeTypeRef"]["kind"], set())
            parts |= {
                part["name"]
                for part in provider_fields.composed(each)
                if provider_fields.is_ours_to_check(part["base"])
            }
    assert found == {kind: set(parts) for kind, parts in databases.PARTS.items()}


def test_a_postgres_on_aws_has_the_same_resource_names_on_every_core() -> None:
    """AWS generates the external names of security groups and rules; the backup records them."""
    (composition,) = [
        each
        for each in documents(on_clouds(), "api/")
        if each["kind"] == "Composition" and each["metadata"]["name"] == "postgres-aws"
    ]
    names = {}
    for part in provider_fields.composed(composition):
        for each in part["patches"]:
            if each.get("toFieldPath") == "metadata.name":
                assert each["fromFieldPath"] == "metadata.name"
                names[part["name"]] = each["transforms"][0]["string"]["fmt"]
    assert names == {
        each: f"%s-{each}" for each in ("password", "subnets", "firewall", "inside", "instance")
    }


def test_compositions_read_only_fields_of_our_kinds() -> None:
    found = documents(on_clouds(), "api/")
    schemas = {
        each["spec"]["names"]["kind"]: each["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for each in found
        if each["kind"] == "CompositeResourceDefinition"
    }
    for each in found:
        if each["kind"] != "Composition":
            continue
        fields = schemas[each["spec"]["compositeTypeRef"]["kind"]]["properties"]["spec"][
            "properties"
        ]
        text = json.dumps(each)
        sources = [part.split('"')[0] for part in text.split('"fromFieldPath": "spec.')[1:]]
        assert {source.split(".")[0] for source in sources} <= {*fields, "forProvider"}
        assert "spec.managementPolicies" in text


def test_only_clouds_in_use_are_rendered() -> None:
    core = render(demo(), FACTS).core
    assert not [path for path in core if path.startswith(("providers/", "api/", "databases/"))]
    core = render(on_clouds(environments=["do"], databases=[]), FACTS).core
    assert [path for path in core if path.startswith("providers/")] == [
        "providers/kustomization.yaml",
        "providers/runtime.yaml",
        "providers/digitalocean/config.yaml",
        "providers/digitalocean/kustomization.yaml",
        "providers/digitalocean/providers.yaml",
    ]
    assert not [path for path in core if path.startswith("clusters/base/gke")]


def test_claims_are_composed_on_this_machine_if_a_cloud_is_simulated() -> None:
    simulated = Topology.model_validate(
        {**demo().model_dump(by_alias=True), "spec": {"clouds": {"aws": {"simulated": True}}}}
    )
    core = render(simulated, FACTS).core
    assert {path for path in core if path.startswith("api/")} == {
        "api/kustomization.yaml",
        "api/compute/definition.yaml",
        "api/postgres/definition.yaml",
        "api/postgres/local.yaml",
        "api/compute/local.yaml",
    }
    assert "bootstrap/embedded/api.yaml" in core
    pods = render(on_clouds(), FACTS).core
    assert "api/postgres/aws.yaml" in pods
    assert "api/postgres/local.yaml" not in pods


def test_each_service_in_use_has_its_package() -> None:
    topology = on_clouds(environments=["az"], databases=[])
    assert [each.name for each in clouds.packages(topology, "azure")] == [
        "provider-family-azure",
        "provider-azure-containerservice",
        "provider-azure-network",
    ]
    for cloud in clouds.clouds(on_clouds()):
        for each in clouds.packages(on_clouds(), cloud):
            assert each.reference.endswith(f":{CLOUDS[cloud].version}")


def test_provider_configs_refer_to_the_secrets_that_start_creates() -> None:
    configs = {
        each["apiVersion"].split(".")[0]: each["spec"]
        for each in documents(on_clouds(), "providers/")
        if each["kind"] == "ClusterProviderConfig"
    }
    assert configs["gcp"]["projectID"] == "my-project"
    assert {name: each["credentials"]["secretRef"] for name, each in configs.items()} == {
        name: {"namespace": "crossplane-system", "name": secret, "key": "creds"}
        for name, secret in (
            ("gcp", "gcp-creds"),
            ("aws", "aws-creds"),
            ("azure", "azure-creds"),
            ("digitalocean", "do-creds"),
        )
    }


@pytest.mark.parametrize("url", ["https://aws.example.net:4566", "http://127.0.0.1:5000"])
def test_every_aws_service_uses_the_configured_endpoint(url: str) -> None:
    topology = on_clouds(credentials={"aws": {"endpoint": url}, "gcp": {"project": "a"}})
    configs = {
        each["apiVersion"]: each
        for each in documents(topology, "providers/")
        if each["kind"] == "ClusterProviderConfig"
    }
    found = configs.pop("aws.m.upbound.io/v1beta1")
    assert found["spec"]["endpoint"] == {
        "url": {"type": "Static", "static": url},
        "hostnameImmutable": True,
        "source": "Custom",
        "services": ["ec2", "eks", "iam", "rds", "sts"],
    }
    assert provider_fields.problems(found, KINDS) == []
    assert not [each for each in configs.values() if "endpoint" in each["spec"]]


def test_databases_are_not_publicly_accessible() -> None:
    bases = {
        each["kind"]: each["spec"]["forProvider"]
        for each in provider_fields.bases(documents(on_clouds(), "api/postgres/"))
    }
    addresses = bases["DatabaseInstance"]["settings"]["ipConfiguration"]
    assert addresses["ipv4Enabled"] is False
    assert "authorizedNetworks" not in addresses
    assert bases["Instance"]["publiclyAccessible"] is False
    assert bases["Instance"]["skipFinalSnapshot"] is False
    assert "0.0.0.0/0" not in bases["SecurityGroupRule"]["cidrBlocks"]


@pytest.mark.parametrize(
    ("place", "region"),
    [
        ("europe-west9-a", "europe-west9"),
        ("europe-west9", "europe-west9"),
        ("eu-west-3", "eu-west-3"),
        ("fra1", "fra1"),
        ("francecentral", "francecentral"),
    ],
)
def test_the_region_is_derived_from_a_zone(place: str, region: str) -> None:
    assert without_zone(place) == region


def test_a_database_is_in_the_region_of_its_environment() -> None:
    topology = on_clouds()
    quotes, orders = topology.spec.databases[:2]
    by_name = {each.name: each for each in topology.spec.environments}
    assert databases.database_region(quotes, by_name["stage"]) == "europe-west1"
    assert databases.database_region(quotes, by_name["eu"]) == "europe-west9"
    assert databases.database_region(orders, by_name["eu"]) == "us-east-1"


def test_a_database_is_protected_with_its_environment() -> None:
    core = render(on_clouds(), FACTS).core
    files = {
        name: YAML(typ="safe").load(core[f"databases/overlays/{name}/quotes.yaml"].decode())
        for name in ("stage", "prod")
    }
    assert files["prod"]["spec"]["deletionProtection"] is True
    assert files["stage"]["spec"]["deletionProtection"] is False
    for each in files.values():
        options = each["metadata"]["annotations"]["argocd.argoproj.io/sync-options"].split(",")
        assert {"Prune=false", "Delete=false"} <= set(options)
        assert databases.connection_secret("quotes", each["spec"]["environment"]) == (
            f"{each['metadata']['name']}-connection"
        )


def test_no_password_is_in_the_repository() -> None:
    for each in documents(on_clouds(), "databases/", "api/"):
        assert "password" not in each.get("data", {})
        assert "password" not in each.get("stringData", {})


def test_the_name_of_the_postgres_database_is_a_valid_identifier() -> None:
    for name, inside in (("quotes", "quotes"), ("my-db", "my_db"), ("1st", "db_1st")):
        database = Spec.model_validate({"databases": [{"name": name, "provider": "local"}]})
        assert databases.database_name(database.databases[0]) == inside


def test_an_existing_cluster_is_declared_by_its_context() -> None:
    existing = Environment.model_validate(
        {"name": "old", "cluster": {"provider": "existing", "context": "0123"}}
    )
    core = render(demo(environments=(existing,)), FACTS).core
    assert "clusters/overlays/old/names.yaml" not in core
    overlay = YAML(typ="safe").load(core["clusters/overlays/old/kustomization.yaml"])
    assert overlay["resources"] == ["../../base/existing"]
    (operation,) = YAML(typ="safe").load(overlay["patches"][0]["patch"])
    assert operation == {"op": "add", "path": "/spec/context", "value": "0123"}


def test_an_embedded_cluster_has_the_requested_number_of_nodes() -> None:
    wide = Environment.model_validate({"name": "stage", "cluster": {"nodes": 3}})
    core = render(demo(environments=(wide,)), FACTS).core
    overlay = YAML(typ="safe").load(core["clusters/overlays/stage/kustomization.yaml"])
    (operation,) = YAML(typ="safe").load(overlay["patches"][0]["patch"])
    assert operation == {"op": "add", "path": "/spec/nodes", "value": 3}


@pytest.mark.parametrize(("zones", "expected"), [(None, "ab"), (["a", "c"], "ac")])
def test_the_eks_network_uses_the_configured_or_default_zones(
    zones: list[str] | None, expected: str
) -> None:
    cluster = {"provider": "eks", "region": "ap-northeast-1", "zones": zones}
    stage = Environment.model_validate({"name": "stage", "cluster": cluster})
    overlay = cluster_overlay(on_clouds(), stage)
    found = {
        value
        for _, operations in overlay.patches
        for _, pointer, value in operations
        if pointer.endswith("/availabilityZone")
    }
    assert found == {f"ap-northeast-1{each}" for each in expected}
