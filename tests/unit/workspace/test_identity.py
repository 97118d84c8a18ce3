"""The identity that a workspace marks its clusters with."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from k8s_ucp.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.at(tmp_path / "work")


def test_two_workspaces_in_containers_of_the_same_image_own_different_clusters(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Containers of one image have the same machine id (often an empty one), user and path."""
    machine(tmp_path, monkeypatch, "")
    workspace.settle_identity()
    first = workspace.machine_id("demo")
    shutil.rmtree(workspace.root)
    workspace.settle_identity()
    assert workspace.machine_id("demo") != first
    assert workspace.machine_id("other") != workspace.machine_id("demo")


def test_a_workspace_keeps_its_identity(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moved, in a container with another host name, or without its hidden state."""
    machine(tmp_path, monkeypatch, "uninitialized")
    workspace.settle_identity()
    known = workspace.machine_id("demo")
    workspace.state("demo").make()
    shutil.rmtree(workspace.root / ".ucp")
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "renamed", "", "", "")))
    workspace.settle_identity()
    assert workspace.machine_id("demo") == known
    moved = Workspace.at(workspace.root.rename(tmp_path / "elsewhere"))
    assert moved.machine_id("demo") == known
    moved.settle_identity()
    assert moved.machine_id("demo") == known


def test_a_copy_has_another_identity(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(tmp_path, monkeypatch, "")
    workspace.settle_identity()
    known = workspace.machine_id("demo")
    shutil.copytree(workspace.root, tmp_path / "copy")
    copy = Workspace.at(tmp_path / "copy")
    assert copy.machine_id("demo") != known
    copy.settle_identity()
    assert copy.machine_id("demo") != known
    shutil.rmtree(workspace.root)
    assert copy.machine_id("demo") != known


def test_a_copy_on_another_machine_has_another_identity(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(tmp_path, monkeypatch, "one")
    workspace.settle_identity()
    known = workspace.machine_id("demo")
    machine(tmp_path, monkeypatch, "two")
    assert workspace.machine_id("demo") != known
    workspace.settle_identity()
    assert workspace.machine_id("demo") != known


@pytest.mark.parametrize("trace", ["gitops/demo/core", ".ucp/demo/journal.json"])
def test_clusters_of_an_older_version_are_still_owned(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trace: str
) -> None:
    """They are marked with a hash of machine, user, path and topology."""
    machine(tmp_path, monkeypatch, "")
    (workspace.root / trace).mkdir(parents=True)
    text = f"\0{os.getuid()}\0{workspace.root}\0demo"
    theirs = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert workspace.machine_id("demo") == theirs
    workspace.settle_identity()
    assert workspace.machine_id("demo") == theirs
    moved = Workspace.at(workspace.root.rename(tmp_path / "elsewhere"))
    assert moved.machine_id("demo") == theirs
    fresh = f"\0{os.getuid()}\0{workspace.root}\0fresh"
    assert moved.machine_id("fresh") != hashlib.sha256(fresh.encode()).hexdigest()[:16]


def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    file = tmp_path / "machine-id"
    file.write_text(text)
    monkeypatch.setattr("k8s_ucp.workspace.identity._MACHINE_ID", file)


@pytest.mark.parametrize(
    "changed",
    [{"id": "../../root"}, {"id": ""}, {"former": {"demo": "../../root"}}, {"former": ["demo"]}],
)
def test_an_identity_is_no_path(workspace: Workspace, changed: dict[str, object]) -> None:
    """It is part of the path of root's databases, and the file may be of a clone of others."""
    workspace.settle_identity()
    place = workspace.root / "gitops" / ".workspace.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | changed))
    assert re.fullmatch("[0-9a-f]{16}", workspace.machine_id("demo"))
    workspace.settle_identity()
    assert json.loads(place.read_text()).items().isdisjoint(changed.items())


def test_what_could_be_read_for_ever_is_no_identity(workspace: Workspace, tmp_path: Path) -> None:
    """In a clone of others, the file may be a link to /dev/zero."""
    place = workspace.root / "gitops" / ".workspace.json"
    place.parent.mkdir(parents=True)
    os.mkfifo(tmp_path / "fifo")
    place.symlink_to(tmp_path / "fifo")
    before = workspace.machine_id("demo")
    workspace.settle_identity()
    assert not place.is_symlink()
    assert workspace.machine_id("demo") != before
