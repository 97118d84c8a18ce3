"""Limits what a response may cost: total seconds, and bytes.

A socket's timeout restarts with every byte, and urllib3 reads lines and headers of any length: a
server that sends a byte now and then would hold a request for ever, and an endless response would
fill the memory. So urllib3's sockets are read through a wrapper that enforces the request's limits.
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
"""Bytes allowed for the headers, in addition to the content."""


@dataclass
class RequestLimits:
    """Limits of one request, and how much is used."""

    until: float
    """Deadline on the monotonic clock."""
    largest: int
    wait: float = float("inf")
    """Longest wait in seconds for the next bytes."""
    seconds: float = 0.0
    """Timeout of the whole request, for messages; 0 to leave it out."""
    exceeded: bool = False
    _read: int = 0

    def remaining(self) -> float:
        """Seconds to wait for more. Raises TimeoutError if none are left."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the response exceeded the total time limit")
        return min(left, self.wait)

    def count(self, read: int) -> None:
        """Count received bytes. Raises OSError if there are too many."""
        self._read += read
        if self._read > self.largest + _HEADERS:
            self.exceeded = True
            raise OSError(f"the response is larger than {self.largest} bytes")

    def restart(self) -> None:
        """Count from zero again, after an event of a watch is complete."""
        self._read = 0


class _Current(threading.local):
    limits: RequestLimits | None = None


_CURRENT = _Current()


@contextmanager
def bounded(limits: RequestLimits) -> Iterator[None]:
    """Apply the limits to responses that begin in this thread inside the context."""
    before, _CURRENT.limits = _CURRENT.limits, limits
    try:
        yield
    finally:
        _CURRENT.limits = before


class _Bounded(io.RawIOBase):
    """Reads a socket within limits."""

    def __init__(self, of: socket.socket, limits: RequestLimits) -> None:
        super().__init__()
        # The socket counts its readers, so it stays open for this one if the connection closes.
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
    """Make a pool manager apply the limits of `bounded`; call it before the first request."""
    manager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
