"""Lists of changed paths that pushes leave for the refresh: complete, and limited in size."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from k8s_ucp.gitops.refresh import EVERYTHING, _take_notes, ensure_hook

PUSH = b"1111111 2222222 refs/heads/main\n"


class Remote:
    """Folder of a bare repository with our hook, and a git whose output a test sets."""

    def __init__(self, folder: Path) -> None:
        self.bare = folder / "apps.git"
        (self.bare / "hooks").mkdir(parents=True)
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.notes = self.bare / "ucp-refresh"
        # No program reads the notes: the core is down.
        nowhere = folder / "nowhere"
        assert ensure_hook(self.bare, python=nowhere, kubeconfig=nowhere) is None

    def git(self, script: str) -> None:
        program = self.programs / "git"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def push(self) -> subprocess.Popen[bytes]:
        hook = subprocess.Popen(
            [self.bare / "hooks/post-receive"],
            cwd=self.bare,
            env={"PATH": f"{self.programs}:/usr/bin:/bin"},
            stdin=subprocess.PIPE,
        )
        assert hook.stdin is not None
        hook.stdin.write(PUSH)
        hook.stdin.close()
        return hook


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path)


def test_read_during_a_push_loses_no_path(remote: Remote) -> None:
    remote.git(f"echo first\ntouch {remote.bare}/begun\nsleep 1\necho second")
    hook = remote.push()
    until = time.monotonic() + 60
    while not (remote.bare / "begun").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    seen = list(_take_notes(remote.notes))
    assert hook.wait(60) == 0
    seen += _take_notes(remote.notes)
    assert seen == ["first", "second"]
    assert list(_take_notes(remote.notes)) == []


def test_notes_are_limited_while_the_core_is_down(remote: Remote) -> None:
    remote.git("echo apps/echo/base/deployment.yaml")
    for _ in range(120):
        assert remote.push().wait(60) == 0
    assert len(list(remote.notes.iterdir())) <= 60
    assert EVERYTHING in set(_take_notes(remote.notes)), "what was left out is no news to anybody"
    assert list(_take_notes(remote.notes)) == []


def test_push_of_very_many_paths_counts_as_a_push_of_everything(remote: Remote) -> None:
    remote.git("yes apps/echo/base/deployment.yaml | head -n 100000")
    assert remote.push().wait(60) == 0
    assert sum(each.stat().st_size for each in remote.notes.iterdir()) < 100
    assert list(_take_notes(remote.notes)) == [EVERYTHING]


def test_push_that_git_can_not_describe_counts_as_a_push_of_everything(remote: Remote) -> None:
    remote.git("echo part; exit 1")
    assert remote.push().wait(60) == 0
    assert list(_take_notes(remote.notes)) == [EVERYTHING]


def test_notes_of_an_older_hook_are_read(remote: Remote) -> None:
    remote.notes.mkdir()
    (remote.notes / "paths").write_text('a/b\n"odd\\303"\n')
    assert list(_take_notes(remote.notes)) == ["a/b", EVERYTHING]
