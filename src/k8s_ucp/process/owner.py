"""Acts as a folder's owner, since what root creates belongs to root, or is in root's home."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from k8s_ucp.errors import UcpError, command_line

NEEDED = (Path(__file__), Path(os.__file__), Path(sys.executable))
"""What the command needs: our modules, Python's, and Python itself."""
_OF_ROOT = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR")


def place_of_sudo(folder: Path) -> Path | None:
    """The folder, or the one in which it would be created, if it belongs to the user of sudo.

    So a first command under sudo leaves nothing of root's in a user's folder. Other folders are
    none of sudo's: root without sudo, as in a container, stays root.
    """
    caller = os.environ.get("SUDO_UID", "")
    for each in (folder, *folder.parents):
        try:
            return each if str(each.stat().st_uid) == caller else None
        except OSError:
            continue
    return None


def act_as_owner(
    folder: Path, say: Callable[[str], None], *, needed: Sequence[Path] = NEEDED
) -> None:
    """If root runs this command, execute it again as the folder's owner.

    Does nothing for other users, for a folder that belongs to root or doesn't exist, and if this
    machine doesn't know the owner, as in a container. say: takes the message about the change of
    user. needed: what the owner must be able to read. Raises UcpError if it can't act as the owner.
    """
    if os.geteuid() != 0:
        return
    try:
        uid, maker = folder.stat().st_uid, folder.lstat().st_uid
    except OSError:
        return
    if maker not in (0, uid):
        raise UcpError(
            f"{folder} is a symbolic link, created by user {maker}, to a folder of user {uid}",
            next=f"{command_line('ls', '-ld', folder)} shows where it leads; have it removed",
        )
    try:
        owner = pwd.getpwuid(uid)
    except KeyError:
        return
    if owner.pw_uid == 0:
        return
    name = owner.pw_name
    try:
        os.initgroups(name, owner.pw_gid)
        os.setresgid(owner.pw_gid, owner.pw_gid, owner.pw_gid)
        os.setresuid(owner.pw_uid, owner.pw_uid, owner.pw_uid)
    except OSError as error:
        raise UcpError(
            f"{folder} belongs to {name}, and root can't act as {name} here: {error.strerror}",
            next=f"run the command as {name}",
        ) from error
    unreadable = [each for each in needed if not os.access(each, os.R_OK)]
    if unreadable:
        raise UcpError(
            f"{folder} belongs to {name}, who has no right to read {unreadable[0]}",
            next=f"run the command as {name}, from an installation that {name} can read",
        )
    say(f"acting as {name}, to whom {folder} belongs")
    environment = {key: value for key, value in os.environ.items() if key not in _OF_ROOT}
    environment |= {"HOME": owner.pw_dir, "USER": name, "LOGNAME": name}
    # A new process keeps nothing that root read or set up, and may read its own /proc entries.
    arguments = [sys.executable, *sys.orig_argv[1:]]
    os.execve(sys.executable, arguments, environment)  # noqa: S606 (this very command)
