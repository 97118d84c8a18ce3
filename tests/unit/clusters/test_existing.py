"""Clusters that ucp didn't create, and the user's kubeconfig with them, which may have any form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from k8s_ucp.clusters.existing.adoption import remove_mark
from k8s_ucp.clusters.existing.provider import ExistingProvider
from k8s_ucp.clusters.user_kubeconfig import UserKubeconfig
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import Kind, Kube, Object

CLUSTER = {"server": "https://192.0.2.1"}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"cluster": 5}, "cluster of 'a' is not a mapping"),
        ({"user": ["x"]}, "user of 'a' is not a mapping"),
        ({"context": ["x"]}, "context of 'a' is not a mapping"),
        ({"cluster": {**CLUSTER, "certificate-authority": 5}}, "failed to read .*/5, referenced"),
        ({"user": {"tokenFile": "a\0b"}}, "failed to read .*null byte"),
        ({"user": {"tokenFile": "binary"}}, "no token has"),
        ({"user": {"exec": {"command": "x"}}}, "credential plugin x"),
    ],
)
def test_a_context_that_cannot_be_used_is_refused(
    changed: dict[str, Any], why: str, tmp_path: Path
) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    context = {"cluster": "a", "user": "a"}
    content = {"context": context, "cluster": CLUSTER, "user": {}, **changed}
    file = tmp_path / "config"
    file.write_text(
        json.dumps({f"{key}s": [{"name": "a", key: each}] for key, each in content.items()})
    )
    with pytest.raises(UcpError, match=why):
        UserKubeconfig([file]).config("a", "demo-core")


def test_commands_in_advice_quote_the_context(tmp_path: Path) -> None:
    parts = {"context": {"cluster": "a", "user": "a"}, "cluster": CLUSTER}
    content = {f"{key}s": [{"name": "a", key: each}] for key, each in parts.items()}
    content["contexts"][0]["name"] = "my laptop; ls"
    content["users"] = [{"name": "a", "user": {"exec": {}, "auth-provider": "gcp"}}]
    (tmp_path / "config").write_text(json.dumps(content))
    with pytest.raises(UcpError) as refused:
        UserKubeconfig([tmp_path / "config"]).config("my laptop; ls", "demo-core")
    assert "kubectl --context 'my laptop; ls' -n" in str(refused.value.next)


def test_a_cluster_whose_record_cannot_be_read_is_not_taken_for_released(tmp_path: Path) -> None:
    """Its mark would keep other topologies away."""
    provider = ExistingProvider(tmp_path, owner="me")
    provider.delete("demo-core")
    record = tmp_path / "demo-core.json"
    record.write_text('{"context": "a')
    with pytest.raises(UcpError, match="its record is not valid") as refused:
        provider.delete("demo-core")
    assert "delete configmap k8s-ucp-cluster" in str(refused.value.next)
    assert record.exists()


def test_a_mark_with_other_keys_and_without_a_uid_is_removed() -> None:
    class Server:
        deleted: list[object]

        def find(self, kind: Kind, name: str, namespace: str) -> Object:
            data = {"owner": "me", "name": "demo-core", "note": "added by a person"}
            return {"metadata": {"name": name}, "data": data}

        def delete(self, kind: Kind, name: str, namespace: str, *, uid: str | None) -> bool:
            self.deleted = [name, uid]
            return True

    server = Server()
    remove_mark(cast(Kube, server), "demo-core", "me")
    assert server.deleted == ["k8s-ucp-cluster", None]
