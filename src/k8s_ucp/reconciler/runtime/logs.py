"""Structured logs: one JSON object per line on stdout, without secrets.

Redaction is a second safeguard: error messages should contain none in the first place.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import TextIO

from k8s_ucp.reconciler.runtime.clock import Clock, system_clock
from k8s_ucp.redaction import without_credentials
from k8s_ucp.timestamps import stamp


def _clean(value: object) -> object:
    """Redact a value before it is encoded: applied to JSON, the pattern would match quotes, too."""
    if isinstance(value, list | tuple):
        return [_clean(each) for each in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return without_credentials(str(value))


class Log:
    """Writes log lines; safe to share between threads."""

    def __init__(self, stream: TextIO | None = None, clock: Clock = system_clock) -> None:
        self._stream = stream
        self._clock = clock
        self._lock = threading.Lock()

    def info(self, message: str, **fields: object) -> None:
        self._write("info", message, fields)

    def warning(self, message: str, **fields: object) -> None:
        self._write("warning", message, fields)

    def error(self, message: str, **fields: object) -> None:
        self._write("error", message, fields)

    def _write(self, level: str, message: str, fields: dict[str, object]) -> None:
        entry = {"time": stamp(self._clock()), "level": level, "message": message, **fields}
        line = json.dumps({name: _clean(value) for name, value in entry.items()})
        with self._lock:
            stream = self._stream or sys.stdout
            stream.write(line + "\n")
            stream.flush()
