"""Errors in a workspace that another user's command wrote."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_ucp.process import place_of_sudo

NOBODY = pwd.getpwnam("nobody")
AS_NOBODY = """\
import os, sys
from pathlib import Path
# Everything that the commands import: this user may be unable to read the installation.
import k8s_ucp.cli.lifecycle.stop, k8s_ucp.cli.inspection.status
import k8s_ucp.git.tracked, k8s_ucp.preflight.foreign_workspace
from k8s_ucp.cli.failures.report import report_failure
from k8s_ucp.cli.main import run
from k8s_ucp.errors import UcpError
import k8s_ucp.cli.failures.bug_report
uid = int(sys.argv[1])
os.setresuid(uid, uid, uid)
if sys.argv[2] == "write":
    try:
        Path(sys.argv[3]).write_text("x")
    except OSError as error:
        sys.exit(report_failure(error, [], None, {}))
sys.exit(run(sys.argv[2:]))
"""
RESTARTED = """\
import sys
from pathlib import Path
import k8s_ucp.process.owner as owner
from k8s_ucp.cli.command import Invocation
owner.sys.executable, owner.sys.orig_argv = "/bin/sh", ["python", "-c", "id -u"]
owner.act_as_owner.__kwdefaults__["needed"] = []
Invocation(folder=Path(sys.argv[1])).workspace
print("nothing changed")
"""
only_root = pytest.mark.skipif(os.getuid() != 0, reason="only root makes files of two users")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can reach, owned by the user nobody."""
    made = Path(tempfile.mkdtemp(prefix="ucp-test-", dir="/tmp"))
    made.chmod(0o755)
    os.chown(made, NOBODY.pw_uid, NOBODY.pw_gid)
    yield made
    shutil.rmtree(made)


def called(script: str, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


@only_root
@pytest.mark.parametrize("command", ["status", "stop"])
def test_state_of_another_user_is_refused_with_the_command_that_transfers_it(
    folder: Path, command: str
) -> None:
    (folder / "ucp.yaml").touch()
    os.chown(folder / "ucp.yaml", NOBODY.pw_uid, -1)
    (folder / ".ucp").mkdir(0o700)
    (folder / "gitops").mkdir()
    ended = called(AS_NOBODY, NOBODY.pw_uid, "--workspace", folder, command)
    assert ended.returncode == 1
    assert f"{folder}/.ucp belongs to root, and nobody can't read it" in ended.stderr
    assert f"sudo ucp stop --workspace {folder}, then: sudo chown -R nobody: " in ended.stderr
    assert f"nobody: {folder}/.ucp {folder}/gitops;" in ended.stderr


@only_root
def test_denied_access_below_the_state_names_the_owner(folder: Path) -> None:
    state = folder / ".ucp"
    state.mkdir(0o700)
    os.chown(state, NOBODY.pw_uid, -1)
    (state / "demo").mkdir(0o700)
    ended = called(AS_NOBODY, NOBODY.pw_uid, "write", state / "demo" / "journal.json")
    assert ended.returncode == 1
    assert "Permission denied" in ended.stderr
    assert f"sudo chown -R nobody: {state / 'demo'}; or run ucp as root" in ended.stderr


@only_root
def test_first_command_under_sudo_acts_as_the_owner_of_the_folder(folder: Path) -> None:
    ended = called(RESTARTED, folder / "new", SUDO_UID=str(NOBODY.pw_uid))
    assert ended.stdout.split() == [str(NOBODY.pw_uid)], ended.stderr
    assert f"acting as nobody, to whom {folder} belongs" in ended.stderr
    assert called(RESTARTED, folder, SUDO_UID="0").stdout == "nothing changed\n"
    (folder / ".ucp").mkdir()  # A workspace of root's stays one.
    assert called(RESTARTED, folder, SUDO_UID=str(NOBODY.pw_uid)).stdout == "nothing changed\n"


def test_folder_of_another_user_than_that_of_sudo_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert place_of_sudo(tmp_path) is None
    monkeypatch.setenv("SUDO_UID", str(os.getuid() + 1))
    assert place_of_sudo(tmp_path) is None
    monkeypatch.setenv("SUDO_UID", str(os.getuid()))
    assert place_of_sudo(tmp_path) == tmp_path
    assert place_of_sudo(tmp_path / "new" / "one") == tmp_path
