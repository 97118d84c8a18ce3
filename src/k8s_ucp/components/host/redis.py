"""Redis: Argo CD's cache. It stores nothing on disk, and has a private socket and a password.

Not a port: whenever redis restarts, another user of the machine could be first to listen there, and
get the password from Argo CD. Whoever has it can replace what Argo CD deploys.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from k8s_ucp.components.component import HEALTHY, PROBE_SECONDS, Health
from k8s_ucp.components.host.machine import Host
from k8s_ucp.components.host.program import Program
from k8s_ucp.kube import kinds
from k8s_ucp.names import ARGOCD_NAMESPACE
from k8s_ucp.workspace import write_private_file

NAME = "redis"
SOCKET = "redis.sock"
SECRET = "argocd-redis"  # noqa: S105 (the name Argo CD gives it)
NAMESPACE = ARGOCD_NAMESPACE
MAX_MEMORY = "128mb"
_PASSWORD = re.compile(r"[\w-]+", re.ASCII)


@dataclass(frozen=True)
class Redis:
    """One redis-server of a topology."""

    host: Host

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.host.runtime / SOCKET

    def password(self) -> str:
        """Created once; in a private file, so that redis can start without the core cluster."""
        path = self.host.folder(NAME) / "password"
        try:
            found = path.read_text("ascii")
        except (FileNotFoundError, ValueError):
            found = ""
        # A power failure can leave a file that is empty or contains zeros.
        if not _PASSWORD.fullmatch(found):
            found = secrets.token_urlsafe(24)
            write_private_file(path, found)
        return found

    def secret(self) -> dict[str, Any]:
        """The Secret in which Argo CD's own tools look for the password."""
        return password_secret(self.password())

    def programs(self) -> list[Program]:
        """The program. Writes its configuration file, because the password must not be in argv."""
        folder = self.host.folder(NAME)
        settings = self._config()
        write_private_file(folder / "redis.conf", settings)
        server = str(self.host.toolbox.path("redis-server"))
        # It reads the file only at start, so a change must restart it.
        digest = hashlib.sha256(settings.encode()).hexdigest()[:16]
        return [Program(NAME, (server, "redis.conf"), folder, {"UCP_REDIS_DIGEST": digest})]

    def ready(self) -> Health:
        """Ready if it responds to an authenticated PING."""
        words = _command("AUTH", self.password()) + _command("PING")
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(PROBE_SECONDS)
                connection.connect(str(self.socket))
                connection.sendall(words)
                answer = connection.recv(100)
                while answer.count(b"\r\n") < 2 and not answer.startswith(b"-"):
                    more = connection.recv(100)
                    if not more:
                        break
                    answer += more
        except OSError as error:
            silent = isinstance(error, TimeoutError)
            return Health(False, error.strerror or str(error) or "no answer", silent=silent)
        if answer == b"+OK\r\n+PONG\r\n":
            return HEALTHY
        return Health(False, answer.decode("ascii", "replace").strip() or "no answer")

    def _config(self) -> str:
        """Content of redis.conf. set-proc-title no: a title would overwrite the environment.

        The environment is how a process whose supervisord died is recognized as ours.
        """
        return (
            "set-proc-title no\n"
            "port 0\n"
            f'unixsocket "{self.socket}"\n'
            "unixsocketperm 700\n"
            f"requirepass {self.password()}\n"
            'save ""\n'
            "appendonly no\n"
            "daemonize no\n"
            f"maxmemory {MAX_MEMORY}\n"
            "maxmemory-policy allkeys-lru\n"
            "hz 5\n"
            'logfile ""\n'
        )


def password_secret(password: str) -> dict[str, Any]:
    """The Secret that Argo CD and its redis share."""
    auth = base64.b64encode(password.encode()).decode()
    return kinds.SECRET.object(SECRET, NAMESPACE, type="Opaque", data={"auth": auth})


def _command(*words: str) -> bytes:
    """A command in the RESP protocol; the shorter inline form is specific to redis-server."""
    parts = "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
    return f"*{len(words)}\r\n{parts}".encode()
