"""Authentication with each cloud, with a local token endpoint and real API servers."""

from __future__ import annotations

import json
from urllib.parse import parse_qs

import pytest

from k8s_ucp import names
from k8s_ucp.kube import SECRET, Kube
from k8s_ucp.reconciler.access.authenticators import aws as authenticator_aws
from k8s_ucp.reconciler.access.authenticators import digitalocean as authenticator_digitalocean
from k8s_ucp.reconciler.runtime.settings import REGISTRATION
from tests.integration.reconciler.access.token_endpoint import Endpoint, account, credential
from tests.integration.reconciler.registration.planted_secrets import plant
from tests.integration.reconciler.world import Clusters, token_of

pytestmark = pytest.mark.engines

CANARY = "canary-credential-3b7e"


def admin_token(world: Clusters) -> str:
    """A token with admin access to the app cluster, as a cloud would issue."""
    app = world.apps["demo-stage"]
    account = {"name": "cloud-admin", "namespace": "default"}
    app.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}, manager="test")
    app.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "cloud-admin"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [{"kind": "ServiceAccount", **account}],
        },
        manager="test",
    )
    return app.request_token("default", "cloud-admin", seconds=600)[0]


def with_plugin(world: Clusters, command: str, *arguments: str) -> str:
    """The cluster's kubeconfig as the cloud's own tools write it: with an exec plugin."""
    config = json.loads(json.dumps(world.provider.configs["demo-stage"]))
    config["users"][0]["user"] = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": command,
            "args": list(arguments),
        }
    }
    return json.dumps(config)


def test_a_gke_cluster_is_registered_with_a_service_account_token(
    world: Clusters, endpoint: Endpoint
) -> None:
    credential(world, "gcp-creds", account(endpoint))
    endpoint.answer = {"access_token": admin_token(world), "expires_in": 3600}
    world.start(controllers=frozenset({REGISTRATION}))
    plant(world, with_plugin(world, "gke-gcloud-auth-plugin"))
    secret = world.await_registered()
    path, _, body = endpoint.asked[0]
    assert path == "/token"
    assert parse_qs(body)["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    # Argo CD gets an identity on the cluster, not the cloud's token.
    assert token_of(secret) != endpoint.answer["access_token"]


def test_an_aks_cluster_is_registered_with_a_service_principal_token(
    world: Clusters, endpoint: Endpoint
) -> None:
    principal = {
        "clientId": "id",
        "clientSecret": CANARY,
        "tenantId": "tenant",
        "activeDirectoryEndpointUrl": endpoint.url,
    }
    credential(world, "azure-creds", json.dumps(principal))
    endpoint.answer = {"access_token": admin_token(world), "expires_in": 3599}
    world.start(controllers=frozenset({REGISTRATION}))
    plant(world, with_plugin(world, "kubelogin", "get-token", "--server-id", "server"))
    world.await_registered()
    path, _, body = endpoint.asked[0]
    assert path == "/tenant/oauth2/v2.0/token"
    assert parse_qs(body)["scope"] == ["server/.default"]


def test_a_digitalocean_cluster_is_registered_with_the_api_credential(
    world: Clusters, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authenticator_digitalocean, "API", endpoint.url)
    credential(world, "do-creds", CANARY)
    endpoint.answer = {"token": admin_token(world)}
    world.start(controllers=frozenset({REGISTRATION}))
    words = ("kubernetes", "cluster", "kubeconfig", "exec-credential", "--version=v1beta1", "id-7")
    plant(world, with_plugin(world, "doctl", *words))
    world.await_registered()
    path, headers, _ = endpoint.asked[0]
    assert path.startswith("/v2/kubernetes/clusters/id-7/credentials")
    assert headers["Authorization"] == f"Bearer {CANARY}"


def test_an_eks_token_is_signed_with_the_role_and_its_rejection_is_reported(
    world: Clusters, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """STS returns keys of the role, but this API server can't verify EKS tokens.

    So it rejects the token, which must be reported correctly.
    """
    monkeypatch.setattr(authenticator_aws, "sts", lambda region: f"{endpoint.url}/{region}")
    credential(
        world,
        "aws-creds",
        f"[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = {CANARY}\n",
    )
    keys = {"AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": CANARY, "SessionToken": "session"}
    endpoint.answer = {"AssumeRoleResponse": {"AssumeRoleResult": {"Credentials": keys}}}
    world.start(controllers=frozenset({REGISTRATION}))
    role = ("--role-arn", "arn:aws:iam::1:role/x")
    words = ("--region", "eu-west-3", "eks", "get-token", "--cluster-name", "shop", *role)
    plant(world, with_plugin(world, "aws", *words))
    world.await_condition(names.REGISTERED, "False", "AccessDenied")
    path, _, _ = endpoint.asked[0]
    assert path.startswith("/eu-west-3/?Action=AssumeRole")
    assert "X-Amz-Signature" in path
    assert CANARY not in path


def test_a_refusal_of_the_token_endpoint_is_reported_without_secrets(
    world: Clusters, endpoint: Endpoint
) -> None:
    principal = {
        "clientId": "id",
        "clientSecret": CANARY,
        "tenantId": "t",
        "activeDirectoryEndpointUrl": endpoint.url,
    }
    credential(world, "azure-creds", json.dumps(principal))
    endpoint.status, endpoint.answer = 401, {"error": "invalid_client", "hint": CANARY}
    world.start(controllers=frozenset({REGISTRATION}))
    plant(world, with_plugin(world, "kubelogin"))
    world.await_condition(names.REGISTERED, "False", "TokenRefused")
    assert "invalid_client" in world.message(names.REGISTERED)
    assert CANARY not in world.message(names.REGISTERED) + world.logs.getvalue()
    assert world.cluster_secret() is None


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("gke-gcloud-auth-plugin", "crossplane-system/gcp-creds"),
        ("kubelogin", "crossplane-system/azure-creds"),
        ("my-own-plugin", "my-own-plugin"),
    ],
)
def test_a_missing_credential_or_authenticator_is_named(
    world: Clusters, command: str, named: str
) -> None:
    world.start(controllers=frozenset({REGISTRATION}))
    plant(world, with_plugin(world, command))
    world.await_condition(names.REGISTERED, "False")
    assert named in world.message(names.REGISTERED)


def test_a_kubeconfig_without_credentials_is_reported(world: Clusters) -> None:
    config = json.loads(json.dumps(world.provider.configs["demo-stage"]))
    config["users"][0]["user"] = {}
    world.start(controllers=frozenset({REGISTRATION}))
    plant(world, json.dumps(config))
    world.await_condition(names.REGISTERED, "False", "CredentialsMissing")
    assert "client certificate" in world.message(names.REGISTERED)


def test_a_kubeconfig_vouched_for_by_a_label_gets_no_cloud_credentials(
    world: Clusters, endpoint: Endpoint
) -> None:
    credential(world, "gcp-creds", account(endpoint))
    endpoint.answer = {"access_token": admin_token(world), "expires_in": 3600}
    world.start(controllers=frozenset({REGISTRATION}))
    core: Kube = world.core
    core.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "planted",
                "namespace": names.CLUSTERS_NAMESPACE,
                "labels": {names.KUBECONFIG_LABEL: "", names.ENVIRONMENT: "prod"},
            },
            "stringData": {"kubeconfig": with_plugin(world, "gke-gcloud-auth-plugin")},
        }
    )
    world.await_note("ucp-clusters/planted", "CredentialsMissing")
    assert not endpoint.asked
    assert core.list_all(SECRET, names.ARGOCD_NAMESPACE) == []
