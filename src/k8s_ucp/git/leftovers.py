"""Leftovers of killed processes: partial packs and locks in repositories, temporary folders.

Git cleans up after itself unless it is killed, and keeps such files for weeks or forever.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

OLD_SECONDS = 24 * 3600.0
"""ucp never works for this long on a file or folder without writing to it."""
UNFINISHED = ".ucp-new-"
"""Prefix of folders in which a repository is created before it is moved into place."""
UNFINISHED_SECONDS = 3600.0
"""Shorter: git needs a minute at most, and the folder may be in one of the user's clones."""
LOCK_SECONDS = 60.0
"""Git holds a lock for a moment, except during `git commit` with an editor."""
_LOCKS = ("*.lock", "refs/**/*.lock", "objects/info/**/*.lock")
_IN_OBJECTS = (
    "tmp_objdir-*",
    "pack/tmp_*",
    "pack/.tmp-*",
    "[0-9a-f][0-9a-f]/tmp_obj_*",
    "tmp_obj_*",
)
_OURS = (
    *(
        "build",
        "chart",
        "charts",
        "check",
        "diff",
        "fence",
        "gcloud",
        "image",
        "import",
        "index",
        "look",
    ),
    *("merge", "plan", "preview", "promote", "ssh"),
)
_TEMPORARY = re.compile(rf"ucp-(check\..*|({'|'.join(_OURS)})-.*)", re.S)


def sweep_repository(git_folder: Path) -> None:
    """Remove partial packs and objects that a killed git process left in a repository."""
    objects = git_folder / "objects"
    _remove((each for name in _IN_OBJECTS for each in objects.glob(name)), OLD_SECONDS)


def left_locks(git_folder: Path) -> list[Path]:
    """Locks that a killed git process may have left in a repository, oldest first.

    They are not removed, since an editor of `git commit` may be open.
    """
    since, found = time.time() - LOCK_SECONDS, []
    for path in (each for name in _LOCKS for each in git_folder.glob(name)):
        with contextlib.suppress(FileNotFoundError):
            if (written := path.lstat().st_mtime) < since:
                found.append((written, path))
    return [path for _, path in sorted(found)]


def sweep_unfinished(folder: Path) -> None:
    """Remove repositories that were being created in a folder when the process was killed."""
    if found := [*folder.glob(f"{UNFINISHED}*")]:
        with contextlib.suppress(OSError):
            _remove(found, UNFINISHED_SECONDS, _time_in(folder))


def sweep_temporary() -> None:
    """Remove ucp's temporary folders whose process was killed."""
    found = Path(tempfile.gettempdir()).glob("ucp-*")
    _remove((each for each in found if _TEMPORARY.fullmatch(each.name)), OLD_SECONDS)


def _time_in(folder: Path) -> float:
    """The time by the clock that dates the folder's files: a file server's may differ from ours."""
    with tempfile.TemporaryFile(dir=folder) as file:
        return os.fstat(file.fileno()).st_mtime


def _remove(found: Iterable[Path], older_than: float, now: float | None = None) -> None:
    since = (time.time() if now is None else now) - older_than
    for each in found:
        try:
            known = each.lstat()
            # In a shared temporary folder, other users may have files with such names.
            if known.st_uid != os.getuid() or not _is_old(each, since):
                continue
            if stat.S_ISDIR(known.st_mode):
                shutil.rmtree(each, ignore_errors=True)
            elif stat.S_ISREG(known.st_mode):
                each.unlink(missing_ok=True)
        except OSError:
            continue


def _is_old(path: Path, since: float) -> bool:
    """Neither the path nor anything below it has been written since then."""
    inside = (Path(folder, name) for folder, _, files in os.walk(path) for name in (*files, ""))
    return all(each.lstat().st_mtime < since for each in itertools.chain([path], inside))
