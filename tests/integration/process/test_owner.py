"""A command that root runs on a folder of another user continues as its owner."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root acts for others")
NOBODY = pwd.getpwnam("nobody")
SCRIPT = """\
import json, os, sys
from pathlib import Path
import k8s_ucp.process.owner as owner
folder, needed = Path(sys.argv[1]), Path(sys.argv[2])
# What is begun anew is this, as an installation in root's home can't be read by anybody else.
owner.sys.executable, owner.sys.orig_argv = "/bin/sh", ["python", *sys.argv[3:]]
try:
    owner.act_as_owner(folder, lambda text: print(text, flush=True), needed=[needed])
except owner.UcpError as error:
    print(error, flush=True)
print("nothing changed" if os.getuid() == 0 else "somebody else")
"""


def called(folder: Path, needed: Path, *words: str) -> list[str]:
    """Output of a command that root runs on a folder. words: of the restarted shell."""
    environment = {**os.environ, "XDG_CACHE_HOME": "/cache", "UCP_CACHE_DIR": "/kept"}
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT, folder, needed, *words],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return said.stdout.splitlines()


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder that belongs to the user nobody."""
    folder = tmp_path / ".ucp"
    folder.mkdir()
    os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
    return folder


def test_command_is_restarted_as_the_owner(theirs: Path) -> None:
    tell = 'id -u; id -g; id -G; echo "$HOME $USER ${XDG_CACHE_HOME-none} $UCP_CACHE_DIR $1"'
    said = called(theirs, Path("/bin/sh"), "-c", tell, "sh", "--yes")
    assert said[0] == f"acting as nobody, to whom {theirs} belongs"
    uid, gid = str(NOBODY.pw_uid), str(NOBODY.pw_gid)
    assert said[1:3] == [uid, gid]
    assert set(said[3].split()) == {gid}
    assert said[4] == f"{NOBODY.pw_dir} nobody none /kept --yes"


def test_owner_who_can_not_read_the_installation_is_reported(theirs: Path, tmp_path: Path) -> None:
    private = tmp_path / "module.py"
    private.touch(0o600)
    first, second, *_ = called(theirs, private, "-c", "echo begun")
    assert f"{theirs} belongs to nobody, who has no right to read {private}" in first
    assert "run the command as nobody" in second


@pytest.mark.parametrize("to", ["root's", "another's"])
def test_link_does_not_choose_the_user_as_whom_root_acts(to: str, tmp_path: Path) -> None:
    theirs, link = tmp_path / "theirs", tmp_path / ".ucp"
    theirs.mkdir()
    uid = 0 if to == "root's" else pwd.getpwnam("daemon").pw_uid
    os.chown(theirs, uid, -1)
    link.symlink_to(theirs)
    os.lchown(link, NOBODY.pw_uid, NOBODY.pw_gid)
    first, second, *_ = called(link, Path("/bin/sh"), "-c", "echo begun")
    assert (
        f"is a symbolic link, created by user {NOBODY.pw_uid}, to a folder of user {uid}" in first
    )
    assert "ls -ld" in second
    os.chown(theirs, NOBODY.pw_uid, -1)
    assert called(link, Path("/bin/sh"), "-c", "echo begun")[1:] == ["begun"]


@pytest.mark.parametrize("whose", ["root's", "absent", "of no user here"])
def test_root_stays_root_if_no_other_user_owns_the_folder(whose: str, tmp_path: Path) -> None:
    folder = tmp_path / ".ucp"
    if whose != "absent":
        folder.mkdir()
    if whose == "of no user here":
        users = {each.pw_uid for each in pwd.getpwall()}
        os.chown(folder, next(uid for uid in range(70000, 80000) if uid not in users), 0)
    assert called(folder, Path("/bin/sh"), "-c", "echo begun") == ["nothing changed"]
