"""Paths of a workspace, which neither the login session nor another user can change."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import Workspace, cache_folder, make_private_folder, write_private_file


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
    monkeypatch.setattr("k8s_ucp.workspace._PARENTS", (shared,))
    settled = workspace.settle_runtime_folder("demo")
    assert settled.parent.parent == shared
    assert settled.parent != taken
    assert workspace.runtime_folder("demo") == settled == workspace.settle_runtime_folder("demo")
    for each in (theirs, taken):
        assert stat.S_IMODE(each.stat().st_mode) == 0o755, "a stranger's folder was changed"


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
    monkeypatch.setattr("k8s_ucp.workspace._MACHINE_ID", file)


def test_state_folders_are_private_whatever_the_umask(workspace: Workspace) -> None:
    before = os.umask(0)
    try:
        workspace.state("demo").make()
    finally:
        os.umask(before)
    for each in [workspace.root / ".ucp", *(workspace.root / ".ucp").rglob("*")]:
        assert stat.S_IMODE(each.stat().st_mode) == 0o700, each


def test_a_missing_home_is_reported_with_the_variables_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a container that runs as an unknown user."""
    for name in ("HOME", "UCP_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**22 + 7)
    with pytest.raises(UcpError) as caught:
        cache_folder()
    assert caught.value.next == "set HOME or UCP_CACHE_DIR to a writable folder"


def test_a_key_is_written_on_file_systems_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    key = tmp_path / "backup.key"
    write_private_file(key, "first", replace=False)
    write_private_file(key, "second", replace=False)
    assert key.read_text() == "first"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["backup.key"]


@pytest.mark.parametrize("replace", [True, False])
def test_a_private_file_is_synced_before_it_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replace: bool
) -> None:
    """The first backup is pushed immediately; its key must not be empty after a power failure."""
    synced = []

    def sync(descriptor: int) -> None:
        named = (tmp_path / "backup.key").exists()
        synced.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), named))

    monkeypatch.setattr(os, "fsync", sync)
    write_private_file(tmp_path / "backup.key", "key", replace=replace)
    assert synced == [(False, False), (True, True)]


def test_the_advice_for_an_unwritable_folder_depends_on_its_location(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UCP_CACHE_DIR", str(tmp_path / "cache"))
    for parent, advice in (("cache", "UCP_CACHE_DIR"), ("work", "--workspace")):
        (tmp_path / parent).write_text("in the way")
        with pytest.raises(UcpError) as caught:
            make_private_folder(tmp_path / parent / "new")
        assert advice in str(caught.value.next)


def test_a_full_disk_is_reported_with_the_file_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_private_file(tmp_path / "journal.json", "{}")
    assert caught.value.filename == str(tmp_path / "journal.json")
    assert list(tmp_path.iterdir()) == []


def test_a_private_folder_with_correct_permissions_is_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk with errors becomes read-only: `ucp status` and `ucp doctor` still work on it."""
    make_private_folder(tmp_path / "own")
    (tmp_path / "wide").mkdir(mode=0o755)

    def refuse(self: Path, _: int) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "chmod", refuse)
    make_private_folder(tmp_path / "own")
    with pytest.raises(UcpError, match="Read-only file system") as caught:
        make_private_folder(tmp_path / "wide")
    assert "make the workspace writable" in (caught.value.next or "")
