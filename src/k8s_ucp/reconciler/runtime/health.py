"""Serves `/healthz` and `/readyz` for the supervisor or the kubelet, `/metrics` for Prometheus."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

from k8s_ucp.bounded_server import BoundedServer
from k8s_ucp.errors import UcpError

Check = Callable[[], list[str]]
"""Problems in words; empty if healthy."""


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
            self._server = BoundedServer((address, port), Handler)
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
