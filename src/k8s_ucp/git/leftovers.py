"""Removes leftovers of killed processes: partial packs in repositories, temporary folders.

Git cleans up after itself unless it is killed, and keeps such files for weeks or forever.
"""

from __future__ import annotations

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


def sweep_unfinished(folder: Path) -> None:
    """Remove repositories that were being created in a folder when the process was killed."""
    _remove(folder.glob(f"{UNFINISHED}*"), UNFINISHED_SECONDS)


def sweep_temporary() -> None:
    """Remove ucp's temporary folders whose process was killed."""
    found = Path(tempfile.gettempdir()).glob("ucp-*")
    _remove((each for each in found if _TEMPORARY.fullmatch(each.name)), OLD_SECONDS)


def _remove(found: Iterable[Path], older_than: float) -> None:
    for each in found:
        try:
            known = each.lstat()
            # In a shared temporary folder, other users may have files with such names.
            if known.st_uid != os.getuid() or not _is_old(each, older_than):
                continue
            if stat.S_ISDIR(known.st_mode):
                shutil.rmtree(each, ignore_errors=True)
            elif stat.S_ISREG(known.st_mode):
                each.unlink(missing_ok=True)
        except OSError:
            continue


def _is_old(path: Path, seconds: float) -> bool:
    """Neither the path nor anything below it has been written for this long."""
    inside = (Path(folder, name) for folder, _, files in os.walk(path) for name in (*files, ""))
    since = time.time() - seconds
    return all(each.lstat().st_mtime < since for each in itertools.chain([path], inside))
