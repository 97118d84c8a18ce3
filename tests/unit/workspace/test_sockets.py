"""The folder for sockets, which neither the login session nor another user can change."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from k8s_ucp.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.at(tmp_path / "work")


def test_the_socket_folder_does_not_depend_on_the_login_session(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of a login session is deleted with it; cron, sudo and services have none."""
    login = tmp_path / "run"
    login.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(login))
    before = workspace.runtime_folder("demo")
    settled = workspace.settle_runtime_folder("demo")
    try:
        assert not settled.is_relative_to(login)
        monkeypatch.delenv("XDG_RUNTIME_DIR")
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        assert before == settled == workspace.runtime_folder("demo")
        assert stat.S_IMODE(settled.stat().st_mode) == 0o700
        assert len(os.fsencode(settled / "supervisor.sock")) < 107
    finally:
        settled.rmdir()


def test_the_socket_folder_recorded_by_a_start_is_used(
    workspace: Workspace, tmp_path: Path
) -> None:
    state = workspace.state("demo")
    state.make()
    elsewhere = tmp_path / "elsewhere" / "demo"
    elsewhere.parent.mkdir()
    note = {"state": state.identifier, "folder": str(elsewhere)}
    state.runtime_record.write_text(json.dumps(note))
    assert workspace.runtime_folder("demo") == elsewhere
    assert workspace.settle_runtime_folder("demo") == elsewhere
    assert elsewhere.is_dir()


def test_a_copied_workspace_has_its_own_socket_folder(workspace: Workspace, tmp_path: Path) -> None:
    first = workspace.settle_runtime_folder("demo")
    try:
        shutil.copytree(workspace.root, tmp_path / "copy")
        copy = Workspace.at(tmp_path / "copy")
        assert workspace.runtime_folder("demo") == first
        assert copy.runtime_folder("demo") != first
    finally:
        first.rmdir()


def test_sockets_of_an_older_version_are_found(workspace: Workspace, tmp_path: Path) -> None:
    """Such a version wrote no record, and used the folder of the login session."""
    state = workspace.state("demo")
    state.make()
    config = f"file={tmp_path}/user/1000/ucp/abc/supervisor.sock\n\nidentifier={state.identifier}\n"
    state.supervisor_config.write_text(config)
    assert workspace.runtime_folder("demo") == tmp_path / "user/1000/ucp/abc"
    settled = workspace.settle_runtime_folder("demo")
    settled.rmdir()
    assert not settled.is_relative_to(tmp_path)
    assert workspace.runtime_folder("demo") == settled


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives folders to other users")
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_socket_folder_name_taken_by_another_user_is_skipped(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    shared = tmp_path / "tmp"
    shared.mkdir(mode=0o1777)
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o755)
    os.chown(theirs, 12345, 12345)
    taken = shared / f"ucp-{os.getuid()}"
    if kind == "link":
        taken.symlink_to(theirs)
    else:
        taken.mkdir(mode=0o755)
        os.chown(taken, 12345, 12345)
    monkeypatch.setattr("k8s_ucp.workspace.sockets._PARENTS", (shared,))
    settled = workspace.settle_runtime_folder("demo")
    assert settled.parent.parent == shared
    assert settled.parent != taken
    assert workspace.runtime_folder("demo") == settled == workspace.settle_runtime_folder("demo")
    for each in (theirs, taken):
        assert stat.S_IMODE(each.stat().st_mode) == 0o755, "a stranger's folder was changed"
