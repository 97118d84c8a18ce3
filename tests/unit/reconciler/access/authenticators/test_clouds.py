"""Token requests to each cloud, and errors for credentials that can't be used."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from k8s_ucp.clouds import CLOUDS
from k8s_ucp.reconciler.access.authenticators import aws as authenticator_aws
from k8s_ucp.reconciler.access.authenticators import azure as authenticator_azure
from k8s_ucp.reconciler.access.authenticators import gcp as authenticator_gcp
from k8s_ucp.reconciler.access.authenticators.aws import Keys, presign, read_keys
from k8s_ucp.reconciler.access.authenticators.base import AuthInfo, ClusterInfo, NoAccess, choose
from k8s_ucp.reconciler.access.cluster_clients import AUTHENTICATORS
from tests.unit.reconciler.access.authenticators.clouds import Answering, NoCloud

CANARY = "canary-77aa"
AWS_FILE = f"[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = {CANARY}\n"
CLUSTER = {"server": "https://a:1"}


def test_each_cloud_in_the_table_has_an_authenticator() -> None:
    assert [each.name for each in AUTHENTICATORS] == ["static", *CLOUDS]


def plugin(command: str, *arguments: str, **cluster_info: Any) -> AuthInfo:
    user = {"exec": {"command": command, "args": list(arguments)}}
    return AuthInfo(CLUSTER, user, ClusterInfo(**cluster_info))


def token(auth_info: AuthInfo, cloud: Answering) -> str:
    config = choose(auth_info, AUTHENTICATORS).connect(auth_info, cloud)
    assert config["clusters"][0]["cluster"] == CLUSTER
    return str(config["users"][0]["user"]["token"])


def test_a_presigned_url_matches_the_example_of_aws() -> None:
    """The example of "Authenticating Requests: Using Query Parameters" in AWS' documentation."""
    url = presign(
        "https://examplebucket.s3.amazonaws.com/test.txt",
        Keys("AKIA" + "IOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"),
        region="us-east-1",
        service="s3",
        now=1369353600.0,
        seconds=86400,
        payload="UNSIGNED-PAYLOAD",
    )
    assert url.endswith(
        "X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    )


def asked_of_sts(text: str) -> dict[str, str]:
    assert text.startswith("k8s-aws-v1.")
    body = text.removeprefix("k8s-aws-v1.")
    url = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode()
    parts = urlsplit(url)
    found = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return {**found, "host": str(parts.hostname)}


@pytest.mark.parametrize(
    "auth_info",
    [
        plugin("aws", "--region", "eu-west-3", "eks", "get-token", "--cluster-name", "shop"),
        plugin("/bin/aws-iam-authenticator", "token", "-i", "shop", region="eu-west-3"),
        AuthInfo(CLUSTER, {}, ClusterInfo(provider="eks", name="shop", region="eu-west-3")),
    ],
)
def test_an_eks_token_is_a_presigned_sts_request_for_its_cluster(auth_info: AuthInfo) -> None:
    asked = asked_of_sts(token(auth_info, Answering(AWS_FILE)))
    assert asked["host"] == "sts.eu-west-3.amazonaws.com"
    assert asked["Action"] == "GetCallerIdentity"
    assert asked["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"
    assert asked["X-Amz-Credential"].startswith("AKIDEXAMPLE/20231114/eu-west-3/sts/")
    assert CANARY not in json.dumps(asked)


def test_eks_tokens_differ_by_cluster() -> None:
    keys = Keys("AKIDEXAMPLE", CANARY)
    one, other = (authenticator_aws.token(name, keys, "eu-west-3", 0) for name in ("a", "b"))
    assert one != other


def test_a_role_is_assumed_before_the_token_is_signed() -> None:
    answer = {
        "AssumeRoleResponse": {
            "AssumeRoleResult": {
                "Credentials": {
                    "AccessKeyId": "ASIAEXAMPLE",
                    "SecretAccessKey": "s",
                    "SessionToken": "session/1",
                }
            }
        }
    }
    cloud = Answering(AWS_FILE, answer)
    role = "arn:aws:iam::1:role/x"
    auth_info = plugin(
        "aws", "eks", "get-token", "--cluster-name=shop", "--role-arn", role, region="eu-west-3"
    )
    asked = asked_of_sts(token(auth_info, cloud))
    assert asked["X-Amz-Credential"].startswith("ASIAEXAMPLE/")
    assert asked["X-Amz-Security-Token"] == "session/1"
    question = parse_qs(urlsplit(cloud.asked[0][0]).query)
    assert (question["Action"], question["RoleArn"]) == (["AssumeRole"], [role])


def test_the_region_of_an_eks_cluster_is_read_from_its_endpoint() -> None:
    cluster = {"server": "https://ABC.gr7.eu-west-3.eks.amazonaws.com"}
    auth_info = AuthInfo(cluster, {}, ClusterInfo(provider="eks", name="shop"))
    config = choose(auth_info, AUTHENTICATORS).connect(auth_info, Answering(AWS_FILE))
    asked = asked_of_sts(config["users"][0]["user"]["token"])
    assert asked["host"] == "sts.eu-west-3.amazonaws.com"


@pytest.mark.parametrize(
    "cluster_info", [{"name": "shop"}, {"region": "eu-west-3"}, {"region": "../x"}]
)
def test_an_eks_cluster_without_name_or_region_is_refused_with_a_reason(
    cluster_info: dict[str, str],
) -> None:
    auth_info = AuthInfo(CLUSTER, {}, ClusterInfo(provider="eks", **cluster_info))
    with pytest.raises(NoAccess) as caught:
        token(auth_info, Answering(AWS_FILE))
    assert caught.value.reason == "ClusterUnknown"


def test_a_single_aws_profile_of_any_name_is_used() -> None:
    assert read_keys(AWS_FILE.replace("default", "work")).access == "AKIDEXAMPLE"


def test_azure_is_asked_for_a_token_with_the_scope_of_aks() -> None:
    principal = {"clientId": "id", "clientSecret": CANARY, "tenantId": "t/1"}
    cloud = Answering(json.dumps(principal), {"access_token": "entra", "expires_in": 3599})
    assert token(plugin("kubelogin", "get-token"), cloud) == "entra"
    url, form, _ = cloud.asked[0]
    assert url == "https://login.microsoftonline.com/t%2F1/oauth2/v2.0/token"
    assert form is not None
    assert form["scope"] == "6dae42f8-4368-4678-94ff-3960e28e3630/.default"


@pytest.mark.parametrize("text", [CANARY, json.dumps({"token": CANARY})])
def test_digitalocean_is_asked_for_the_token_of_the_cluster(text: str) -> None:
    cloud = Answering(text, {"token": "cluster"})
    words = ("kubernetes", "cluster", "kubeconfig", "exec-credential", "--version=v1", "id-1")
    assert token(plugin("doctl", *words), cloud) == "cluster"
    url, _, bearer = cloud.asked[0]
    assert url.startswith("https://api.digitalocean.com/v2/kubernetes/clusters/id-1/credentials")
    assert bearer == CANARY


@pytest.mark.parametrize(
    ("provider", "text"),
    [
        ("gke", "no json"),
        ("gke", "[]"),
        ("gke", json.dumps({"client_email": "a", "token_uri": "https://t"})),
        (
            "gke",
            json.dumps({"client_email": "a", "token_uri": "https://t", "private_key": CANARY}),
        ),
        ("eks", CANARY),
        ("eks", f"[default]\naws_access_key_id = {CANARY}\n"),
        ("aks", json.dumps({"clientId": "a", "clientSecret": CANARY})),
        ("digitalocean", f"{CANARY} {CANARY}"),
        ("digitalocean", json.dumps({"key": CANARY})),
    ],
)
def test_an_invalid_credential_is_refused_and_not_shown(provider: str, text: str) -> None:
    cluster_info = ClusterInfo(provider=provider, name="shop", region="eu-west-3", id="1")
    with pytest.raises(NoAccess) as caught:
        token(AuthInfo(CLUSTER, {}, cluster_info), Answering(text))
    assert caught.value.reason == "CredentialsInvalid"
    assert "crossplane-system/" in caught.value.message
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("given", ["soon", [], [5], {}, "inf", float("nan"), -5, 10**400])
def test_a_lifetime_of_another_form_is_not_believed(given: Any) -> None:
    principal = json.dumps({"clientId": "c", "clientSecret": CANARY, "tenantId": "t"})
    answer = {"access_token": "t", "expires_in": given}
    found = authenticator_azure._take(principal, "s", Answering(principal, answer))
    assert found == ("t", authenticator_azure.UNKNOWN)


@pytest.mark.parametrize(
    "content",
    [b"[]", b"5", b"null", b"[" * 100_000, b"\xff", b'{"access_token": "x", "expires_in": "soon"}'],
)
def test_a_response_of_another_form_contains_no_token_of_google(content: bytes) -> None:
    class Endpoint(NoCloud):
        def send(self, method: str, url: str, *_: Any, **__: Any) -> tuple[int, bytes]:
            return 200, content

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    account = {
        "client_email": "a@example.org",
        "token_uri": "https://example.org/token",
        "private_key": key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        ).decode(),
    }
    with pytest.raises(NoAccess, match="token endpoint of Google Cloud contains no token"):
        authenticator_gcp._take(json.dumps(account), Endpoint())
