"""Files of others' git repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.git.repository import Repository, run_git
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


def test_a_repository_without_branches_is_not_said_to_lack_a_branch(
    tmp_path: Path, home: Path
) -> None:
    folder = tmp_path / "empty"
    run_git(["init", "-q", str(folder)], where="empty")
    with pytest.raises(UcpError, match="has no branches") as caught:
        find_commit(folder.as_uri(), None, None)
    assert "push a commit" in (caught.value.next or "")
