"""Damage that a power failure does to git repositories."""

from __future__ import annotations

from pathlib import Path


def empty_objects(git_folder: Path) -> None:
    """Empty all objects: git writes single ones without syncing them to the disk."""
    for each in (git_folder / "objects").rglob("*"):
        if each.is_file():
            each.chmod(0o600)
            each.write_text("")
