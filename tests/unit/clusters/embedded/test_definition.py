"""A cluster whose folder was moved or copied."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from k8s_ucp.clusters.embedded.definition import relocate
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.errors import UcpError


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


def test_copied_cluster_uses_its_own_data(tmp_path: Path) -> None:
    original = defined(tmp_path / "my work" / "clusters")
    before = texts(original)
    assert not relocate(original)
    shutil.copytree(tmp_path / "my work", tmp_path / "copy")
    copy = ClusterFolder(tmp_path / "copy" / "clusters", "one")
    assert relocate(copy) == original.root
    assert relocate(copy) is None
    now = texts(copy)
    assert str(original.root) not in "".join(now)
    assert now == [each.replace(str(original.root), str(copy.root)) for each in before]
    assert texts(original) == before


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


def test_path_that_yaml_would_quote_is_refused(tmp_path: Path) -> None:
    defined(tmp_path / "work")
    moved = ClusterFolder((tmp_path / "work").rename(tmp_path / "my work #2"), "one")
    before = texts(moved)
    with pytest.raises(UcpError, match=r"was created in .*work/one.* can't be adapted"):
        relocate(moved)
    assert texts(moved) == before


def test_nothing_changes_without_a_definition(tmp_path: Path) -> None:
    assert not relocate(ClusterFolder(tmp_path, "one"))
