"""Builds programs that only tests run, once into the user's cache and by one process at a time."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path


def built_once(cache: Path, name: str, seed: bytes, make: Callable[[Path], None]) -> Path:
    """Return the folder that `make` filled, building it unless one exists for the same seed.

    seed: everything that the result depends on. A failed build leaves no entry in the cache.
    """
    folder = cache / "tests" / f"{name}-{hashlib.sha256(seed).hexdigest()[:12]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            make(partial)
            partial.rename(folder)
    return folder
