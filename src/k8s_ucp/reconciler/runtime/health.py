"""Serves `/healthz` and `/readyz` for the supervisor or the kubelet, `/metrics` for Prometheus."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from k8s_ucp.errors import UcpError

Check = Callable[[], list[str]]
"""Problems in words; empty if healthy."""
MOST_CONNECTIONS = 32


class _Server(ThreadingHTTPServer):
    """A thread per connection; beyond MOST_CONNECTIONS, the oldest one is closed.

    Whoever can connect, such as any user of this machine, could otherwise take all of the process's
    files and memory, by connections that request nothing.
    """

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, *arguments: Any) -> None:
        self._open: dict[Any, None] = {}
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        for each in [*self._open][: max(0, len(self._open) + 1 - MOST_CONNECTIONS)]:
            self._open.pop(each, None)
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # Its thread closes it.
        self._open[request] = None
        super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:
        self._open.pop(request, None)
        super().close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections that are closed early are not logged."""


class HealthServer:
    """Serves checks and metrics; a failing check answers 503 with its problems.

    Raises UcpError if the port is in use.
    """

    def __init__(
        self,
        port: int,
        healthy: Check,
        ready: Check,
        metrics: Callable[[], bytes],
        *,
        address: str = "127.0.0.1",
    ) -> None:
        checks = {"/healthz": healthy, "/readyz": ready}

        class Handler(BaseHTTPRequestHandler):
            timeout = 5

            def do_GET(self) -> None:
                path = self.path.split("?")[0]
                check = checks.get(path)
                if path == "/metrics":
                    status, body = 200, metrics()
                elif check is None:
                    status, body = 404, b"no such page\n"
                else:
                    wrong = check()
                    status = 503 if wrong else 200
                    body = ("\n".join(wrong) or "ok").encode() + b"\n"
                self.send_response(status)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Probes are not logged."""

        try:
            self._server = _Server((address, port), Handler)
        except OSError as error:
            raise UcpError(
                f"the reconciler failed to bind its health port {port}: {error.strerror}",
                next=(
                    f"stop the program that uses it (ss -ltnp 'sport = :{port}' shows "
                    "which), then run the command again"
                ),
            ) from error
        self.port = int(self._server.server_address[1])
        # A shorter poll would wake an idle process more often; shutdown() waits for one at most.
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.25,), name="health", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
