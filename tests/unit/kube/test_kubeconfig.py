"""Untrusted kubeconfigs: file paths and plugins are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.kube import Kind, current_context, read_kubeconfig


def kubeconfig(
    cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://[::1]:1", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
    }


def test_the_current_context_selects_cluster_and_user() -> None:
    cluster, user = current_context(kubeconfig(user={"token": "t"}))
    assert cluster == {"server": "https://[::1]:1"}
    assert user == {"token": "t"}


@pytest.mark.parametrize(
    ("cluster", "user", "named"),
    [
        ({"certificate-authority": "/etc/ca.crt"}, {}, "certificate-authority"),
        ({}, {"client-key": "/etc/shadow"}, "client-key"),
        ({}, {"tokenFile": "/etc/shadow"}, "tokenFile"),
        ({}, {"exec": {"command": "true"}}, "exec"),
        ({}, {"auth-provider": {"name": "gcp"}}, "auth-provider"),
        ({"server": ""}, {}, "server"),
        ({"tls-server-name": ["a"]}, {}, "tls-server-name"),
        ({}, {"token": ["a"]}, "token"),
    ],
)
def test_files_plugins_and_odd_types_are_refused(
    cluster: dict[str, Any], user: dict[str, Any], named: str
) -> None:
    with pytest.raises(UcpError, match=named):
        current_context(kubeconfig(cluster, user))


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"current-context": "x"},
        {"current-context": "c", "contexts": [{"name": "c"}]},
        {"current-context": "c", "contexts": [{"name": "c", "context": "k"}]},
        {"current-context": "c", "contexts": 5},
    ],
)
def test_a_config_without_a_usable_context_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(UcpError, match="kubeconfig"):
        current_context(broken)


@pytest.mark.parametrize("token", ["secret\n", "sec ret", "s\u00e9cret"])
def test_a_token_that_no_header_can_have_is_refused_and_not_quoted(token: str) -> None:
    """The request raised ValueError, which quotes the header, instead of a KubeError."""
    with pytest.raises(UcpError, match="token") as raised:
        current_context(kubeconfig(user={"token": token}))
    assert "cret" not in str(raised.value)


def test_a_password_in_the_url_of_a_server_is_refused_and_not_quoted() -> None:
    """Each error about that server quoted it."""
    with pytest.raises(UcpError, match="password") as raised:
        current_context(kubeconfig(cluster={"server": "https://me:hunter2@a.example:6443/x"}))
    assert "hunter2" not in str(raised.value)


def test_api_paths_are_built_from_kinds() -> None:
    secret = Kind("v1", "Secret", "secrets")
    application = Kind("argoproj.io/v1alpha1", "Application", "applications")
    node = Kind("v1", "Node", "nodes", namespaced=False)
    assert secret.path("argocd", "a/b") == "/api/v1/namespaces/argocd/secrets/a%2Fb"
    assert application.path() == "/apis/argoproj.io/v1alpha1/applications"
    assert node.path("ignored", "n") == "/api/v1/nodes/n"


@pytest.mark.parametrize("content", [b"\0\0\0", b"a: [S3CR3T", b"\xff\xfe", b""])
def test_a_damaged_file_is_no_kubeconfig(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "demo-core.yaml"
    file.write_bytes(content)
    with pytest.raises(UcpError, match="is not a valid kubeconfig") as caught:
        read_kubeconfig(file)
    assert "S3CR3T" not in str(caught.value)
