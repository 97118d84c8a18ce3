"""Caches the initial content of new clusters for a user: `seeds/<key>.json`.

There are CRDs (a file per set of pins and kinds), default objects (a file per API server version)
and definitions (a file per set of settings). The first line is a header that must match the second
line, the content: a file that is truncated, has another format, belongs to another user or has
other kinds is ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from k8s_ucp.cluster_provider import Seed
from k8s_ucp.kube import CRD
from k8s_ucp.locks import locked, locked_now
from k8s_ucp.workspace import make_private_folder, write_private_file

FORMAT = 1
MOST = 12
"""Number of files; the oldest are deleted."""
LOCK_SECONDS = 10.0

_GROUP = CRD.api_version.partition("/")[0]
_FOLDER, _LOCK = "seeds", ".lock"
_OTHERS_MAY_WRITE = 0o022


def find(cache: Path, key: str) -> Seed | None:
    """The seed of that key; None if there is no valid file of this user."""
    if not (found := _read(cache, key)):
        return None
    digest, crds = found
    try:
        valid = all(_is_crd(name, json.loads(text)) for name, text in crds.items())
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return Seed(digest, crds) if valid else None


def find_objects(cache: Path, key: str) -> Mapping[str, str] | None:
    """Content stored by `keep_objects` under that key; None if there is no valid file."""
    found = _read(cache, key)
    return found[1] if found else None


def keep(cache: Path, key: str, seed: Seed) -> None:
    """Write a seed, unless another process is writing one. Raises OSError."""
    _write(cache, key, seed.digest, dict(seed.crds))


def keep_objects(cache: Path, key: str, objects: Mapping[str, str]) -> None:
    """Write an API server's default objects, or a definition's files: name -> text.

    Does nothing if another process is writing. Raises OSError.
    """
    _write(cache, key, "", dict(objects))


def _read(cache: Path, key: str) -> tuple[str, dict[str, str]] | None:
    """(digest, content) of a valid file."""
    try:
        with _file(cache, key).open("rb") as file:
            about = os.fstat(file.fileno())
            if about.st_uid != os.geteuid() or about.st_mode & _OTHERS_MAY_WRITE:
                return None
            head, _, body = file.read().partition(b"\n")
        header = json.loads(head)
        if header != _head(key, str(header["digest"]), body):
            return None
        return header["digest"], {str(name): str(text) for name, text in json.loads(body).items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _write(cache: Path, key: str, digest: str, content: Mapping[str, str]) -> None:
    folder = _file(cache, key).parent
    make_private_folder(folder)
    with locked_now(folder / _LOCK) as free:
        if not free:
            return
        body = json.dumps(content)
        head = json.dumps(_head(key, digest, body.encode()))
        write_private_file(_file(cache, key), f"{head}\n{body}")
        found = sorted(folder.glob("*.json"), key=lambda each: each.stat().st_mtime)
        for old in found[:-MOST]:
            old.unlink()


def prune(cache: Path, needed: Collection[str]) -> list[str]:
    """Delete the seeds of other keys; returns them as `seeds/<key>.json`.

    Raises DeadlineExceeded, OSError.
    """
    folder = cache / _FOLDER
    if not folder.is_dir():
        return []
    with locked(folder / _LOCK, "the lock of the seeds", timeout=LOCK_SECONDS):
        for left in folder.glob(".*.tmp"):  # Remains of a killed writer: writers hold the lock.
            left.unlink()
        unused = sorted(each for each in folder.glob("*.json") if each.stem not in needed)
        for each in unused:
            each.unlink()
    return [str(each.relative_to(cache)) for each in unused]


def _is_crd(name: str, content: Mapping[str, Any]) -> bool:
    """Whether it is a CRD, in any version. One unreadable object breaks the list of all CRDs."""
    found = content["apiVersion"].partition("/")[0], content["kind"], content["metadata"]["name"]
    return found == (_GROUP, CRD.kind, name)


def _file(cache: Path, key: str) -> Path:
    return cache / _FOLDER / f"{key}.json"


def _head(key: str, digest: str, body: bytes) -> dict[str, object]:
    checksum = hashlib.sha256(body).hexdigest()
    return {"format": FORMAT, "key": key, "digest": digest, "sha256": checksum}
