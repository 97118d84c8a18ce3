"""An append-only file of JSON lines that survives a crash while a line is written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class JsonLines:
    """Mode 0600. An incomplete line is removed before the next one is written."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._complete = False

    def append(self, item: dict[str, Any]) -> None:
        """Append a line and sync it to disk. Raises OSError."""
        line = (json.dumps(item, separators=(",", ":")) + "\n").encode()
        descriptor = os.open(self.file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if not self._complete:
                os.truncate(descriptor, self.file.read_bytes().rfind(b"\n") + 1)
            # A full disk may take only a part of the line.
            self._complete = False
            while line:
                line = line[os.write(descriptor, line) :]
            os.fsync(descriptor)
            self._complete = True
        finally:
            os.close(descriptor)

    def clear(self) -> None:
        """Delete the file."""
        self.file.unlink(missing_ok=True)

    def items(self) -> Iterator[dict[str, Any]]:
        """All complete items, oldest first."""
        if self.file.exists():
            for line in self.file.read_bytes().splitlines(keepends=True):
                if line.endswith(b"\n"):
                    yield json.loads(line)
