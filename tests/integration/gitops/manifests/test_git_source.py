"""Files of others' git repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.git.repository import Repository, run_git
from k8s_ucp.gitops.manifests import git_source
from k8s_ucp.gitops.manifests.git_source import open_commit


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
