"""Explains a workspace that another user's command wrote, such as `sudo ucp start`."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.workspace import Workspace

_WRITTEN = (".ucp", "gitops", "creds", "ucp.yaml")
"""What commands write to a workspace."""


def refuse_unreadable(workspace: Workspace) -> None:
    """Refuse a workspace whose state belongs to another user and can't be read. Raises UcpError."""
    states = workspace.states
    try:
        owner = states.stat().st_uid
    except OSError:
        return
    if owner == os.geteuid() or os.access(states, os.R_OK | os.X_OK):
        return
    raise UcpError(
        f"{states} belongs to {user_name(owner)}, and {user_name(os.geteuid())} can't read it: "
        f"commands of {user_name(owner)} wrote this workspace",
        next=_transfer(workspace.root, owner),
    )


def advise_ownership(error: BaseException | None) -> str | None:
    """Advice for a denied access below a workspace's folder that belongs to another user."""
    if not isinstance(error, PermissionError) or not isinstance(error.filename, str):
        return None
    path = Path(error.filename).absolute()
    for each in (path, *path.parents):
        if each.name in _WRITTEN[:3]:
            foreign = _topmost_foreign(path, each)
            if foreign is None:
                return None
            return _transfer(each.parent, foreign.lstat().st_uid, foreign)
    return None


def _topmost_foreign(path: Path, top: Path) -> Path | None:
    """The topmost of `path` and its folders, up to `top`, that belongs to another user."""
    found = None
    for each in (path, *path.parents):
        try:
            if each.lstat().st_uid != os.geteuid():
                found = each
        except OSError:
            continue  # It doesn't exist, or a folder above it can't be read.
        if each == top:
            break
    return found


def _transfer(root: Path, owner: int, also: Path | None = None) -> str:
    """The commands that give to this user what the owner has in a workspace.

    also: something of the owner's in there.
    """
    own = [root / name for name in _WRITTEN if _belongs(root / name, owner)]
    if also and not any(map(also.is_relative_to, own)) and _belongs(also, owner):
        own.append(also)
    name, me = user_name(owner), user_name(os.geteuid())
    if not own:
        return f"run the command as {name}"
    stop = "sudo ucp stop" if owner == 0 else f"ucp stop (as {name})"
    take = command_line("sudo", "chown", "-R", f"{me}:", *own)
    return f"{stop}, then: {take}; or run ucp as {name} here"


def _belongs(path: Path, owner: int) -> bool:
    """Links are left out: chown would change what they lead to."""
    try:
        return path.lstat().st_uid == owner and not path.is_symlink()
    except OSError:
        return False


def user_name(uid: int) -> str:
    """Name of a user, or its id if this machine doesn't know it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
