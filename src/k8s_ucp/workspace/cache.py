"""The user's cache, shared by all workspaces."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from k8s_ucp.errors import UcpError

UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors for which `advise_writable` is the advice; EPERM is that of an immutable file."""


def home_folder(instead: str) -> Path:
    """The user's home. instead: alternative variables. Raises UcpError if there is none.

    There is none in a container that runs as an unknown user, for example.
    """
    try:
        return Path.home()
    except RuntimeError as error:
        raise UcpError(
            f"user {os.getuid()} has no home folder",
            next=f"set HOME or {instead} to a writable folder",
        ) from error


def cache_folder() -> Path:
    """The user's cache, shared by all workspaces: $UCP_CACHE_DIR, or else the XDG cache folder.

    Absolute, since programs that run in other folders get paths in it. Raises UcpError if neither
    is known.
    """
    named = os.environ.get("UCP_CACHE_DIR")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    folder = Path(base) if base else home_folder("UCP_CACHE_DIR") / ".cache"
    return folder.absolute() / "k8s-ucp"


def advise_writable(path: Path) -> str:
    """Advice for a file or folder of ours that isn't writable; it may be in the cache."""
    with contextlib.suppress(UcpError):
        if path.is_relative_to(cache_folder()):
            return "set UCP_CACHE_DIR to a writable folder"
    return "make the workspace writable, or choose another one with --workspace DIR"
