"""State and bare repositories that came with a clone could choose programs, so they are refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from k8s_ucp.cli.command import Invocation
from k8s_ucp.errors import UcpError
from k8s_ucp.git.tracked import tracked_state

STATE = ".ucp/demo/clusters/demo-core/kwokctl"
HOOK = "gitops/demo/core.git/hooks/post-receive"


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True)


def write(root: Path, *paths: str) -> None:
    for each in paths:
        (root / each).parent.mkdir(parents=True, exist_ok=True)
        (root / each).write_text("#!/bin/sh\n")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A clone with valid files of its own, and with those that a start creates."""
    git(tmp_path, "init", "-q")
    write(tmp_path, "README.md", "gitops/README.md", "k8s_ucp/ucp.py")
    git(tmp_path, "add", "--all")
    write(tmp_path, STATE, HOOK, "gitops/demo/core/ucp.yaml")
    return tmp_path


@pytest.mark.parametrize("path", [STATE, HOOK])
def test_state_that_is_tracked_by_git_is_refused(workspace: Path, path: str) -> None:
    assert Invocation(workspace).workspace.root == workspace
    git(workspace, "add", "--force", path)
    folder = {STATE: ".ucp", HOOK: "gitops/demo/core.git"}[path]
    with pytest.raises(UcpError, match="came with a git repository") as refused:
        assert Invocation(workspace).workspace
    assert refused.value.next.startswith(f"git -C {workspace} rm -r {folder} ")
    # Both ways that the error proposes solve the problem.
    git(workspace, "rm", "-r", "--cached", folder)
    assert Invocation(workspace).workspace.root == workspace
    assert (workspace / path).exists()
    git(workspace, "add", "--force", path)
    git(workspace, "rm", "-r", "-f", folder)
    assert Invocation(workspace).workspace.root == workspace
    assert not (workspace / folder).exists()


@pytest.mark.parametrize("link", [".ucp", "gitops", "gitops/demo", "gitops/demo/core.git"])
def test_tracked_link_to_the_state_is_refused_too(tmp_path: Path, link: str) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, "elsewhere/demo/core.git/HEAD")
    (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / "elsewhere")
    git(tmp_path, "add", "--all")
    assert tracked_state(tmp_path) == [link]


def test_workspace_below_the_top_or_without_a_repository_is_checked(
    tmp_path: Path, workspace: Path
) -> None:
    below = tmp_path / "below"
    write(below, STATE)
    assert tracked_state(below) == []
    git(workspace, "add", "--force", str(below))
    assert tracked_state(below) == [".ucp"]
