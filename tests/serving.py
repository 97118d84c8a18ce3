"""Servers of tests, in a thread."""

from __future__ import annotations

import contextlib
import socketserver
import threading
from collections.abc import Iterator
from typing import TypeVar

ServerType = TypeVar("ServerType", bound=socketserver.BaseServer)


@contextlib.contextmanager
def serving(server: ServerType) -> Iterator[ServerType]:
    """Run a server in a thread until the end of the block."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
