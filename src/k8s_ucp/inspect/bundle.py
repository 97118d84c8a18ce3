"""The support bundle: everything needed to understand a topology, without secrets.

Content is redacted when it is added. `missing.txt` lists what was not available.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.kube import Object, annotations_of, labels_of
from k8s_ucp.redaction import Redaction
from k8s_ucp.workspace import FILE_MODE

MISSING = "missing.txt"


class Bundle:
    """Texts by path, without secrets. name: of the only top-level folder of the archive."""

    def __init__(self, name: str, redaction: Redaction) -> None:
        self._name = name
        self._redaction = redaction
        self._files: dict[str, str] = {}
        self._missing: list[str] = []

    @property
    def paths(self) -> list[str]:
        return sorted(self._files)

    def text(self, path: str, text: str) -> None:
        """Add a text, redacted."""
        self._files[path] = self._redaction.text(text)

    def data(self, path: str, data: Any) -> None:
        """Add JSON-like data, redacted."""
        self._files[path] = json.dumps(self._redaction.data(data), indent=1, ensure_ascii=False)

    def attempt(self, what: str, add: Callable[[], None]) -> None:
        """Add something that may be unavailable; a failure is recorded."""
        try:
            add()
        except (UcpError, OSError) as error:
            self._missing.append(f"{what}: {error}")

    def write(self, file: Path) -> None:
        """Write a tar.gz that only the user can read; leaves no incomplete file.

        Raises UsageError if the file exists, UcpError if it can't be written.
        """
        if self._missing:
            self.text(MISSING, "\n".join(self._missing))
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        except FileExistsError as error:
            raise UsageError(f"{file} already exists", next="choose another name") from error
        except OSError as error:
            raise UcpError(f"failed to write {file}: {error.strerror}") from error
        try:
            with os.fdopen(descriptor, "wb") as stream:
                self._pack(stream)
        except BaseException:
            file.unlink(missing_ok=True)
            raise

    def _pack(self, stream: Any) -> None:
        with tarfile.open(fileobj=stream, mode="w:gz") as archive:
            for path, text in sorted(self._files.items()):
                content = text.encode()
                entry = tarfile.TarInfo(f"{self._name}/{path}")
                entry.size, entry.mode, entry.mtime = len(content), FILE_MODE, int(time.time())
                archive.addfile(entry, io.BytesIO(content))


_KEPT = ("name", "namespace", "generation", "creationTimestamp", "deletionTimestamp", "finalizers")


def outline(item: Object, *parts: str) -> dict[str, Any]:
    """An object's identity, labels, ucp's annotations and the named parts; never its data."""
    metadata: Mapping[str, Any] = item["metadata"]
    return {
        **{name: metadata[name] for name in _KEPT if name in metadata},
        "labels": labels_of(item),
        "annotations": {
            name: text for name, text in annotations_of(item).items() if "k8s-ucp.io/" in name
        },
        **{name: item[name] for name in parts if name in item},
    }
