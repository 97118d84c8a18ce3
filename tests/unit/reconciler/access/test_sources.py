"""Which Secrets are registration sources, and what is read from them."""

from __future__ import annotations

import pytest

from k8s_ucp import names
from k8s_ucp.reconciler.access.sources import OwnerRef, describe, keep_source, known_owner, owner_of
from tests.unit.reconciler.objects import Object, kubeconfig_secret, local_cluster, source


def labeled() -> Object:
    secret = kubeconfig_secret(local_cluster())
    secret["metadata"]["ownerReferences"] = []
    secret["metadata"]["labels"] = {
        names.KUBECONFIG_LABEL: "",
        names.ENVIRONMENT: "stage",
        names.PROVIDER: "elsewhere",
    }
    return secret


@pytest.mark.parametrize(
    ("api_version", "kind", "known"),
    [
        ("k8s-ucp.io/v1alpha1", "LocalCluster", True),
        ("k8s-ucp.io/v1alpha1", "Syncer", False),
        ("container.gcp.m.upbound.io/v1beta1", "Cluster", True),
        ("apiextensions.crossplane.io/v1", "Anything", True),
        ("crossplane.io.evil.example/v1", "Cluster", False),
        ("apps/v1", "Deployment", False),
        ("v1", "Pod", False),
    ],
)
def test_known_owner_kinds_are_recognized(api_version: str, kind: str, known: bool) -> None:
    assert known_owner(api_version, kind) is known


def test_a_secret_without_owner_or_label_is_ignored() -> None:
    secret = kubeconfig_secret(local_cluster())
    secret["metadata"]["ownerReferences"] = []
    assert owner_of(secret) is None
    assert keep_source(secret) is None


def named(name: str, **labels: str) -> Object:
    secret = kubeconfig_secret(local_cluster())
    secret["metadata"].update(name=name, labels=labels, ownerReferences=[])
    return secret


@pytest.mark.parametrize(
    ("name", "labels", "environment"),
    [
        ("demo-k8s-stage", {}, "stage"),
        ("demo-k8s-stage-kubeconfig", {}, "stage"),
        ("old-k8s-new-k8s-stage", {}, "stage"),
        ("demo-k8s-stage", {names.ENVIRONMENT: "prod"}, "prod"),
    ],
)
def test_the_environment_is_read_from_the_name_only_if_enabled(
    name: str, labels: dict[str, str], environment: str
) -> None:
    secret = named(name, **labels)
    assert keep_source(secret) is None
    kept = keep_source(secret, by_name=True)
    assert kept is not None
    found = describe(kept, kept)
    assert (found.environment, found.owner.kind) == (environment, "Secret")
    assert not found.known.trusted, "a name gets none of our cloud credentials"
    assert secret["metadata"]["labels"] == labels, "what was handed in is left as it was"


@pytest.mark.parametrize("name", ["demo-stage", "k8s-stage", "demo-k8s"])
def test_a_name_without_the_separator_is_never_a_source(name: str) -> None:
    assert keep_source(named(name), by_name=True) is None


def test_an_owner_takes_precedence_over_the_name() -> None:
    secret = kubeconfig_secret(local_cluster())
    secret["metadata"]["name"] = "demo-k8s-prod"
    assert keep_source(secret, by_name=True) == keep_source(secret)


def test_an_owner_reference_without_controller_is_ignored() -> None:
    secret = kubeconfig_secret(local_cluster())
    secret["metadata"]["ownerReferences"][0]["controller"] = False
    assert owner_of(secret) is None


def test_a_labeled_secret_is_its_own_owner() -> None:
    secret = labeled()
    found = describe(secret, secret)
    assert (found.cluster, found.environment) == ("demo-stage", "stage")
    assert found.owner.kind == "Secret"
    assert found.cluster_info[names.PROVIDER] == "elsewhere"


def test_a_source_without_a_kubeconfig_is_not_kept() -> None:
    secret = labeled()
    secret["data"] = {"password": "x"}
    assert keep_source(secret) is None


def test_only_the_kubeconfig_of_a_source_is_kept() -> None:
    secret = labeled()
    secret["data"]["password"] = "x"
    kept = keep_source(secret)
    assert kept is not None
    assert set(kept["data"]) == {"kubeconfig"}


def test_the_kubeconfig_key_of_digitaloceans_provider_is_read() -> None:
    secret = labeled()
    raw = "attribute.kube_config.0.raw_config"
    secret["data"] = {raw: secret["data"]["kubeconfig"], "attribute.kube_config.0.token": "x"}
    kept = keep_source(secret)
    assert kept is not None
    assert set(kept["data"]) == {"kubeconfig"}
    assert describe(kept, kept).kubeconfig == describe(secret, secret).kubeconfig != b""


def test_cluster_info_is_read_from_the_owner() -> None:
    owner = local_cluster(
        labels={names.PROTECTED: "true", names.REGION: "eu", names.ACCESS: "scoped"},
        annotations={names.NAMESPACES: " quote, echo,,quote "},
        status={"version": "v1.35.4"},
    )
    found = source(owner)
    assert found.cluster_info == {
        names.TOPOLOGY: "demo",
        names.PROVIDER: "embedded",
        names.REGION: "eu",
        names.VERSION: "v1.35.4",
        names.PROTECTED: "true",
        names.ACCESS: "scoped",
    }
    assert found.scoped
    assert found.namespaces == ("echo", "quote")


def test_disabled_protection_sets_no_label() -> None:
    assert (
        names.PROTECTED not in source(local_cluster(labels={names.PROTECTED: "false"})).cluster_info
    )


def test_data_that_is_not_base64_is_an_empty_kubeconfig() -> None:
    secret = labeled()
    secret["data"]["kubeconfig"] = "!"
    assert describe(secret, secret).kubeconfig == b""


def test_an_owner_is_parsed_back_from_its_annotation() -> None:
    ref = OwnerRef("k8s-ucp.io/v1alpha1", "LocalCluster", "ucp-clusters", "demo-stage", "uid")
    assert OwnerRef.parse(str(ref)) == ref


@pytest.mark.parametrize("text", [None, "", "a|b", "||||", "a|b|c|d|e|f"])
def test_an_invalid_owner_annotation_is_parsed_as_none(text: str | None) -> None:
    assert OwnerRef.parse(text) is None
