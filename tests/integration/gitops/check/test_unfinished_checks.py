"""Pushes whose check did not finish, with a program in place of the check."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from k8s_ucp.gitops.check_hook import FINDINGS, ensure_check_hook

TIMED_OUT = ".: the check timed out after 50 s"
IDENTITY = {
    f"GIT_{role}_{part}": "x" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")
}


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words],
        env={**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    return f"{done.stderr}\nexit {done.returncode}"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with one pushed commit and another one to push, and a remote without a hook."""
    bare, clone = tmp_path / "apps.git", tmp_path / "clone"
    _git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    _git(tmp_path, "clone", "--quiet", str(bare), str(clone))
    _git(clone, "checkout", "--quiet", "-b", "main")
    for name in ("one", "two"):
        (clone / name).write_text(name)
        _git(clone, "add", name)
        _git(clone, "commit", "--quiet", "-m", name)
        if name == "one":
            _git(clone, "push", "--quiet", "origin", "main")
    return clone


def _check_by(tmp_path: Path, script: str, name: str = "apps") -> None:
    """Replace the check of the remote's hook by a shell script, which gets the same arguments."""
    program = tmp_path / "check"
    program.write_text(f"#!/bin/sh\n{script}\nexit {FINDINGS}\n")
    program.chmod(0o755)
    ensure_check_hook(tmp_path / "apps.git", name, python=program, kustomize=program)


@pytest.mark.parametrize("words", [TIMED_OUT, ".: failed to check: KeyError: 'x' [check-failed]"])
def test_a_push_says_that_neither_it_nor_the_commit_before_could_be_checked(
    clone: Path, tmp_path: Path, words: str
) -> None:
    _check_by(tmp_path, f'echo "{words}"')
    said = _git(clone, "push", "--quiet", "origin", "main")
    assert "this push was not checked, like the commit before it" in said
    assert words in said
    assert said.endswith("exit 0")


def test_a_push_whose_check_alone_timed_out_is_refused(clone: Path, tmp_path: Path) -> None:
    _check_by(tmp_path, f'case "$*" in */new*) echo "{TIMED_OUT}" ;; *) exit 0 ;; esac')
    said = _git(clone, "push", "--quiet", "origin", "main")
    assert "this push is rejected because it adds errors" in said
    assert said.endswith("exit 1")


def test_nothing_is_said_about_errors_that_the_commit_before_has(
    clone: Path, tmp_path: Path
) -> None:
    _check_by(tmp_path, 'echo "apps/web/base: it has an error [image-untagged]"')
    said = _git(clone, "push", "--quiet", "origin", "main")
    assert "not checked" not in said
    assert said.endswith("exit 0")


def test_a_push_is_refused_if_the_folder_of_its_check_is_full(clone: Path, tmp_path: Path) -> None:
    """It was accepted: the changed paths could not be written, so none seemed to be changed."""
    bare = tmp_path / "apps.git"
    _git(clone, "push", "--quiet", "origin", "main:pushed")
    _check_by(tmp_path, "exit 0", name="core")
    line = "refs/heads/main refs/heads/pushed refs/heads/main\n"
    done = subprocess.run(
        # A limit of 0 bytes for files stands in for the full disk.
        ["sh", "-c", """trap '' XFSZ; ulimit -f 0; exec "$0" """, "hooks/pre-receive"],
        cwd=bare,
        input=line,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "can't be written" in done.stderr
    assert "next: free disk space" in done.stderr
    assert done.returncode == 1


def test_a_push_is_refused_if_the_errors_of_its_check_are_lost(clone: Path, tmp_path: Path) -> None:
    """Such as on a full disk; without errors it would not have failed."""
    _check_by(tmp_path, "")
    said = _git(clone, "push", "--quiet", "origin", "main")
    assert "can't be written" in said
    assert said.endswith("exit 1")


def test_a_push_is_checked_although_the_temporary_folder_is_missing(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "deleted"))
    _check_by(tmp_path, 'case "$*" in */new*) echo ".: an error" ;; *) exit 0 ;; esac')
    said = _git(clone, "push", "--quiet", "origin", "main")
    assert "this push is rejected because it adds errors" in said
