"""The user's own kubeconfig: contexts of ucp are added and removed, all others are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.clusters.user_contexts import (
    change_file,
    forget_contexts,
    forgetting_deleted,
    merged,
    read_file,
    refuse_others,
    replaced_server,
    without,
)
from k8s_ucp.errors import UcpError


def config(name: str, authority: str = "Y2E=") -> dict[str, Any]:
    return {
        "clusters": [{"name": name, "cluster": {"certificate-authority-data": authority}}],
        "users": [{"name": name, "user": {"client-key-data": "aw=="}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def test_removing_contexts_restores_the_kubeconfig() -> None:
    theirs = {"apiVersion": "v1", "kind": "Config", "preferences": {}, **config("mine", "eA==")}
    both = merged(theirs, config("demo-stage"))
    assert both["current-context"] == "demo-stage"
    assert [each["name"] for each in both["users"]] == ["mine", "demo-stage"]
    left = without(both, config("demo-stage"))
    assert left == {**theirs, "current-context": ""}


def test_the_current_context_is_kept_if_it_is_not_ours() -> None:
    both = {**merged(config("mine"), config("demo-stage")), "current-context": "mine"}
    assert without(both, config("demo-stage"))["current-context"] == "mine"


def test_a_foreign_cluster_of_the_same_name_is_kept() -> None:
    theirs = config("demo-stage", "another authority")
    assert without(theirs, config("demo-stage")) == theirs
    assert without({}, config("demo-stage")) == {}


@pytest.mark.parametrize(
    ("part", "item", "told"),
    [
        ("clusters", {"cluster": {"server": "https://prod.example.org"}}, "prod.example.org"),
        ("contexts", {"context": {"cluster": "gke_shop", "user": "me"}}, "cluster gke_shop"),
    ],
)
def test_credentials_of_another_cluster_are_not_overwritten(
    part: str, item: dict[str, Any], told: str
) -> None:
    theirs = {part: [{"name": "demo-prod", **item}]}
    with pytest.raises(UcpError, match=told) as refused:
        refuse_others(theirs, config("demo-prod"), Path("config"))
    assert "kubectl config delete-user demo-prod" in refused.value.next
    refuse_others(theirs, config("demo-stage"), Path("config"))
    mine = {"contexts": [{"name": "mine", "context": {"cluster": "mine", "user": "demo-prod"}}]}
    with pytest.raises(UcpError, match="user demo-prod of the context mine"):
        refuse_others(mine, config("demo-prod"), Path("config"))


@pytest.mark.parametrize(
    "server", ["https://127.0.0.1:6443", "https://[::1]:1", "https://localhost"]
)
def test_the_entry_of_a_recreated_local_cluster_is_replaced(server: str) -> None:
    before = merged({}, config("demo-stage", "its authority before"))
    before["clusters"][0]["cluster"]["server"] = server
    refuse_others(before, config("demo-stage"), Path("config"))


def test_a_replaced_context_of_another_local_cluster_is_named() -> None:
    def at(port: int, authority: str) -> dict[str, Any]:
        found = config("demo-stage", authority)
        found["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        return found

    here = at(1, "ours")
    assert replaced_server(merged({}, at(2, "of another workspace")), here).endswith(":2")
    assert replaced_server(merged({}, at(1, "recreated")), here) == ""
    assert replaced_server(merged({}, at(2, "ours")), here) == ""
    assert replaced_server({}, here) == ""


def test_contexts_of_deleted_clusters_are_removed_and_others_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(users))
    files = {name: tmp_path / f"{name}.yaml" for name in ("demo-stage", "demo-prod")}
    both: dict[str, Any] = {}
    for name, file in files.items():
        file.write_text(json.dumps(config(name, name)))
        both = merged(both, config(name, name))
    users.write_text(json.dumps(both))
    with forgetting_deleted([*files.values(), tmp_path / "missing.yaml"]):
        files["demo-stage"].unlink()
    assert [each["name"] for each in read_file(users)["contexts"]] == ["demo-prod"]


def test_the_server_of_the_same_cluster_can_change() -> None:
    before = merged({}, config("demo-prod"))
    before["clusters"][0]["cluster"]["server"] = "https://old.example.org"
    refuse_others(before, config("demo-prod"), Path("config"))


def test_an_invalid_kubeconfig_is_reported_and_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(file))
    parts = ("clusters: [x]", "clusters: {a: b}", "contexts: [null]", "users: 3")
    contents = ("clusters: [{name: demo-stage, cluster: 7}]", "contexts: [{name: [1]}]")
    for text in ("- a list", "key: [", "a: b: c", *parts, *contents):
        file.write_text(text)
        with pytest.raises(UcpError, match="not a valid kubeconfig"):
            read_file(file)
        forget_contexts(config("demo-stage"))
        assert file.read_text() == text


def test_the_kubeconfig_is_written_only_if_it_has_contexts_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(file))
    forget_contexts(config("demo-stage"))
    assert not file.exists()
    text = "# mine\ncontexts: []\n"
    file.write_text(text)
    forget_contexts(config("demo-stage"))
    assert file.read_text() == text
    change_file(file, lambda found: merged(found, config("demo-stage")))
    forget_contexts(config("demo-stage"))
    assert read_file(file)["contexts"] == []


THEIRS = """\
# written by hand
apiVersion: v1
kind: Config
preferences: {}
clusters:
- name: mine   # at home
  cluster:
    server: "https://home.example.org"
    certificate-authority-data: CERTIFICATE
users:
- name: mine
  user: {token: 'abc'}
contexts:
# the one I use
- name: mine
  context: {cluster: mine, user: mine}
current-context: mine
""".replace("CERTIFICATE", "QUJD" * 100)


def test_comments_and_formatting_of_the_kubeconfig_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(file))
    file.write_text(THEIRS)
    change_file(file, lambda found: merged(found, config("demo-stage")))
    lines = file.read_text().splitlines()
    assert [each for each in THEIRS.splitlines()[:-1] if each not in lines] == []
    assert read_file(file)["current-context"] == "demo-stage"
    assert [each["name"] for each in read_file(file)["contexts"]] == ["mine", "demo-stage"]
    forget_contexts(config("demo-stage"))
    assert file.read_text() == THEIRS.replace("current-context: mine", "current-context: ''")
    assert not file.with_name("config.lock").exists()


def test_a_json_kubeconfig_stays_json(tmp_path: Path) -> None:
    file = tmp_path / "config"
    for text in ("", json.dumps(config("mine"))):
        file.write_text(text)
        change_file(file, lambda found: merged(found, config("demo-stage")))
        assert json.loads(file.read_text())["current-context"] == "demo-stage"


def test_the_kubeconfig_is_not_written_while_kubectl_holds_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("k8s_ucp.clusters.user_contexts.LOCK_SECONDS", 0.2)
    file = tmp_path / "config"
    file.write_text(THEIRS)
    lock = tmp_path / "config.lock"
    lock.touch()
    with pytest.raises(UcpError, match="is locked by another program") as caught:
        change_file(file, lambda found: merged(found, config("demo-stage")))
    assert str(lock) in str(caught.value.next)
    assert file.read_text() == THEIRS
    assert lock.exists()
    lock.unlink()
    change_file(file, lambda found: merged(found, config("demo-stage")))
    assert not lock.exists()


def test_a_kubeconfig_that_cannot_be_written_is_reported_with_another_place(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UcpError, match="failed to write") as caught:
        change_file(tmp_path / "file" / "config", lambda found: found)
    assert "KUBECONFIG" in str(caught.value.next)
