"""Files of others' git repositories."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.git.command import run_git
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.manifests import git_source
from k8s_ucp.gitops.manifests.git_source import find_commit, open_commit


def test_no_more_files_are_read_than_fit_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    """Each folder alone is small enough."""
    folder = tmp_path / "theirs"
    run_git(["init", "-q", str(folder)], where="theirs")
    files = {"a/file": b"a" * 600, "b/file": b"b" * 600}
    commit = Repository(folder).write_commit("Change", files, parent=None)
    Repository(folder).git("update-ref", "refs/heads/main", commit)
    monkeypatch.setattr(git_source, "MOST_BYTES", 1000)
    tree = open_commit(folder.as_uri(), commit, tmp_path / "cache", None)
    assert tree.read("a/file") == b"a" * 600
    with pytest.raises(UcpError, match=r"the files of file:.* are too large"):
        tree.read("b/file")


def test_an_error_of_a_fetch_names_the_repository_instead_of_the_cache(
    tmp_path: Path, home: Path
) -> None:
    url = (tmp_path / "gone.git").as_uri()
    with pytest.raises(UcpError, match=url):
        open_commit(url, "a" * 40, tmp_path / "cache", None)


@pytest.mark.parametrize("lost", ["objects", "HEAD", "commit", "tree", "blob"])
def test_a_damaged_copy_is_fetched_again_by_the_next_command(
    lost: str, tmp_path: Path, home: Path
) -> None:
    """After a power failure, or a kill while git creates the copy."""
    folder, cache = tmp_path / "theirs", tmp_path / "cache"
    run_git(["init", "-q", str(folder)], where="theirs")
    commit = Repository(folder).write_commit("Change", {"a/file": b"a"}, parent=None)
    Repository(folder).git("update-ref", "refs/heads/main", commit)
    open_commit(folder.as_uri(), commit, cache, None)
    (copy,) = (cache / "sources").iterdir()
    if lost == "objects":
        shutil.rmtree(copy / "objects")
    elif lost == "HEAD":
        (copy / "HEAD").write_text("")
    else:
        name = {"commit": commit, "tree": f"{commit}^{{tree}}", "blob": f"{commit}:a/file"}[lost]
        id = Repository(copy).git("rev-parse", name).decode().strip()
        loose = copy / "objects" / id[:2] / id[2:]
        loose.chmod(0o600)
        loose.write_text("")
    with pytest.raises(UcpError, match="in the cache was damaged") as caught:
        open_commit(folder.as_uri(), commit, cache, None).read("a/file")
    assert "run the command again" in (caught.value.next or "")
    assert open_commit(folder.as_uri(), commit, cache, None).read("a/file") == b"a"


def test_a_repository_without_branches_is_not_said_to_lack_a_branch(
    tmp_path: Path, home: Path
) -> None:
    folder = tmp_path / "empty"
    run_git(["init", "-q", str(folder)], where="empty")
    with pytest.raises(UcpError, match="has no branches") as caught:
        find_commit(folder.as_uri(), None, None)
    assert "push a commit" in (caught.value.next or "")


def test_paths_may_lead_through_a_link_to_a_folder(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "theirs"
    (folder / "real/below").mkdir(parents=True)
    (folder / "real/below/a.yaml").write_text("a: 1\n")
    for link, target in {"near": "real", "up": "..", "out": "../elsewhere"}.items():
        (folder / link).symlink_to(target)
    person = ("-c", "user.name=any", "-c", "user.email=any@example.org")
    for arguments in (("init", "-q"), ("add", "--all"), ("commit", "-q", "-m", "x")):
        subprocess.run(["git", "-C", str(folder), *person, *arguments], check=True)
    commit = Repository(folder).resolve("HEAD")
    assert commit
    tree = open_commit(folder.as_uri(), commit, tmp_path / "cache", None)
    assert tree.names("near") == ["below/a.yaml"]
    assert tree.names("near/below") == ["a.yaml"]
    assert tree.read("near/below/a.yaml") == b"a: 1\n"
    # Nothing is found twice.
    assert tree.names("") == ["real/below/a.yaml"]
    assert tree.read("up/theirs/real/below/a.yaml") is None
