"""A bound on everything that one answer may cost: seconds from beginning to end, and bytes.

A timeout of a socket counts from byte to byte, and urllib3 reads lines and headers of any length:
a server that sends a byte now and then holds a request for ever, one that never ends fills the
memory. So the sockets below urllib3 are read through one that knows the request's own bounds.
"""

from __future__ import annotations

import http.client
import io
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection

_HEADERS = 65_536
"""Bytes that an answer's headers may have beside its content."""


@dataclass
class RequestLimits:
    """What is left of one request."""

    until: float
    """On the monotonic clock."""
    largest: int
    wait: float = float("inf")
    """Seconds that any single byte may take to come."""
    seconds: float = 0.0
    """What all of it was allowed, for messages; 0 where that isn't told."""
    exceeded: bool = False
    _read: int = 0

    def remaining(self) -> float:
        """Seconds to wait for more. Raises TimeoutError where none are left."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the response exceeded the total time limit")
        return min(left, self.wait)

    def count(self, read: int) -> None:
        """So many bytes came. Raises OSError where they are too many."""
        self._read += read
        if self._read > self.largest + _HEADERS:
            self.exceeded = True
            raise OSError(f"the response is larger than {self.largest} bytes")

    def start_anew(self) -> None:
        """What came so far was a whole answer: one event of a watch."""
        self._read = 0


class _Current(threading.local):
    limits: RequestLimits | None = None


_CURRENT = _Current()


@contextmanager
def bounded(limits: RequestLimits) -> Iterator[None]:
    """Answers that begin in this thread meanwhile are read within these limits."""
    before, _CURRENT.limits = _CURRENT.limits, limits
    try:
        yield
    finally:
        _CURRENT.limits = before


class _Bounded(io.RawIOBase):
    """Bytes of a socket, within limits."""

    def __init__(self, of: socket.socket, limits: RequestLimits) -> None:
        super().__init__()
        # The socket counts its readers: one that the connection closes stays open for this one.
        self._raw = of.makefile("rb", buffering=0)
        self._socket = of
        self._limits = limits

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._socket.settimeout(self._limits.remaining())
        read = self._raw.readinto(buffer)
        self._limits.count(read or 0)
        return read

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **named: Any) -> None:
        super().__init__(sock, *args, **named)
        limits = _CURRENT.limits
        if limits is not None:
            self.fp.close()
            self.fp = io.BufferedReader(_Bounded(sock, limits))


class _Http(HTTPConnection):
    response_class = _Answer


class _Https(HTTPSConnection):
    response_class = _Answer


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Http


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _Https


def bound(manager: PoolManager) -> None:
    """Have a pool manager, before its first request, heed the limits of `bounded`."""
    manager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
