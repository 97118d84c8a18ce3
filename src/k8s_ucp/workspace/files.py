"""Files and folders that only the user can read, written so that a power loss can't empty them."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from k8s_ucp.errors import UcpError, advise_space, command_line
from k8s_ucp.workspace.cache import UNWRITABLE, advise_writable

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def make_private_folder(folder: Path) -> None:
    """Create `folder` and its parents; the folder itself becomes 0700. Raises UcpError.

    A link to a folder is refused, unless that is 0700.
    """
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        # Commands that only look work where nothing can be written, as on a disk with errors.
        if stat.S_IMODE(mode := folder.stat().st_mode) != FOLDER_MODE:
            if folder.is_symlink():
                # It may lead to a folder that other programs need as it is.
                resolved = folder.resolve()
                raise UcpError(
                    f"{folder} must be private, but it is a symbolic link to a folder with mode "
                    f"{stat.S_IMODE(mode):04o}: {resolved}",
                    next=f"if nothing else uses it: {command_line('chmod', 700, resolved)}; "
                    f"otherwise: {command_line('rm', folder)}",
                )
            folder.chmod(FOLDER_MODE)
    except OSError as error:
        raise UcpError(
            f"failed to create the folder {folder}: {error.strerror}",
            next=advise_space(error) or advise_writable(folder),
        ) from error


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Report a failure to write a file of the workspace, with what to do. Raises UcpError."""
    try:
        yield
    except OSError as error:
        advice = advise_writable(path) if error.errno in UNWRITABLE else None
        raise UcpError(
            f"failed to write {path}: {error.strerror}", next=advise_space(error) or advice
        ) from error


def write_private_file(path: Path, content: str | bytes, *, replace: bool = True) -> None:
    """Write a file that only the user can read, atomically, even if power is lost.

    content: text is written as UTF-8. replace: overwrite an existing file; otherwise it stays
    unchanged.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        # In a folder of others, a link with this name could lead to any file.
        temporary.unlink(missing_ok=True)
        _write_through(temporary, data)
        if replace:
            temporary.replace(path)
        else:
            _link_new(temporary, path, data)
            temporary.unlink()
    except BaseException as error:
        if isinstance(error, OSError) and not error.filename:
            error.filename = str(path)  # Errors of writes, such as a full disk, have no file name.
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_private_json(path: Path, content: object, *, replace: bool = True) -> None:
    """As `write_private_file`, in JSON; dataclasses become objects of their fields."""
    text = json.dumps(content, indent=1, default=asdict) + "\n"
    write_private_file(path, text, replace=replace)


def read_regular_file(path: Path, most: int) -> bytes:
    """The first `most` bytes. In a folder of others, any path may be a link to an endless device.

    Raises OSError, also if it isn't a regular file.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    with path.open("rb") as stream:
        return stream.read(most)


class ExposedFile(UcpError):
    """A file with a secret that other users can read."""


def read_private_text(path: Path, most: int) -> str:
    """The text of a file with a secret, of at most `most` bytes.

    Raises ExposedFile, OSError, or ValueError with a reason that does not quote the content.
    """
    if path.stat().st_mode & 0o077:
        raise ExposedFile(f"other users can read {path}", next=command_line("chmod", 600, path))
    data = read_regular_file(path, most + 1)
    if len(data) > most:
        raise ValueError(f"it is longer than {most} bytes")
    try:
        # Editors on other systems write a byte order mark.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is not valid UTF-8") from None


def _write_through(path: Path, data: bytes) -> None:
    """Write a new file and sync to disk: one renamed without can be empty after a power loss."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _link_new(temporary: Path, path: Path, data: bytes) -> None:
    """Create `path` unless it exists."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return
    except OSError:
        # A file system without hard links, such as FAT or a network share: not atomic, but never
        # overwrites an existing file.
        try:
            _write_through(path, data)
        except FileExistsError:
            return
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def rename_synced(folder: Path, to: Path) -> None:
    """Sync a finished folder with all its files to disk, then rename it. Raises OSError."""
    for each in [*folder.rglob("*"), folder]:
        _sync(each)
    folder.rename(to)
    _sync_folder(to.parent)


def _sync_folder(folder: Path) -> None:
    """Sync the new name too, if the file system supports it."""
    with contextlib.suppress(OSError):
        _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def hide_from_git(folder: Path) -> None:
    """Have `git add --all` leave a folder out, if the workspace is in a git repository.

    Nothing depends on it, so it does without where nothing can be written.
    """
    file = folder / ".gitignore"
    with contextlib.suppress(OSError):
        if not file.exists():
            write_private_file(file, "*\n", replace=False)


def replace_file(path: Path, text: str) -> None:
    """Replace a user's file atomically; keeps its mode, and a link to it."""
    resolved = path.resolve()
    temporary = resolved.with_name(f".{resolved.name}.{os.getpid()}.tmp")
    try:
        # Line endings are kept: the file may have been written on another system.
        temporary.unlink(missing_ok=True)
        with temporary.open("x", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(stat.S_IMODE(resolved.stat().st_mode))
        temporary.replace(resolved)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
