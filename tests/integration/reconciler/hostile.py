"""An attacker's API server: uses TLS with its own CA, and records all requests."""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

TOKEN = "attackers-own-token"
"""Token in the attacker's kubeconfig."""


@dataclass
class Hostile:
    """A running server, whose responses can be changed with `answer`."""

    server: str
    authority: str
    """Its CA, base64-encoded for a kubeconfig."""
    answer: Callable[[BaseHTTPRequestHandler], None]
    heard: list[str] = field(default_factory=list)
    """Each request: line, headers and body."""

    def kubeconfig(self, user: dict[str, Any] | None = None) -> dict[str, Any]:
        cluster = {"server": self.server, "certificate-authority-data": self.authority}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "a", "cluster": cluster}],
            "users": [{"name": "a", "user": {"token": TOKEN} if user is None else user}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "current-context": "a",
        }

    def credentials(self) -> set[str]:
        """Values of all Authorization headers, without `Bearer`."""
        found = re.findall(r"(?im)^authorization: *(?:bearer)? *(.*)$", "\n".join(self.heard))
        return {each.strip() for each in found}


def _certificate(folder: Path) -> tuple[Path, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "evil")])
    here = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .add_extension(here, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    text = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / "hostile.pem"
    path.write_bytes(text + private)
    return path, base64.b64encode(text).decode()


@contextmanager
def hostile(folder: Path, answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[Hostile]:
    """Run the server until the end of the block."""
    path, authority = _certificate(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def work(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length).decode(errors="replace")
            found.heard.append(f"{self.requestline}\n{self.headers}\n{body}")
            self.close_connection = True
            found.answer(self)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = work  # noqa: N815 (its names)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """The client closed the connection."""

    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    found = Hostile(f"https://127.0.0.1:{server.server_address[1]}", authority, answer)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()


# Responses:


def say(handler: BaseHTTPRequestHandler, content: Any, status: int = 200) -> None:
    """Send content as JSON, or bytes unchanged."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(text)))
    handler.send_header("Content-Type", "application/json")
    handler.end_headers()
    handler.wfile.write(text)


def refuse(handler: BaseHTTPRequestHandler) -> None:
    say(handler, {"kind": "Status", "message": "no", "reason": "Unauthorized"}, 401)


def repeat(handler: BaseHTTPRequestHandler) -> None:
    """A large refusal that contains the request's headers."""
    text = f"{handler.headers} " + "x" * 500_000
    say(handler, {"kind": "Status", "message": text, "reason": text}, 403)


def trickle(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    for _ in range(600):
        handler.wfile.write(b" ")
        time.sleep(0.1)


def flood(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    while True:
        handler.wfile.write(b"[" * 65536)


def brackets(handler: BaseHTTPRequestHandler) -> None:
    say(handler, b"[[],[[]]," * 400_000)


def numbers(handler: BaseHTTPRequestHandler) -> None:
    say(handler, 42)


def nulls(handler: BaseHTTPRequestHandler) -> None:
    say(handler, {"metadata": None, "items": None, "status": None, "kind": None})


class Playing:
    """An API server that accepts every request and returns false data."""

    def __init__(self, **lies: Any) -> None:
        """lies: token, times (repetitions of it), expires, items (of every list), endless (no list
        has a last page).
        """
        self.lies = lies

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.partition("?")[0]
        parts = path.strip("/").split("/")
        if path in ("/readyz", "/version"):
            say(handler, {"gitVersion": "v1.35.4"})
        elif path.endswith("/token"):
            status = {
                "token": self.lies.get("token", "handed-out") * self.lies.get("times", 1),
                "expirationTimestamp": self.lies.get("expires", "2031-01-01T00:00:00Z"),
            }
            say(handler, {"status": status})
        elif "watch=true" in handler.path:
            # Every watch ends at once.
            say(handler, b"")
        elif handler.command == "GET" and "limit=" in handler.path:
            items = self.lies.get("items", list)()
            following = {"continue": "more"} if self.lies.get("endless") else {}
            say(handler, {"metadata": {"resourceVersion": "1", **following}, "items": items})
        else:
            metadata = {"name": parts[-1], "uid": "u", "resourceVersion": "1", "namespace": "x"}
            say(handler, {"metadata": metadata, "kind": "Thing", "apiVersion": "v1"})
