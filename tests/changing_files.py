"""Lists files of running programs, which create and delete them at any time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def paths_below(folder: Path) -> Iterator[Path]:
    """Like `folder.rglob("*")`, which fails if a folder is deleted before it is read."""
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))


def modes_below(folder: Path) -> dict[Path, int]:
    """Permission bits of the folder and of everything in it, except for links."""
    modes = {}
    for path in (folder, *paths_below(folder)):
        try:
            if not path.is_symlink():
                modes[path] = path.lstat().st_mode & 0o777
        except FileNotFoundError:
            continue
    return modes
