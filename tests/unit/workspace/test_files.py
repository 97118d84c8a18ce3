"""Files and folders that only the user can read."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import (
    Workspace,
    make_private_folder,
    replace_file,
    write_private_file,
    writing,
)


def test_state_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    workspace = Workspace.at(tmp_path / "work")
    before = os.umask(0)
    try:
        workspace.state("demo").make()
    finally:
        os.umask(before)
    for each in [workspace.root / ".ucp", *(workspace.root / ".ucp").rglob("*")]:
        mode = 0o700 if each.is_dir() else 0o600
        assert stat.S_IMODE(each.stat().st_mode) == mode, each


@pytest.mark.parametrize("link", [".ucp", ".ucp/demo"])
def test_a_folder_that_a_link_leads_to_keeps_its_mode(tmp_path: Path, link: str) -> None:
    shared, place = tmp_path / "shared", tmp_path / "work" / link
    shared.mkdir()
    shared.chmod(0o1777)
    place.parent.mkdir(parents=True)
    place.symlink_to(shared)
    state = Workspace.at(tmp_path / "work").state("demo")
    with pytest.raises(UcpError, match=r"link to a folder with mode 1777") as refused:
        state.make()
    assert f"chmod 700 {shared}; otherwise: rm {place}" in refused.value.next
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777
    assert not any(shared.iterdir())
    shared.chmod(0o700)
    state.make()


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


@pytest.mark.parametrize("write", [write_private_file, replace_file])
def test_no_file_that_a_link_in_place_of_a_temporary_file_leads_to_is_overwritten(
    tmp_path: Path, write: Callable[[Path, str], None]
) -> None:
    """A clone of others can have links for all the PIDs that a process in a container gets."""
    profile, file = tmp_path / "profile", tmp_path / "clone" / "ucp.yaml"
    file.parent.mkdir()
    for each in (profile, file):
        each.write_text("before")
    file.with_name(f".ucp.yaml.{os.getpid()}.tmp").symlink_to(profile)
    write(file, "after")
    assert (profile.read_text(), file.read_text()) == ("before", "after")
    assert [each.name for each in file.parent.iterdir()] == ["ucp.yaml"]


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


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free disk space (df -h), or inodes (df -i)"),
        (errno.EDQUOT, "free space in your disk quota"),
    ],
)
def test_a_folder_without_space_for_it_is_reported_with_how_to_make_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    def full(self: Path, *_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "mkdir", full)
    for create in (make_private_folder, lambda folder: Workspace(folder).settle_identity()):
        with pytest.raises(UcpError) as caught:
            create(tmp_path / "new")
        assert caught.value.next == advice


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free disk space (df -h), or inodes (df -i)"),
        (errno.EROFS, "make the workspace writable, or choose another one with --workspace DIR"),
        (errno.EISDIR, None),
    ],
)
def test_a_file_that_cannot_be_written_is_reported_with_what_to_do(
    tmp_path: Path, number: int, advice: str | None
) -> None:
    file = tmp_path / "ucp.yaml"
    with pytest.raises(UcpError, match=f"failed to write {file}: ") as caught, writing(file):
        raise OSError(number, os.strerror(number))
    assert caught.value.next == advice
