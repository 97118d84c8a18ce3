"""Where things lie, and that neither the caller's login nor another user changes it."""

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
from k8s_ucp.workspace import Workspace, cache_folder, write_private_file


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.at(tmp_path / "work")


def test_state_is_private_whatever_the_umask(workspace: Workspace) -> None:
    before = os.umask(0)
    try:
        workspace.state("demo").make()
    finally:
        os.umask(before)
    for each in [workspace.root / ".ucp", *(workspace.root / ".ucp").rglob("*")]:
        assert stat.S_IMODE(each.stat().st_mode) == 0o700, each


def test_without_a_home_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container under a user that it doesn't know."""
    for name in ("HOME", "UCP_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**22 + 7)
    with pytest.raises(UcpError) as caught:
        cache_folder()
    assert caught.value.next == "set HOME or UCP_CACHE_DIR to a folder you may write to"


def test_a_key_is_made_where_there_are_no_hard_links(
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
def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replace: bool
) -> None:
    """A backup sealed with a key is pushed at once; after a power cut the key must not be empty."""
    synced = []

    def sync(descriptor: int) -> None:
        named = (tmp_path / "backup.key").exists()
        synced.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), named))

    monkeypatch.setattr(os, "fsync", sync)
    write_private_file(tmp_path / "backup.key", "key", replace=replace)
    assert synced == [(False, False), (True, True)]
