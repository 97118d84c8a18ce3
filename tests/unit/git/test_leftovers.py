"""Cleanup of temporary files of killed programs, and of nothing else."""

from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path

import pytest

import k8s_ucp
from k8s_ucp.git.clones import make_clone, make_remote
from k8s_ucp.git.leftovers import left_locks, sweep_temporary
from k8s_ucp.git.repository import Repository

DAY = 25 * 3600


def aged(path: Path, seconds: float = DAY) -> Path:
    then = time.time() - seconds
    for each in [*path.rglob("*"), path]:
        os.utime(each, (then, then))
    return path


def left(folder: Path) -> list[Path]:
    """Partial files as git leaves them: of a push, of a fetch, of a loose object."""
    incoming = folder / "objects/tmp_objdir-incoming-aB3dE6"
    (incoming / "pack").mkdir(parents=True)
    (incoming / "pack/tmp_pack_aB3dE6").write_bytes(b"half")
    pack = folder / "objects/pack"
    pack.mkdir(exist_ok=True)
    (pack / "tmp_pack_Xy12Zz").write_bytes(b"half")
    (folder / "objects/ab").mkdir(exist_ok=True)
    (folder / "objects/ab/tmp_obj_Xy12Zz").write_bytes(b"half")
    return [incoming, pack / "tmp_pack_Xy12Zz", folder / "objects/ab/tmp_obj_Xy12Zz"]


def test_partial_packs_of_a_killed_git_are_deleted(tmp_path: Path, home: Path) -> None:
    bare = make_remote(tmp_path / "a.git")
    commit = bare.write_commit("A", {}, parent=None)
    bare.git("update-ref", "refs/heads/main", commit)
    clone = make_clone(tmp_path / "a", bare.folder.as_uri())
    for folder in (bare.folder, clone.folder / ".git"):
        old = [aged(each) for each in left(folder)]
        make_remote(bare.folder)
        make_clone(clone.folder, bare.folder.as_uri())
        assert not any(each.exists() for each in old)
    assert Repository(bare.folder).resolve("main") == commit


def test_a_pack_that_is_being_received_is_kept(tmp_path: Path, home: Path) -> None:
    bare = make_remote(tmp_path / "a.git")
    fresh = left(bare.folder)
    # The folder of a long push is old; the file being written is not.
    aged(fresh[0])
    os.utime(fresh[0] / "pack/tmp_pack_aB3dE6")
    make_remote(bare.folder)
    assert all(each.exists() for each in fresh)


def test_temporary_folders_of_killed_runs_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("ucp-check.aB3dE6", "ucp-check-x", "ucp-build-x", "ucp-other-x", "check-x"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
        aged(tmp_path / name)
    (tmp_path / "ucp-index-new").mkdir()
    (tmp_path / "ucp-check-link").symlink_to(tmp_path / "check-x")
    sweep_temporary()
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "check-x",
        "ucp-check-link",
        "ucp-index-new",
        "ucp-other-x",
    ]


def test_every_prefix_of_temporary_folders_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    texts = [each.read_text("utf-8") for each in Path(k8s_ucp.__file__).parent.rglob("*.py")]
    named = re.compile(r'TemporaryDirectory\(prefix="(ucp-[^"]*)"|mkdtemp\(prefix="(ucp-[^"]*)"')
    prefixes = {a or b for text in texts for a, b in named.findall(text)}
    assert len(prefixes) > 10
    for each in prefixes:
        (tmp_path / f"{each}x").mkdir()
        aged(tmp_path / f"{each}x")
    sweep_temporary()
    assert not list(tmp_path.iterdir())


def test_locks_that_git_holds_for_long_are_found_and_new_ones_are_not(tmp_path: Path) -> None:
    make_remote(tmp_path / "apps.git")
    repository = tmp_path / "apps.git"
    (repository / "packed-refs.lock").touch()
    for name in ("index.lock", "refs/heads/main.lock"):
        (repository / name).touch()
        aged(repository / name, 600)
    assert {*left_locks(repository)} == {
        repository / "index.lock",
        repository / "refs/heads/main.lock",
    }
    assert left_locks(tmp_path / "missing") == []
