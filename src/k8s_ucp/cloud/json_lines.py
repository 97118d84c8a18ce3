"""A file of JSON lines that is only ever added to, safe against a crash in the midst of a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class JsonLines:
    """Mode 0600. A line that a crash cut off is taken out before the next one is written."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._whole = False

    def append(self, item: dict[str, Any]) -> None:
        """Write a line to the disk, and wait until it is there."""
        line = json.dumps(item, separators=(",", ":")) + "\n"
        descriptor = os.open(self.file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if not self._whole:
                os.truncate(descriptor, self.file.read_bytes().rfind(b"\n") + 1)
                self._whole = True
            os.write(descriptor, line.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def clear(self) -> None:
        """Begin anew."""
        self.file.unlink(missing_ok=True)

    def items(self) -> Iterator[dict[str, Any]]:
        """All, oldest first, without what a crash cut off."""
        if self.file.exists():
            for line in self.file.read_bytes().splitlines(keepends=True):
                if line.endswith(b"\n"):
                    yield json.loads(line)
