"""The definition of a cluster that was moved, copied, or created by an older version."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from k8s_ucp.clusters.embedded.definition_edits import relocate, renumber, update, updated
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.errors import UcpError

OLDER = """components:
- args:
  - --etcd-prefix=/registry
  - --etcd-servers=unix://client.sock
  name: kube-apiserver
- args:
  - --node-monitor-grace-period=87600h0m0s
  name: kube-controller-manager
- args:
  - --config=/my files/one/.kwok/clusters/one/kwok.yaml
  name: kwok-controller
---
kind: KwokctlResource
"""
"""A definition that an older version wrote."""


def defined(clusters: Path) -> ClusterFolder:
    """The files of a cluster that name its folder."""
    folder = ClusterFolder(clusters, "one")
    folder.home.mkdir(parents=True)
    folder.kwok_config.write_text(json.dumps({"config": str(folder.stages)}))
    (folder.home / "kubeconfig.yaml").write_text(f"ca: {folder.certificate('ca.crt')}\n")
    (folder.home / "kwok.yaml").write_text(
        f"components:\n- args:\n  - --data-dir={folder.data}\n  - --config={folder.stages}\n"
        f"  binary: /cache/bin/etcd\n  workDir: {folder.home}\n---\nkind: KwokctlResource\n"
    )
    return folder


def texts(folder: ClusterFolder) -> list[str]:
    return [each.read_text() for each in sorted(folder.root.rglob("*")) if each.is_file()]


def test_cluster_does_not_use_the_data_in_its_former_place(tmp_path: Path) -> None:
    original = defined(tmp_path / "my work" / "clusters")
    before = texts(original)
    assert not relocate(original)
    shutil.copytree(tmp_path / "my work", tmp_path / "copy")
    copy = ClusterFolder(tmp_path / "copy" / "clusters", "one")
    write_authority(original, "of another cluster, created there since")
    write_authority(copy, "its own")
    assert relocate(copy) == original.root
    assert relocate(copy) is None
    for each in (original, copy):
        each.certificate("ca.crt").unlink()
    now = texts(copy)
    assert str(original.root) not in "".join(now)
    assert now == [each.replace(str(original.root), str(copy.root)) for each in before]
    assert texts(original) == before


def write_authority(folder: ClusterFolder, text: str) -> None:
    folder.certificate("ca.crt").parent.mkdir(exist_ok=True)
    folder.certificate("ca.crt").write_text(text)


def test_a_copy_of_a_cluster_is_not_started_in_the_name_of_the_original(tmp_path: Path) -> None:
    """It has the original's keys, and the addresses of its app clusters."""
    original = defined(tmp_path / "work" / ".ucp" / "demo" / "clusters")
    write_authority(original, "a certificate")
    shutil.copytree(tmp_path / "work", tmp_path / "copy")
    copy = ClusterFolder(tmp_path / "copy" / ".ucp" / "demo" / "clusters", "one")
    before = texts(copy)

    for _ in range(2):
        with pytest.raises(UcpError, match="one is a copy of the one in") as refused:
            relocate(copy)

    assert str(tmp_path / "work") in str(refused.value)
    assert f"rm -r {tmp_path}/copy/.ucp/demo, then" in str(refused.value.next)
    assert texts(copy) == before


def test_a_cluster_seen_through_another_path_is_no_copy(tmp_path: Path) -> None:
    original = defined(tmp_path / "work" / "clusters")
    write_authority(original, "a certificate")
    (tmp_path / "mount").symlink_to(tmp_path / "work")

    assert relocate(ClusterFolder(tmp_path / "mount" / "clusters", "one")) == original.root


def test_ports_of_a_definition_are_exchanged_and_nothing_else(tmp_path: Path) -> None:
    folder = defined(tmp_path / "ws-23456" / "clusters")
    text = (
        "- --secure-port={a}\n- --server-address=127.0.0.1:{b}\n- --ca=/ws-23456/port/23456\n"
        "  host: 127.0.0.1:{a}\n  port: {a}\n  kubeApiserverPort: {a}\n  other: 23456\n"
        "  server: https://127.0.0.1:{b}\n  far: 127.0.0.1:234567\n"
    )
    settings = '{{"kubeApiserverPort": {a}, "kwokControllerPort": {b}}}'
    (folder.home / "kwok.yaml").write_text(text.format(a=23456, b=23457))
    folder.kwok_config.write_text(settings.format(a=23456, b=23457))

    for _ in range(2):
        renumber(folder, {"x": 23456, "y": 23457}, {"x": 23456 + 9, "y": 23457})

    assert (folder.home / "kwok.yaml").read_text() == text.format(a=23465, b=23457)
    assert folder.kwok_config.read_text() == settings.format(a=23465, b=23457)


def test_path_in_folded_yaml_is_replaced(tmp_path: Path) -> None:
    folder = defined(tmp_path / "my work" / "clusters")
    definition = folder.home / "kwok.yaml"
    plain = definition.read_text()
    definition.write_text(plain.replace("/my work/", "/my\n      work/"))
    assert not relocate(folder)
    moved = ClusterFolder((tmp_path / "my work").rename(tmp_path / "new") / "clusters", "one")
    assert relocate(moved) == folder.root
    now = (moved.home / "kwok.yaml").read_text()
    assert now == plain.replace(str(folder.root), str(moved.root))


@pytest.mark.parametrize(("before", "after"), [("wörk", "work"), ("work", "wörk"), ("ö", "öäü")])
def test_path_that_json_escapes_is_replaced(tmp_path: Path, before: str, after: str) -> None:
    folder = defined(tmp_path / before / "clusters")
    moved = ClusterFolder((tmp_path / before).rename(tmp_path / after) / "clusters", "one")
    assert relocate(moved) == folder.root
    assert json.loads(moved.kwok_config.read_text()) == {"config": str(moved.stages)}
    assert str(moved.root) in (moved.home / "kwok.yaml").read_text()


def test_path_that_yaml_would_quote_is_refused(tmp_path: Path) -> None:
    defined(tmp_path / "work")
    moved = ClusterFolder((tmp_path / "work").rename(tmp_path / "my work #2"), "one")
    before = texts(moved)
    with pytest.raises(UcpError, match=r"was created in .*work/one.* can't be adapted"):
        relocate(moved)
    assert texts(moved) == before


def test_nothing_changes_without_a_definition(tmp_path: Path) -> None:
    assert not relocate(ClusterFolder(tmp_path, "one"))


def test_a_cluster_of_an_older_ucp_gets_the_current_arguments_and_stages() -> None:
    folder = ClusterFolder(Path("/my files"), "one")
    text = updated(OLDER, folder)
    definition = next(iter(YAML(typ="safe").load_all(text)))
    arguments = {each["name"]: each["args"] for each in definition["components"]}
    assert "--advertise-address=127.0.0.1" in arguments["kube-apiserver"]
    assert any("AdmissionWebhook" in each for each in arguments["kube-apiserver"])
    assert "--etcd-servers=unix://client.sock" in arguments["kube-apiserver"]
    off = arguments["kube-controller-manager"][1]
    assert off.startswith("--controllers=*,-horizontal-pod-autoscaler-controller,")
    assert arguments["kwok-controller"] == ["--config=/my files/one/stages.yaml"]
    assert updated(text, folder) == text


def test_components_changed_by_an_update_are_restarted(tmp_path: Path) -> None:
    """A changed argument of the API server, too: otherwise it would come with some later start."""
    folder = ClusterFolder(tmp_path, "one")
    folder.home.mkdir(parents=True)
    definition = folder.home / "kwok.yaml"
    older = OLDER.replace("/my files", str(tmp_path))
    definition.write_text(older)
    assert update(folder, None) == ["kube-apiserver", "kube-controller-manager", "kwok-controller"]
    assert update(folder, None) == []
    definition.write_text(
        updated(older, folder).replace("  - '--advertise-address=127.0.0.1'\n", "")
    )
    assert update(folder, None) == ["kube-apiserver"]
