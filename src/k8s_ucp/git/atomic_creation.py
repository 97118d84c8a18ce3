"""Moves a new repository into place with one rename after git has completely created it.

The process may be killed, or the disk be full, at any moment: what is in place is complete, or is
recognized as a partial repository and replaced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from k8s_ucp.errors import UcpError, advise_space
from k8s_ucp.git.leftovers import UNFINISHED
from k8s_ucp.git.settings import FILE
from k8s_ucp.locks import folder_locked

_TAKEN = (errno.ENOTEMPTY, errno.EEXIST)


def create_repository_at(
    target: Path, make: Callable[[Path], Path], finish: Callable[[Path], None]
) -> bool:
    """Create a repository at `target`; an existing one is kept unless it is incomplete.

    make: creates one in a folder that doesn't exist yet, and returns its git folder. finish:
    prepares it before it is moved. Returns whether the repository is new. Raises UcpError if there
    is something else at `target`.
    """
    if target.is_file() or _has_history(target):
        _refuse_broken(target)
        return False
    with _scratch(target) as scratch:
        made = make(scratch / "made")
        if _is_occupied(target) and not _move_half(target, made, scratch / "half"):
            _refuse_broken(target)
            return False
        finish(made)
        try:
            made.rename(target)
        except OSError as error:
            # Another process created the repository in the meantime, and it is complete.
            if error.errno not in _TAKEN:
                raise
            return False
    return True


def _move_half(target: Path, made: Path, away: Path) -> bool:
    """Move an incomplete copy of `made` away; False if there is something else at `target`."""
    try:
        # If two processes replace it, the second one must check what the first one put there.
        with folder_locked(target):
            if not _is_half_of(target, made):
                return False
            target.rename(away)
    except NotADirectoryError:
        return False
    except FileNotFoundError:
        pass
    return True


@contextlib.contextmanager
def _scratch(target: Path) -> Iterator[Path]:
    """A temporary folder on the same file system as `target`."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=target.parent))
    except OSError as error:
        if advise_space(error):
            raise
        raise UcpError(
            f"failed to create a git repository in {target.parent}: {error.strerror}",
            next=f"make {target.parent} writable and run the command again",
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _has_history(git_folder: Path) -> bool:
    """The repository contains objects or refs, so it has been used."""
    inside = (git_folder / "objects", git_folder / "refs")
    return (git_folder / "packed-refs").exists() or any(
        files for folder in inside for _, _, files in os.walk(folder)
    )


def _is_occupied(target: Path) -> bool:
    return os.path.lexists(target) and not (target.is_dir() and not any(target.iterdir()))


def _refuse_broken(target: Path) -> None:
    """Git would find a repository in a parent folder instead, and change that one."""
    if target.is_dir() and not (target / "HEAD").is_file():
        raise UcpError(
            f"{target} exists and is neither empty nor a git repository",
            next=f"move {target} away and run the command again",
        )


def _is_half_of(left: Path, made: Path) -> bool:
    """`left` contains only part of what the newly created repository `made` contains."""
    if not left.is_dir() or left.is_symlink() or left.stat().st_uid != os.getuid():
        return False
    return _adds_nothing(left, made) and not _adds_nothing(made, left)


def _adds_nothing(left: Path, made: Path) -> bool:
    """Every folder and file of `left` is also in `made`, or is the beginning of one there."""
    for each in left.rglob("*"):
        name = each.relative_to(left).as_posix()
        if name.removeprefix(".").startswith(FILE) or _is_probe(name, each):
            continue
        same = made / name.removesuffix(".lock")
        if each.is_symlink() or each.is_dir():
            if each.is_symlink() or not same.is_dir():
                return False
        elif not same.is_file() or not same.read_bytes().startswith(each.read_bytes()):
            return False
    return True


def _is_probe(name: str, path: Path) -> bool:
    """A temporary file that git creates to test whether symbolic links are supported."""
    if not (len(name) == 7 and name[0] == "t" and name.isalnum()):
        return False
    if path.is_symlink():
        return path.readlink() == Path("testing")
    return path.stat().st_size == 0
