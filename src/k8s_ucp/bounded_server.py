"""HTTP servers with a limit of open connections."""

from __future__ import annotations

import socket
from contextlib import suppress
from http.server import ThreadingHTTPServer
from socketserver import BaseServer, ThreadingMixIn
from typing import Any


class BoundedConnections(ThreadingMixIn, BaseServer):
    """For servers: a daemon thread per connection; beyond `most_connections`, the oldest is closed.

    Whoever can connect, such as any user of this machine, could otherwise take all of the process's
    files and memory, by connections that request nothing.
    """

    daemon_threads = True
    most_connections = 256

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self._open: dict[Any, None] = {}
        super().__init__(*arguments, **settings)

    @property
    def is_used(self) -> bool:
        """Whether a connection is open."""
        return bool(self._open)

    def process_request(self, request: Any, client_address: Any) -> None:
        for each in [*self._open][: max(0, len(self._open) + 1 - self.most_connections)]:
            self._open.pop(each, None)
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # Its thread closes it.
        self._open[request] = None
        super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:
        self._open.pop(request, None)
        super().close_request(request)


class BoundedServer(BoundedConnections, ThreadingHTTPServer):
    """A server for few clients."""

    most_connections = 32
    request_queue_size = 32

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that are closed early."""
