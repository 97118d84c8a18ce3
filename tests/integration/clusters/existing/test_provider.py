"""Existing clusters: ownership, identity, and what is never changed."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.cluster_provider import ClusterRequest, Reach
from k8s_ucp.clusters.existing.adoption import MARK, MARK_NAMESPACE
from k8s_ucp.clusters.existing.provider import ExistingProvider
from k8s_ucp.clusters.user_kubeconfig import UserKubeconfig
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.kube import CONFIG_MAP, NAMESPACE, SERVICE_ACCOUNT, Kube, current_context
from k8s_ucp.tools.toolbox import Toolbox
from tests.backing_clusters import Backing, backing_clusters, merged
from tests.control_planes import namespace, quiet

pytestmark = pytest.mark.engines

REQUEST = ClusterRequest("shop-core", parameters={"context": "second"})


@pytest.fixture(scope="module")
def backing(toolbox: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backing]:
    root = tmp_path_factory.mktemp("existing")
    with backing_clusters(root, toolbox, ("second", "third")) as found:
        yield found


@pytest.fixture
def provider(backing: Backing) -> Iterator[ExistingProvider]:
    found = backing.existing()
    yield found
    for name in found.names():
        found.delete(name)


@pytest.fixture
def kube(backing: Backing) -> Iterator[Kube]:
    with contextlib.closing(Kube(backing.configs["second"])) as found:
        yield found


def with_user(backing: Backing, user: dict[str, Any], tmp_path: Path) -> ExistingProvider:
    """A provider whose context `second` has another user."""
    config = merged(backing.configs)
    config["users"] = [
        {"name": each["name"], "user": user if each["name"] == "second" else each["user"]}
        for each in config["users"]
    ]
    file = tmp_path / "config"
    file.write_text(json.dumps(config))
    return ExistingProvider(tmp_path / "notes", owner="me", kubeconfig=UserKubeconfig([file]))


def test_delete_removes_only_the_mark_of_ucp(provider: ExistingProvider, kube: Kube) -> None:
    kube.create(namespace("of-the-user"))
    provider.create(REQUEST, quiet)
    assert kube.get(CONFIG_MAP, MARK, MARK_NAMESPACE)["data"]["name"] == "shop-core"
    provider.stop("shop-core")
    assert kube.find(CONFIG_MAP, MARK, MARK_NAMESPACE)
    provider.delete("shop-core")
    assert kube.find(CONFIG_MAP, MARK, MARK_NAMESPACE) is None
    assert kube.find(NAMESPACE, "of-the-user")
    kube.delete(NAMESPACE, "of-the-user")


def test_one_cluster_can_not_be_used_twice_in_a_topology(provider: ExistingProvider) -> None:
    provider.create(REQUEST, quiet)
    twice = ClusterRequest("shop-stage", parameters={"context": "second"})
    with pytest.raises(UcpError, match="is already used as cluster shop-core of this topology"):
        provider.create(twice, quiet)


def test_context_that_later_refers_to_another_cluster_is_refused(
    provider: ExistingProvider, backing: Backing, kube: Kube
) -> None:
    provider.create(REQUEST, quiet)
    before = backing.kubeconfig.read_text()
    config = json.loads(before)
    for each in config["contexts"]:
        each["context"] = {"cluster": "third", "user": "third"}
    backing.kubeconfig.write_text(json.dumps(config))
    try:
        state = provider.state("shop-core")
        assert (state.exists, state.running) == (True, False)
        assert "refers to another cluster" in state.message
        for call in (provider.start, provider.delete):
            with pytest.raises(UcpError, match="refers to another cluster"):
                call("shop-core")
    finally:
        backing.kubeconfig.write_text(before)
    assert kube.find(CONFIG_MAP, MARK, MARK_NAMESPACE)
    assert provider.state("shop-core").ready


def test_user_without_cluster_admin_is_refused(
    backing: Backing, kube: Kube, tmp_path: Path
) -> None:
    kube.create(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "weak", "namespace": "default"},
        }
    )
    token, _ = kube.request_token("default", "weak", seconds=600)
    provider = with_user(backing, {"token": token}, tmp_path)
    try:
        for call in (provider.preflight, lambda request: provider.create(request, quiet)):
            with pytest.raises(UcpError, match="is not cluster-admin"):
                call(REQUEST)
    finally:
        kube.delete(SERVICE_ACCOUNT, "weak", "default")
    assert kube.find(CONFIG_MAP, MARK, MARK_NAMESPACE) is None


def test_rejected_credential_is_reported(backing: Backing, tmp_path: Path) -> None:
    provider = with_user(backing, {"token": "expired"}, tmp_path)
    with pytest.raises(UcpError, match="rejected the credential of the context second") as e:
        provider.preflight(REQUEST)
    assert "kubectl --context second" in (e.value.next or "")


def test_unreachable_api_server_is_reported(backing: Backing, tmp_path: Path) -> None:
    config = merged(backing.configs)
    for each in config["clusters"]:
        each["cluster"]["server"] = "https://127.0.0.1:9"
    (tmp_path / "config").write_text(json.dumps(config))
    provider = ExistingProvider(
        tmp_path / "notes", owner="me", kubeconfig=UserKubeconfig([tmp_path / "config"])
    )
    with pytest.raises(UcpError, match="failed to reach the API server of the context second"):
        provider.preflight(REQUEST)


def test_credential_plugin_is_refused_and_never_run(backing: Backing, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    user = {"exec": {"command": "touch", "args": [str(trace)]}}
    provider = with_user(backing, user, tmp_path)
    with pytest.raises(
        UcpError, match="the credential plugin touch, which ucp does not run"
    ) as caught:
        provider.preflight(REQUEST)
    assert "create token k8s-ucp-admin" in (caught.value.next or "")
    assert not trace.exists()


def test_missing_or_unknown_context_lists_the_available_ones(
    provider: ExistingProvider, backing: Backing
) -> None:
    lost = ExistingProvider(
        backing.folder("lost"), owner="me", kubeconfig=UserKubeconfig([backing.kubeconfig])
    )
    with pytest.raises(UsageError, match="available: first, second, third"):
        lost.preflight(ClusterRequest("shop-core"))
    with pytest.raises(
        UsageError, match="has no context 'fourth'; available: first, second, third"
    ):
        lost.preflight(ClusterRequest("shop-core", parameters={"context": "fourth"}))


def test_loopback_address_is_refused_for_access_from_pods(provider: ExistingProvider) -> None:
    provider.create(REQUEST, quiet)
    assert provider.kubeconfig("shop-core")
    with pytest.raises(UcpError, match="is not reachable from pods of the core cluster"):
        provider.kubeconfig("shop-core", reach=Reach.PODS)
    provider.preflight(REQUEST, reach=Reach.MACHINE)
    with pytest.raises(UcpError, match="is not reachable from pods of the core cluster"):
        provider.preflight(REQUEST, reach=Reach.PODS)


def test_files_of_the_kubeconfig_are_inlined(
    backing: Backing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With file references like minikube's, and two files in KUBECONFIG (the first entry wins)."""
    config = backing.configs["second"]
    cluster, user = current_context(config)
    folder = tmp_path / "my kube"
    folder.mkdir()
    for name, data in (
        ("ca.crt", cluster["certificate-authority-data"]),
        ("me.crt", user["client-certificate-data"]),
        ("me.key", user["client-key-data"]),
    ):
        (folder / name).write_bytes(base64.b64decode(data))
    first = {
        "contexts": [{"name": "mini", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"client-certificate": "me.crt", "client-key": "me.key"}}],
    }
    entry = {"server": cluster["server"], "certificate-authority": str(folder / "ca.crt")}
    second = {
        "clusters": [{"name": "c", "cluster": entry}],
        "users": [{"name": "u", "user": {"token": "does not count"}}],
    }
    (folder / "one").write_text(json.dumps(first))
    (folder / "two").write_text(json.dumps(second))
    monkeypatch.setenv("KUBECONFIG", f"{folder / 'one'}:{folder / 'two'}:{folder / 'absent'}")
    found = UserKubeconfig()
    assert found.contexts() == ["mini"]
    with contextlib.closing(Kube(found.config("mini", "shop-core"))) as kube:
        assert kube.version()
    (folder / "me.key").unlink()
    with pytest.raises(UcpError, match=r"failed to read .*me\.key, referenced by the kubeconfig"):
        found.config("mini", "shop-core")
