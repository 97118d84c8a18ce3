"""git over smart HTTP and SSH, from this machine, for tests.

The HTTP server runs `git http-backend` and can break connections like real ones. The SSH server is
a real sshd in a process of the test.
"""

from __future__ import annotations

import base64
import contextlib
import http.server
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.serving import serving

USER, TOKEN = "ci", "t0p-s3cret-token"


@dataclass
class Faults:
    """Faults, each with a number of occurrences.

    unavailable: 503 for any request. lost_answers: a push is accepted, but its response is not
    sent.
    """

    unavailable: int = 0
    lost_answers: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, name: str) -> bool:
        with self.lock:
            left: int = getattr(self, name)
            if left:
                setattr(self, name, left - 1)
            return left > 0


class GitServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        root: Path,
        environment: dict[str, str],
        auth: bool,
        handler: type[GitHandler] | None = None,
    ) -> None:
        super().__init__(("127.0.0.1", 0), handler or GitHandler)
        self.root = root
        self.environment = environment
        self.auth = auth
        self.faults = Faults()
        self.seen: list[str] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: tests kill promotions, which breaks their connections."""


class GitHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: GitServer

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.route()

    def do_POST(self) -> None:
        self.route()

    def route(self) -> None:
        body = self.body()
        self.server.seen.append(f"{self.command} {self.path}")
        if self.server.faults.take("unavailable"):
            return self.send(503, [("Content-Type", "text/plain")], b"later")
        if self.server.auth and not self._known():
            return self.send(401, [("WWW-Authenticate", 'Basic realm="git"')], b"who?")
        status, headers, content = self._backend(body)
        if self.path.endswith("/git-receive-pack") and self.server.faults.take("lost_answers"):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return None
        return self.send(status, headers, content)

    def _known(self) -> bool:
        wanted = base64.b64encode(f"{USER}:{TOKEN}".encode()).decode()
        return self.headers.get("Authorization") == f"Basic {wanted}"

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _backend(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        path, _, query = self.path.partition("?")
        environment = {
            **self.server.environment,
            "GIT_PROJECT_ROOT": str(self.server.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": USER,
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=environment, capture_output=True, check=False
        )
        if not done.stdout:
            # Killed, or the machine has no memory left: empty content would be an empty repository.
            return 500, [("Content-Type", "text/plain")], done.stderr
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [
            (name.strip(), value.strip())
            for line in head.decode().splitlines()
            for name, _, value in [line.partition(":")]
        ]
        status = next((value for name, value in headers if name == "Status"), "200 OK")
        return int(status.split()[0]), [each for each in headers if each[0] != "Status"], content

    def send(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@dataclass(frozen=True)
class HttpGit:
    """The bare repositories below one folder, over smart HTTP."""

    server: GitServer

    @property
    def faults(self) -> Faults:
        return self.server.faults

    @property
    def seen(self) -> list[str]:
        return self.server.seen

    def url(self, repository: Path) -> str:
        port = self.server.server_address[1]
        return f"http://127.0.0.1:{port}/{repository.relative_to(self.server.root)}"


@contextlib.contextmanager
def http_git(root: Path, environment: dict[str, str], *, auth: bool = True) -> Iterator[HttpGit]:
    """Serve the repositories below `root` until the end of the block."""
    with serving(GitServer(root, environment, auth)) as server:
        yield HttpGit(server)


SSHD = next(
    (found for each in ("sshd", "/usr/sbin/sshd", "/usr/local/sbin/sshd")
     if (found := shutil.which(each))), None
)  # fmt: skip


@dataclass(frozen=True)
class SshGit:
    """This machine's repositories over SSH. command: for GIT_SSH_COMMAND. log: sshd's."""

    port: int
    command: str
    log: Path

    @property
    def logins(self) -> int:
        return self.log.read_text().count("Accepted publickey")

    def url(self, repository: Path) -> str:
        import getpass

        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.port}{repository}"


@contextlib.contextmanager
def ssh_git(folder: Path) -> Iterator[SshGit]:
    """Run a real sshd with its own keys, on loopback, until the end of the block."""
    assert SSHD is not None
    folder.mkdir(mode=0o700)
    for name in ("host", "client"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True
        )
    (folder / "authorized").write_text((folder / "client.pub").read_text())
    (folder / "authorized").chmod(0o600)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    kind, key, *_ = (folder / "host.pub").read_text().split()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {kind} {key}\n")
    settings = {
        "Port": port, "ListenAddress": "127.0.0.1", "HostKey": folder / "host",
        "PidFile": "none", "AuthorizedKeysFile": folder / "authorized", "StrictModes": "no",
        "UsePAM": "no", "PasswordAuthentication": "no", "KbdInteractiveAuthentication": "no",
        "PermitRootLogin": "prohibit-password", "MaxStartups": "200:30:400",
    }  # fmt: skip
    (folder / "config").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    if os.getuid() == 0:
        # Debian's sshd needs it, and creates it only when started as a service.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    log = (folder / "log").open("w")
    running = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "config")], stderr=log)
    try:
        _wait_for(port, running, folder / "log")
        yield SshGit(
            port,
            f"ssh -F /dev/null -i {folder / 'client'} -o BatchMode=yes -o IdentitiesOnly=yes "
            f"-o UserKnownHostsFile={folder / 'known'} -o LogLevel=ERROR",
            folder / "log",
        )
    finally:
        running.terminate()
        running.wait(timeout=10)
        log.close()


def _wait_for(port: int, running: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        assert running.poll() is None, f"sshd ended: {log.read_text()}"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"sshd is not responding: {log.read_text()}")
