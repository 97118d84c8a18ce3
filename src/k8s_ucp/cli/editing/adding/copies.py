"""Copies the sources of apps that are outside of the workspace next to ucp.yaml."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from k8s_ucp.errors import UcpError, UsageError

COPIES = "manifests"
"""Folder next to ucp.yaml for copies of apps that were given by a folder elsewhere."""


def beside(
    root: Path,
    path: str,
    copy: str,
    undone: contextlib.ExitStack,
    *,
    folder: bool = False,
    repository: Path | None = None,
) -> str:
    """A path below the folder of ucp.yaml; a source elsewhere is copied there.

    folder: copy a single file into a folder of its own. repository: as in AppFlags.
    """
    if path.startswith("ucp:"):
        return path
    source = Path(path).expanduser()
    inside = root / source
    if not source.is_absolute() and inside.exists() and _within(inside, root):
        return inside.resolve().relative_to(root.resolve()).as_posix()
    # A typed path is relative to the current folder.
    source = source.resolve()
    if not source.exists():
        raise UsageError(f"{path} exists neither in the current folder nor next to ucp.yaml")
    if _within(source, root):
        return source.relative_to(root.resolve()).as_posix()
    target = root / copy
    try:
        made = _make_folder(target.parent)
    except OSError as error:
        raise UcpError(
            f"failed to create the folder {target.parent}: {error.strerror}",
            next=f"move what is there away, or make {root} writable",
        ) from error
    placed: dict[Path, int] = {}
    undone.callback(_undo, root, copy, placed, made)
    try:
        with tempfile.TemporaryDirectory(prefix=".ucp-copy-", dir=target.parent) as work:
            # An interrupt can end the block's own removal of the folder halfway.
            undone.callback(shutil.rmtree, work, ignore_errors=True)
            part = Path(work, "copy")
            here = _copy_folder(source, part, repository) if source.is_dir() else ""
            if not source.is_dir():
                if folder:
                    part.mkdir()
                shutil.copyfile(source, part / source.name if folder else part)
            # Noted before, as an interrupt can come right after the move.
            placed[target] = part.stat().st_ino
            if _is_placed(part, target):
                placed[target] = target.stat().st_ino
            elif _contents(part) != _contents(target):
                raise UsageError(
                    f"failed to copy {path}: {target} already exists, with other contents",
                    next=f"delete it, or use it with --path {copy}",
                )
            return f"{copy}/{here}".rstrip("/")
    except OSError as error:
        raise UcpError(f"failed to copy {source} to {target}: {error.strerror or error}") from error


def _contents(source: Path) -> dict[str, bytes]:
    """All files by their path below a folder; or the content of a single file."""
    files = [each for each in source.rglob("*") if each.is_file()] if source.is_dir() else [source]
    return {str(each.relative_to(source)): each.read_bytes() for each in files}


def _copy_folder(source: Path, target: Path, repository: Path | None) -> str:
    """Copy a folder without hidden files; returns its path within the target.

    A link becomes a copy of its file if that is in the same repository, and is left out otherwise.

    Files outside of it that it refers to, such as `../base`, are copied, too.
    """
    from k8s_ucp.gitops.render.app_manifests import outside

    top = _top(source, repository)
    more = outside(source, top)
    root = Path(os.path.commonpath([source, *((top / each).parent for each in more)]))
    here = source.relative_to(root)
    shutil.copytree(source, target / here, symlinks=False, ignore=partial(_not_copied, top))
    for path, content in more.items():
        file = target / (top / path).relative_to(root)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return "" if here == Path() else here.as_posix()


def _top(source: Path, repository: Path | None) -> Path:
    """The outermost folder that a folder may refer to: its git repository, or else its parent.

    For `overlays/production` and the like, that is the folder with the base. repository: as far as
    known without git, such as the unpacked archive of one.
    """
    from k8s_ucp.gitops.imports.findings import PARENTS

    for each in (source, *source.parents):
        if (each / ".git").exists():
            return each
    if repository and _within(source, repository):
        return repository.resolve()
    return source.parent.parent if source.parent.name in PARENTS else source.parent


def _not_copied(top: Path, folder: str, names: list[str]) -> list[str]:
    from k8s_ucp.gitops.render.app_manifests import links_within

    def is_left_out(link: Path) -> bool:
        return link.is_symlink() and not links_within(link, top)

    return [
        each
        for each in names
        if (each.startswith(".") and each != ".helmignore")
        or each == "node_modules"
        or is_left_out(Path(folder, each))
    ]


def _make_folder(folder: Path) -> bool:
    if folder.is_dir():
        return False
    folder.mkdir(parents=True)
    return True


def _is_placed(part: Path, target: Path) -> bool:
    """Move a copy to its place; False if there is one, such as that of the same command."""
    if target.exists():
        return False
    if part.is_file():
        # Unlike a folder, a renamed file would replace one that appeared meanwhile.
        try:
            target.hardlink_to(part)
        except FileExistsError:
            return False
        except OSError:
            pass  # A file system without hard links.
        else:
            return True
    try:
        part.rename(target)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            return False
        raise
    return True


def _undo(root: Path, copy: str, placed: Mapping[Path, int], folder_too: bool) -> None:
    """Remove what was placed, unless ucp.yaml needs it: another command may have added the app.

    placed: {path: inode of the copy}; what another command placed there has another inode.
    """
    with contextlib.suppress(OSError, ValueError):
        text = (root / "ucp.yaml").read_text("utf-8")
        if re.search(rf"{re.escape(copy)}(?![\w.-])", text):
            return
    for each, inode in placed.items():
        with contextlib.suppress(OSError):
            if each.stat().st_ino != inode:
                continue
            shutil.rmtree(each, ignore_errors=True)
            each.unlink(missing_ok=True)
    if folder_too:
        with contextlib.suppress(OSError):
            (root / copy).parent.rmdir()


def _within(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())
