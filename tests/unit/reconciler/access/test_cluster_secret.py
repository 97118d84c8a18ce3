"""The Argo CD cluster Secret: its contents, and that only ucp's fields of it are changed."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from k8s_ucp import names
from k8s_ucp.kube import current_context
from k8s_ucp.reconciler.access.cluster_secret import (
    Registration,
    access_change,
    as_argocd,
    desired_access,
    drain_change,
    label_change,
)
from k8s_ucp.reconciler.access.tokens import Token
from tests.unit.reconciler.objects import (
    AUTHORITY,
    NOW,
    Object,
    auth_info,
    cluster_secret,
    local_cluster,
    registration,
    source,
)

SCOPED = local_cluster(
    labels={names.ACCESS: "scoped"}, annotations={names.NAMESPACES: "quote,echo"}
)


def plain(secret: Object) -> dict[str, str]:
    return {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}


def patched(item: Any, change: Any) -> Any:
    """JSON merge patch (RFC 7386)."""
    if not isinstance(change, dict):
        return change
    answer = dict(item) if isinstance(item, dict) else {}
    for name, value in change.items():
        if value is None:
            answer.pop(name, None)
        else:
            answer[name] = patched(answer.get(name), value)
    return answer


def test_the_cluster_secret_has_the_fields_that_argo_cd_reads() -> None:
    secret = cluster_secret(source(local_cluster(labels={names.PROTECTED: "true"})))
    assert secret["metadata"]["name"] == "cluster-demo-stage"
    assert secret["metadata"]["namespace"] == "argocd"
    assert secret["metadata"]["labels"] == {
        names.SECRET_TYPE: "cluster",
        names.MANAGED_BY: "k8s-ucp",
        names.ENVIRONMENT: "stage",
        names.TOPOLOGY: "demo",
        names.PROVIDER: "embedded",
        names.PROTECTED: "true",
    }
    data = plain(secret)
    assert (data["name"], data["server"]) == ("demo-stage", "https://127.0.0.1:6443")
    assert json.loads(data["config"]) == {
        "bearerToken": "eyJsecret",
        "tlsClientConfig": {"caData": AUTHORITY},
    }
    assert "namespaces" not in data


def test_scoped_access_lists_namespaces_and_excludes_cluster_resources() -> None:
    data = plain(cluster_secret(source(SCOPED)))
    assert (data["namespaces"], data["clusterResources"]) == ("echo,quote", "false")


def test_the_token_is_only_in_the_data_of_the_secret() -> None:
    secret = cluster_secret(source())
    assert "eyJsecret" not in json.dumps(secret["metadata"])
    assert "eyJsecret" not in repr(Token("eyJsecret", NOW, NOW))
    assert "eyJsecret" not in repr(Registration.of(secret))


@pytest.mark.parametrize("owner", [local_cluster(), SCOPED])
def test_the_registration_read_from_a_new_secret_matches_its_source(owner: Object) -> None:
    one = source(owner)
    found = registration(one)
    assert found.ours
    assert found.source == one.key
    assert found.owner == one.owner
    assert found.cluster == one.cluster
    assert found.access == desired_access(one, auth_info(one))
    assert found.labels == one.cluster_info


@pytest.mark.parametrize(
    ("before", "after"), [(SCOPED, local_cluster()), (local_cluster(), SCOPED)]
)
def test_changing_the_access_profile_gives_the_same_secret_as_a_new_registration(
    before: Object, after: Object
) -> None:
    secret, one = cluster_secret(source(before)), source(after)
    secret["metadata"]["labels"]["someone"] = "else"
    token = Token("eyJnew", NOW + 9, NOW + 99)
    change = access_change(one, auth_info(one), token, Registration.of(secret))
    found = patched(secret, change)
    assert found["metadata"]["labels"].pop("someone") == "else"
    expected = cluster_secret(one, issued=NOW + 9, lifetime=90)
    expected["data"]["config"] = found["data"]["config"]
    assert found == expected
    assert json.loads(plain(found)["config"])["bearerToken"] == "eyJnew"


def test_draining_removes_the_environment_label_and_a_label_change_restores_it() -> None:
    one = source()
    secret = cluster_secret(one)
    drained = patched(secret, drain_change(Registration.of(secret), "2030-01-01T00:00:00Z"))
    assert names.ENVIRONMENT not in drained["metadata"]["labels"]
    assert drained["metadata"]["labels"][names.DRAINING] == "stage"
    assert Registration.of(drained).draining_since == "2030-01-01T00:00:00Z"
    assert patched(drained, label_change(one, Registration.of(drained))) == secret


def test_draining_again_keeps_the_original_environment() -> None:
    secret = cluster_secret(source())
    for when in ("2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"):
        secret = patched(secret, drain_change(Registration.of(secret), when))
    assert secret["metadata"]["labels"][names.DRAINING] == "stage"


def test_changes_carry_the_resource_version_that_was_read() -> None:
    one = source()
    found = registration(one)
    for change in (
        drain_change(found, "now"),
        label_change(one, found),
        access_change(one, auth_info(one), Token("t", NOW, NOW + 1), found),
    ):
        assert change["metadata"]["resourceVersion"] == "12"


def test_a_kubeconfig_of_argo_cds_identity_is_built_from_the_secret() -> None:
    config = as_argocd(cluster_secret(source()))
    assert config is not None
    cluster, user = current_context(config)
    assert user == {"token": "eyJsecret"}
    assert cluster["certificate-authority-data"] == AUTHORITY


@pytest.mark.parametrize(
    "data", [{}, {"config": "!"}, {"config": base64.b64encode(b"[1]").decode()}]
)
def test_a_corrupt_cluster_secret_is_read_without_a_crash(data: Object) -> None:
    secret = {**cluster_secret(source()), "data": data}
    assert as_argocd(secret) is None
    assert Registration.of(secret).access[0] == ""
