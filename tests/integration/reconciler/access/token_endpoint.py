"""A cloud's token endpoint on this machine, and credentials for it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.integration.reconciler.hostile import say
from tests.integration.reconciler.world import Clusters


@dataclass
class Endpoint:
    """A token endpoint that responds with `status` and `answer`, and records all requests."""

    url: str
    answer: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    asked: list[tuple[str, dict[str, str], str]] = field(default_factory=list)


@contextlib.contextmanager
def token_endpoint() -> Iterator[Endpoint]:
    """An endpoint that runs within the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply("")

        def do_POST(self) -> None:
            self.reply(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def reply(self, body: str) -> None:
            found.asked.append((self.path, dict(self.headers), body))
            say(self, found.answer, found.status)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Endpoint(f"http://127.0.0.1:{server.server_address[1]}")
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()


def credential(world: Clusters, name: str, content: str) -> None:
    world.core.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": "crossplane-system"},
            "stringData": {"creds": content},
        },
        manager="test",
    )


def account(endpoint: Endpoint) -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    return json.dumps(
        {
            "type": "service_account",
            "client_email": "ucp@example.iam.gserviceaccount.com",
            "private_key": text,
            "private_key_id": "1",
            "token_uri": f"{endpoint.url}/token",
        }
    )
