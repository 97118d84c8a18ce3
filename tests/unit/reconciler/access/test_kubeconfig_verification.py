"""Cloud credentials are used only with the endpoint in the owner's status, not in the Secret."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from k8s_ucp import names
from k8s_ucp.reconciler.access.authenticators.base import NoAccess, choose, kubeconfig
from k8s_ucp.reconciler.access.cluster_clients import AUTHENTICATORS
from k8s_ucp.reconciler.access.kubeconfig_verification import digest_of
from k8s_ucp.reconciler.access.sources import Fate, KubeconfigSource, describe, pointed_to
from k8s_ucp.reconciler.registration.rules import NOT_NAMED, Deregister, Refuse, decide
from tests.unit.reconciler.access.authenticators.clouds import Answering, NoCloud
from tests.unit.reconciler.objects import (
    AUTHORITY,
    Object,
    auth_info,
    config,
    kubeconfig_secret,
    local_cluster,
    registration,
    source,
)
from tests.unit.reconciler.objects import _authority as another_authority
from tests.unit.reconciler.registration.observations import seen

EVIL = "https://evil.example.org"
OTHER = another_authority()
GKE = ("container.gcp.m.upbound.io/v1beta1", "Cluster")
EKS = ("eks.aws.m.upbound.io/v1beta1", "Cluster")
AUTH = ("eks.aws.m.upbound.io/v1beta1", "ClusterAuth")
AKS = ("containerservice.azure.m.upbound.io/v1beta1", "KubernetesCluster")
DIGITALOCEAN = ("kubernetes.digitalocean.m.crossplane.io/v1alpha1", "Cluster")
TOLD: dict[tuple[str, str], Object] = {
    GKE: {"endpoint": "192.0.2.1", "masterAuth": {"clusterCaCertificate": AUTHORITY}},
    EKS: {
        "endpoint": "https://ABC.gr7.eu-west-3.eks.amazonaws.com",
        "certificateAuthority": [{"data": AUTHORITY}],
    },
    AKS: {"fqdn": "demo.hcp.francecentral.azmk8s.io", "id": "/subscriptions/1/x"},
    DIGITALOCEAN: {"endpoint": "https://id-1.k8s.ondigitalocean.com", "id": "id-1"},
}
SERVERS = {
    GKE: "https://192.0.2.1",
    EKS: "https://ABC.gr7.eu-west-3.eks.amazonaws.com",
    AKS: "https://demo.hcp.francecentral.azmk8s.io:443",
    DIGITALOCEAN: "https://id-1.k8s.ondigitalocean.com",
}
AWS_FILE = "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = canary\n"
PRINCIPAL = json.dumps({"clientId": "id", "clientSecret": "canary", "tenantId": "t"})
CREDENTIALS = {EKS: AWS_FILE, AKS: PRINCIPAL, DIGITALOCEAN: "canary"}
ANSWERS: dict[tuple[str, str], dict[str, Any]] = {
    EKS: {},
    AKS: {"access_token": "token", "expires_in": 3599},
    DIGITALOCEAN: {"token": "token"},
}


def managed(kind: tuple[str, str], **changes: Any) -> Object:
    """A managed resource as Crossplane shows it. changes: spec, status, name."""
    name = changes.get("name", "demo-stage")
    return {
        "apiVersion": kind[0],
        "kind": kind[1],
        "metadata": {
            "name": name,
            "namespace": names.CLUSTERS_NAMESPACE,
            "uid": f"uid-of-{name}",
            "labels": {names.ENVIRONMENT: "stage", names.PROVIDER: "gke"},
            "annotations": {"crossplane.io/external-name": "shop"},
        },
        "spec": {
            "forProvider": {"region": "eu-west-3"},
            "writeConnectionSecretToRef": {"name": "demo-stage-kubeconfig"},
            **changes.get("spec", {}),
        },
        "status": changes.get("status", {"atProvider": TOLD.get(kind, {})}),
    }


def secret(owner: Object, server: str, *, user: Any = None, **cluster: Any) -> Object:
    parts = {"server": server, "certificate-authority-data": AUTHORITY, **cluster}
    return kubeconfig_secret(owner, kubeconfig(parts, user or {}))


def refused(one: KubeconfigSource, reason: str) -> str:
    with pytest.raises(NoAccess) as caught:
        found = auth_info(one)
        choose(found, AUTHENTICATORS).connect(found, NoCloud())
    assert caught.value.reason == reason, caught.value.message
    return caught.value.message


@pytest.mark.parametrize("kind", TOLD, ids=lambda kind: kind[0].split("/")[0])
def test_a_kubeconfig_that_matches_the_owners_status_is_accepted(kind: tuple[str, str]) -> None:
    owner = managed(kind)
    found = auth_info(describe(secret(owner, SERVERS[kind]), owner))
    assert found.server == SERVERS[kind]
    assert choose(found, AUTHENTICATORS).name != "static"


@pytest.mark.parametrize("kind", TOLD, ids=lambda kind: kind[0].split("/")[0])
@pytest.mark.parametrize("user", [{}, {"token": "the attacker's own"}])
@pytest.mark.parametrize(
    "server", [EVIL, "{}.evil.example.org", "{}:6443", "{}@evil.example.org", "{}/evil"]
)
def test_a_server_that_differs_from_the_owners_endpoint_is_refused(
    kind: tuple[str, str], user: Any, server: str
) -> None:
    owner = managed(kind)
    one = describe(secret(owner, server.format(SERVERS[kind]), user=user), owner)
    with pytest.raises(NoAccess) as caught:
        auth_info(one)
    assert caught.value.reason in ("SourceDiffers", "KubeconfigInvalid")


@pytest.mark.parametrize("name", ["demo.hcp.francecentral.azmk8s.io", "demo.private.azmk8s.io"])
def test_public_and_private_fqdn_of_an_aks_cluster_are_accepted(name: str) -> None:
    told = {**TOLD[AKS], "privateFqdn": "demo.private.azmk8s.io"}
    owner = managed(AKS, status={"atProvider": told})
    assert auth_info(describe(secret(owner, f"https://{name}:443"), owner)).server


@pytest.mark.parametrize("kind", [GKE, EKS])
def test_a_ca_that_differs_from_the_owners_is_refused(kind: tuple[str, str]) -> None:
    owner = managed(kind)
    changed = {"certificate-authority-data": OTHER}
    refused(describe(secret(owner, SERVERS[kind], **changed), owner), "SourceDiffers")


def test_the_ca_is_compared_with_the_response_of_digitalocean() -> None:
    owner = managed(DIGITALOCEAN)
    found = auth_info(describe(secret(owner, SERVERS[DIGITALOCEAN]), owner))
    told = Answering("canary", {"token": "t", "certificate_authority_data": OTHER})
    with pytest.raises(NoAccess) as caught:
        choose(found, AUTHENTICATORS).connect(found, told)
    assert caught.value.reason == "SourceDiffers"
    told.answer["certificate_authority_data"] = AUTHORITY
    assert choose(found, AUTHENTICATORS).connect(found, told)


def test_the_ca_of_the_owner_is_used_if_the_secret_has_none() -> None:
    owner = managed(GKE)
    content = kubeconfig({"server": SERVERS[GKE], "tls-server-name": "evil.example.org"}, {})
    found = auth_info(describe(kubeconfig_secret(owner, content), owner))
    assert found.cluster == {
        "server": SERVERS[GKE],
        "certificate-authority-data": AUTHORITY,
    }


@pytest.mark.parametrize("kind", TOLD, ids=lambda kind: kind[0].split("/")[0])
@pytest.mark.parametrize("reference", [{}, {"name": "demo-prod-kubeconfig"}])
def test_a_secret_that_the_owner_does_not_reference_is_refused(
    kind: tuple[str, str], reference: dict[str, str]
) -> None:
    owner = managed(kind, spec={"writeConnectionSecretToRef": reference})
    one = describe(secret(owner, SERVERS[kind]), owner)
    assert "kubeconfig" in refused(one, NOT_NAMED) or not reference
    decision = decide(replace(seen(), source=one, auth_info=None))
    assert isinstance(decision, Refuse)
    assert (decision.reason, decision.standing) == (NOT_NAMED, False)


def test_a_secret_with_an_unexpected_name_is_refused_for_a_local_cluster() -> None:
    owner = local_cluster()
    forged = kubeconfig_secret(owner)
    forged["metadata"]["name"] = "evil"
    refused(describe(forged, owner), NOT_NAMED)


@pytest.mark.parametrize("kind", TOLD, ids=lambda kind: kind[0].split("/")[0])
def test_no_credential_is_used_while_the_owner_reports_no_endpoint(kind: tuple[str, str]) -> None:
    owner = managed(kind, status={})
    assert "yet" in refused(describe(secret(owner, SERVERS[kind]), owner), "SourceUnproven")


@pytest.mark.parametrize("kind", [*TOLD, AUTH], ids=lambda kind: "-".join(kind))
def test_no_server_is_accepted_while_the_owner_reports_no_endpoint(kind: tuple[str, str]) -> None:
    """A Secret with a token of its own would otherwise be registered while the cloud creates it."""
    owner = managed(kind, status={})
    forged = describe(secret(owner, EVIL, user={"token": "evil"}), owner)
    assert "yet" in refused(forged, "SourceUnproven")


def test_a_managed_resource_that_is_no_cloud_cluster_is_reached_with_its_own_token() -> None:
    owner = managed(("nimbus.m.crossplane.io/v1", "Cluster"), status={})
    found = auth_info(describe(secret(owner, EVIL, user={"token": "own"}), owner))
    assert found.server == EVIL


def test_no_credential_is_used_for_an_owner_that_is_not_a_cluster() -> None:
    database = ("sql.gcp.m.upbound.io/v1beta1", "DatabaseInstance")
    owner = managed(database, status={"atProvider": TOLD[GKE]})
    one = describe(secret(owner, SERVERS[GKE]), owner)
    assert "not a cloud cluster" in refused(one, "SourceUnproven")


def asked(kind: tuple[str, str], *arguments: str) -> tuple[Answering, str]:
    """The cloud with its requests, and the token, for a kubeconfig with these exec arguments."""
    owner = managed(kind)
    command = {EKS: "aws", AKS: "kubelogin", DIGITALOCEAN: "doctl"}[kind]
    user = {"exec": {"command": command, "args": list(arguments)}}
    found = auth_info(describe(secret(owner, SERVERS[kind], user=user), owner))
    cloud = Answering(CREDENTIALS[kind], ANSWERS[kind])
    answer = choose(found, AUTHENTICATORS).connect(found, cloud)
    return cloud, str(answer["users"][0]["user"]["token"])


def test_the_aws_token_is_for_the_owners_cluster_and_assumes_no_role() -> None:
    words = ("--cluster-name", "other", "--region", "us-east-1", "--role-arn", "arn:aws:iam::1:x")
    cloud, token = asked(EKS, *words)
    assert not cloud.asked, "a role was taken on"
    body = token.removeprefix("k8s-aws-v1.")
    url = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode()
    assert urlsplit(url).hostname == "sts.eu-west-3.amazonaws.com"
    assert token == asked(EKS)[1]


def test_the_azure_token_has_the_scope_of_aks_whatever_the_secret_says() -> None:
    cloud, _ = asked(AKS, "get-token", "--server-id", "https://management.azure.com")
    assert cloud.asked[0][1] is not None
    assert cloud.asked[0][1]["scope"] == "6dae42f8-4368-4678-94ff-3960e28e3630/.default"


def test_the_digitalocean_token_is_for_the_owners_cluster() -> None:
    cloud, _ = asked(DIGITALOCEAN, "kubernetes", "kubeconfig", "exec-credential", "id-of-another")
    assert "/clusters/id-1/credentials" in cloud.asked[0][0]


def test_an_exec_plugin_of_another_cloud_is_refused() -> None:
    owner = managed(GKE)
    user = {"exec": {"command": "kubelogin", "args": []}}
    refused(describe(secret(owner, SERVERS[GKE], user=user), owner), "SourceDiffers")


def test_a_cluster_auth_is_verified_against_its_cluster() -> None:
    owner = managed(AUTH, spec={"forProvider": {"clusterNameRef": {"name": "demo-stage"}}})
    owner["spec"]["writeConnectionSecretToRef"] = {"name": "demo-stage-kubeconfig"}
    assert pointed_to(owner) == ("Cluster", names.CLUSTERS_NAMESPACE, "demo-stage")
    assert pointed_to(managed(EKS)) is None
    static = {"token": "k8s-aws-v1.x"}
    right = describe(secret(owner, SERVERS[EKS], user=static), owner, managed(EKS))
    assert auth_info(right).server == SERVERS[EKS]
    assert (right.known.name, right.known.trusted) == ("shop", True)
    refused(describe(secret(owner, EVIL, user=static), owner, managed(EKS)), "SourceDiffers")
    alone = describe(secret(owner, EVIL), owner)
    refused(alone, "SourceUnproven")


def test_a_local_clusters_kubeconfig_must_match_the_digest_of_its_controller() -> None:
    assert auth_info(source()).server == config()["clusters"][0]["cluster"]["server"]
    owner = local_cluster(annotations={names.KUBECONFIG_DIGEST: digest_of(config())})
    for changed in (
        config(EVIL),
        kubeconfig({"server": config()["clusters"][0]["cluster"]["server"]}, {"token": "admin"}),
        kubeconfig(config()["clusters"][0]["cluster"], {"exec": {"command": "aws"}}),
    ):
        refused(describe(kubeconfig_secret(owner, changed), owner), "SourceDiffers")
    bare = local_cluster()
    refused(describe(kubeconfig_secret(bare), bare), "SourceUnproven")


def test_the_digest_of_a_local_cluster_reveals_no_credential() -> None:
    assert digest_of(config(token="one")) == digest_of(config(token="another"))
    assert digest_of({}) == ""


def test_exec_arguments_are_used_if_a_digest_covers_the_kubeconfig() -> None:
    words = ["--cluster-name", "mine", "--region", "eu-west-3"]
    content = kubeconfig(
        config()["clusters"][0]["cluster"], {"exec": {"command": "aws", "args": words}}
    )
    found = auth_info(source(content=content))
    assert found.argument("--cluster-name") == "mine"
    assert choose(found, AUTHENTICATORS).name == "aws"


@pytest.mark.parametrize("fate", [Fate.GONE, Fate.DELETING])
@pytest.mark.parametrize("forgotten", [True, False])
def test_a_foreign_source_never_deregisters_a_cluster(fate: Fate, forgotten: bool) -> None:
    """Such as a Secret whose claimed owner, of the same name and another kind, never existed."""
    one = source()
    view = seen(source=one, existing=registration(one), fate=fate, forgotten=forgotten, ours=False)
    assert not isinstance(decide(view), Deregister)
