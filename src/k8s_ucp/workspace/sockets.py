"""The folder for a topology's sockets: short, private, and the same for every login.

Never below a login's folder: /run/user/UID is deleted with the last session, and the sockets with
it, while the processes keep running.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from pathlib import Path

from k8s_ucp.errors import UcpError
from k8s_ucp.workspace.files import FOLDER_MODE, make_private_folder, write_private_file
from k8s_ucp.workspace.folders import StateFolder, digest
from k8s_ucp.workspace.records import parse_json

_PARENTS = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 (private 0700 folders below them)
"""Parents of folders for sockets: they exist on every machine, whoever is logged in."""


def runtime_folder(root: Path, state: StateFolder) -> Path:
    """The folder that a start recorded, or else the one that it will use. root: the workspace."""
    recorded = _read_record(state) or socket_folder_of_config(state)
    return recorded or _users_folder(_PARENTS[0]) / _name(root, state)


def settle_runtime_folder(root: Path, state: StateFolder) -> Path:
    """Create and record the folder for sockets. Raises UcpError if none can be created.

    A path that another user took first is skipped.
    """
    recorded = _read_record(state)
    candidates = [recorded] if recorded else []
    candidates += [_users_folder(each) / _name(root, state) for each in _PARENTS]
    for folder in candidates:
        try:
            make_socket_folder(folder)
        except UcpError:
            continue
        break
    else:
        import tempfile

        try:
            parent = Path(tempfile.mkdtemp(prefix=f"ucp-{os.getuid()}-", dir=_PARENTS[0]))
        except OSError as error:
            raise UcpError(
                f"failed to create a folder for sockets in {_PARENTS[0]}: {error.strerror}",
                next=f"make {_PARENTS[0]} writable for every user (mode 1777)",
            ) from error
        folder = parent / _name(root, state)
        make_socket_folder(folder)
    if folder != recorded:
        make_private_folder(state.root)
        note = {"state": state.identifier, "folder": str(folder)}
        write_private_file(state.runtime_record, json.dumps(note) + "\n")
    return folder


def _users_folder(parent: Path) -> Path:
    return parent / f"ucp-{os.getuid()}"


def _name(root: Path, state: StateFolder) -> str:
    """Different workspaces get different folders."""
    return digest(f"{root}\0{state.root.name}".encode(), 12)


def make_socket_folder(folder: Path) -> None:
    """Create a folder for sockets and its parent, both 0700 and owned by the user.

    Raises UcpError if that fails: in /tmp, any user may have created either of them first.
    """
    for each in (folder.parent, folder):
        try:
            with contextlib.suppress(FileExistsError):
                each.mkdir(mode=FOLDER_MODE)
            found = each.lstat()
            # Checked before any change: a link may lead to another user's folder.
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                raise UcpError(
                    f"{each}, needed for sockets, is not a folder owned by this user",
                    next=(
                        f"have it removed (ls -ld {each} shows the owner), then run the "
                        "command again"
                    ),
                )
            if stat.S_IMODE(found.st_mode) != FOLDER_MODE:
                each.chmod(FOLDER_MODE)
        except OSError as error:
            raise UcpError(
                f"failed to create the folder {each} for sockets: {error.strerror}",
                next=f"check owner and mode: ls -ld {each.parent}",
            ) from error


def _read_record(state: StateFolder) -> Path | None:
    """The folder that a start recorded; None if there is none, or the state was moved or copied."""
    try:
        note = parse_json(state.runtime_record.read_text("utf-8"))
        if note["state"] != state.identifier:
            return None
        folder = Path(note["folder"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return folder if folder.is_absolute() else None


def socket_folder_of_config(state: StateFolder) -> Path | None:
    """Folder of the socket in this state folder's supervisord configuration.

    Versions that wrote no record used the folder of the caller's login.
    """
    try:
        text = state.supervisor_config.read_text("utf-8")
    except (OSError, ValueError):
        return None
    found = re.search(r"^file=(/.+)/supervisor\.sock$", text, re.MULTILINE)
    ours = f"\nidentifier={state.identifier}\n" in text
    return Path(found[1].replace("%%", "%")) if found and ours else None
