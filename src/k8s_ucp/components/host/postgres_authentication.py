"""Authentication of Postgres: the stored form of a password, and whether a server asks for one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import socket
import struct

from k8s_ucp.components.component import PROBE_SECONDS
from k8s_ucp.loopback import ADDRESS

_ITERATIONS = 4096
_PROTOCOL = 3 << 16


def verifier(password: str, salt: bytes = b"") -> str:
    """Postgres' stored form of a password (RFC 5803). salt: default is a new one."""
    salt = salt or secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    kept, first, second = (base64.b64encode(each).decode() for each in (salt, stored, server))
    return f"SCRAM-SHA-256${_ITERATIONS}:{kept}${first}:{second}"


def accepts_connections(port: int, username: str) -> bool:
    """Whether it accepts connections: it then asks for authentication instead of refusing."""
    hello = struct.pack("!i", _PROTOCOL) + f"user\0{username}\0\0".encode()
    try:
        with socket.create_connection((ADDRESS, port), PROBE_SECONDS) as connection:
            connection.sendall(struct.pack("!i", len(hello) + 4) + hello)
            # Read the whole response, because Postgres would log a connection that is reset.
            return connection.recv(1024)[:1] == b"R"
    except OSError:
        return False
