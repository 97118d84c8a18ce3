"""Databases in app clusters: where they are rendered, their contents, and who may connect."""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.gitops.render.values import databases
from k8s_ucp.topology import Topology
from k8s_ucp.topology.placement import simulated_databases
from tests.unit.gitops.topologies import FACTS

APPS = [
    {"name": "quote", "image": "example.org/quote", "tag": "1", "database": "quotes"},
    {"name": "report", "image": "example.org/r", "tag": "1", "database": "quotes"},
    {"name": "web", "image": "example.org/web", "tag": "1"},
]
MIXED = [
    {"name": "play"},
    {"name": "stage", "cluster": {"provider": "kind"}},
    {"name": "prod", "cluster": {"provider": "kind"}, "access": "scoped"},
]


def topology(environments: list[dict[str, Any]] = MIXED, **database: Any) -> Topology:
    item = {"name": "quotes", "provider": "local", **database}
    return Topology.model_validate(
        {
            "apiVersion": "k8s-ucp.io/v1alpha1",
            "kind": "Topology",
            "metadata": {"name": "demo"},
            "spec": {"environments": environments, "apps": APPS, "databases": [item]},
        }
    )


def documents(topology: Topology, path: str) -> dict[str, Any]:
    text = render(topology, FACTS).core[path].decode()
    return {each["kind"]: each for each in YAML(typ="safe", pure=True).load_all(text) if each}


def pod(topology: Topology) -> Any:
    stateful = documents(topology, "databases/local/stage/quotes.yaml")["StatefulSet"]
    return stateful["spec"]["template"]["spec"]


def test_a_local_database_runs_only_on_clusters_with_real_pods() -> None:
    core = render(topology(), FACTS).core
    assert {path for path in core if path.startswith("databases/local/")} == {
        f"databases/local/{environment}/{file}"
        for environment in ("stage", "prod")
        for file in ("kustomization.yaml", "quotes.yaml")
    }
    generator = documents(topology(), "bootstrap/embedded/local-databases.yaml")["ApplicationSet"]
    selector = generator["spec"]["generators"][0]["clusters"]["selector"]
    assert selector["matchExpressions"][0]["values"] == ["stage", "prod"]


def test_on_simulated_clusters_only_the_connection_is_rendered() -> None:
    core = render(topology([{"name": "play"}]), FACTS).core
    assert "databases/overlays/play/quotes.yaml" in core
    assert not [path for path in core if "local" in path and "databases" in path]


def test_databases_without_data_are_reported() -> None:
    assert simulated_databases(topology()) == {"quotes": ["play"]}
    assert simulated_databases(topology(environments=MIXED)) == {"quotes": ["play"]}
    assert simulated_databases(topology(environments=MIXED[1:])) == {}
    assert simulated_databases(topology(provider="gcp")) == {}


def test_app_and_database_share_one_password_from_the_core() -> None:
    ours = documents(topology(), "mirrors/local-databases.yaml")["Syncer"]["spec"]["data"]
    apps = documents(topology(), "mirrors/quote-database.yaml")["Syncer"]["spec"]["data"]
    assert {each["sourceName"] for each in ours} < {each["sourceName"] for each in apps}
    (brought,) = [each for each in ours if each["targetCluster"] == "demo-stage"]
    for each in pod(topology())["containers"][0]["env"]:
        if "valueFrom" in each:
            reference = each["valueFrom"]["secretKeyRef"]
            assert reference["name"] == brought["targetName"]
            assert reference["key"] in databases.KEYS


def test_the_connection_contains_the_address_of_the_service() -> None:
    found = documents(topology(), "databases/local/stage/quotes.yaml")
    service = found["Service"]["metadata"]
    secret = documents(topology(), "databases/overlays/stage/quotes.yaml")["Secret"]
    assert secret["stringData"]["endpoint"] == f"{service['name']}.{service['namespace']}.svc"


def test_only_the_databases_apps_may_connect() -> None:
    policy = documents(topology(), "databases/local/stage/quotes.yaml")["NetworkPolicy"]["spec"]
    (rule,) = policy["ingress"]
    assert [
        each["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
        for each in rule["from"]
    ] == ["quote", "report"]
    nobody = topology(name="orphan")
    nobody = nobody.model_copy(update={"spec": nobody.spec.model_copy(update={"apps": ()})})
    policy = documents(nobody, "databases/local/stage/orphan.yaml")["NetworkPolicy"]["spec"]
    assert policy["policyTypes"] == ["Ingress"]
    assert "ingress" not in policy


@pytest.mark.parametrize(
    ("database", "image"),
    [
        ({}, "docker.io/library/postgres:16.11"),
        ({"version": "17"}, "docker.io/library/postgres:17.7"),
        ({"version": "15.4"}, "docker.io/library/postgres:15.4"),
        ({"image": "example.org/postgres:1"}, "example.org/postgres:1"),
    ],
)
def test_the_image_is_pinned_and_can_be_replaced(database: dict[str, Any], image: str) -> None:
    assert pod(topology(**database))["containers"][0]["image"] == image


def test_the_volume_is_retained_after_the_database_is_removed() -> None:
    spec = documents(topology(storageGB=20), "databases/local/stage/quotes.yaml")["StatefulSet"]
    assert spec["spec"]["persistentVolumeClaimRetentionPolicy"] == {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
    }
    (claim,) = spec["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "20Gi"


def test_a_scoped_argocd_may_access_the_namespace_of_databases() -> None:
    core = render(topology(), FACTS).core
    patches = core["clusters/overlays/prod/kustomization.yaml"].decode()
    assert "quote,report,web,ucp-databases" in patches
    patches = core["clusters/overlays/stage/kustomization.yaml"].decode()
    assert "ucp-databases" not in patches
