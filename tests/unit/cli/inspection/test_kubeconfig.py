"""Merging a cluster's kubeconfig into the user's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from k8s_ucp.cli.inspection.kubeconfig import checked, renamed
from k8s_ucp.clusters.user_contexts import merged
from k8s_ucp.errors import UcpError

CONFIG = {
    "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "y", "user": {"token": "t"}}],
    "contexts": [{"name": "z", "context": {"cluster": "x", "user": "y"}}],
}


def test_merging_a_kubeconfig_twice_changes_nothing() -> None:
    base = {"clusters": [{"name": "mine"}], "contexts": None, "extensions": [1]}
    once = merged(base, renamed(CONFIG, "demo-core"))
    assert merged(once, renamed(CONFIG, "demo-core")) == once
    assert [each["name"] for each in once["clusters"]] == ["mine", "demo-core"]
    assert once["contexts"] == [
        {"name": "demo-core", "context": {"cluster": "demo-core", "user": "demo-core"}}
    ]
    assert once["current-context"] == "demo-core"
    assert once["extensions"] == [1]


def of_a_cloud(user: dict[str, Any], **cluster: Any) -> bytes:
    """A kubeconfig as it is in a Secret of the core cluster."""
    config = {
        "clusters": [{"name": "x", "cluster": {"server": "https://10.0.0.1", **cluster}}],
        "users": [{"name": "x", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "current-context": "x",
    }
    return json.dumps(config).encode()


PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "gke-gcloud-auth-plugin"}


@pytest.mark.parametrize("user", [{"token": "t"}, {"exec": PLUGIN}, {"client-key-data": "eA=="}])
def test_kubeconfig_of_a_cloud_is_passed_on(user: dict[str, Any]) -> None:
    found = renamed(checked(of_a_cloud(user), "stage"), "demo-stage")
    assert found["users"] == [{"name": "demo-stage", "user": user}]
    assert found["clusters"][0]["cluster"] == {"server": "https://10.0.0.1"}


@pytest.mark.parametrize(
    ("user", "cluster"),
    [
        ({"exec": {"command": "sh", "args": ["-c", "id"]}}, {}),
        ({"exec": {**PLUGIN, "command": "/tmp/gke-gcloud-auth-plugin"}}, {}),
        ({"exec": {"command": "aws", "args": ["s3", "cp", "/home/me/key", "s3://x"]}}, {}),
        ({"exec": {**PLUGIN, "env": [{"name": "LD_PRELOAD", "value": "/tmp/x"}]}}, {}),
        ({"exec": "sh"}, {}),
        ({"auth-provider": {"name": "gcp", "config": {"cmd-path": "/bin/sh"}}}, {}),
        ({"tokenFile": "/home/me/.ssh/id_ed25519"}, {}),
        ({"token": "t"}, {"insecure-skip-tls-verify": True}),
        ({"token": "t"}, {"proxy-url": "http://10.0.0.2"}),
    ],
)
def test_kubeconfig_with_programs_or_files_is_refused(
    user: dict[str, Any], cluster: dict[str, Any]
) -> None:
    """Whoever may write Secrets of the core would run programs on the machine of its operator."""
    with pytest.raises(UcpError, match="could run programs or read files on this machine"):
        checked(of_a_cloud(user, **cluster), "stage")
