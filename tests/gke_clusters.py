"""GKE for tests: the stand-in `gcloud` on PATH, with real API servers behind its clusters.

A gateway in front of each embedded control plane accepts the stand-in's access token, as Google's
API server does, and forwards requests with the control plane's admin certificate.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import http.client
import ipaddress
import json
import os
import select
import socket
import ssl
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from k8s_ucp.clusters.gke.provider import GkeProvider
from k8s_ucp.kube import current_context
from tests import fake_gcloud
from tests.backing_clusters import Backing, Behind
from tests.fake_gcloud import FRESH, State

PROJECT = "shop-1"
EMAIL = "robot@shop-1.iam.gserviceaccount.com"
SECRET = "canary-of-the-private-key"


def key(**changes: str | None) -> str:
    """A service account key."""
    whole = {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "key-1",
        "private_key": SECRET,
        "client_email": EMAIL,
        **changes,
    }
    return json.dumps({name: value for name, value in whole.items() if value is not None})


@dataclass
class Google:
    """The cloud, stored in a file."""

    root: Path

    @property
    def file(self) -> Path:
        return self.root / "google.json"

    @property
    def programs(self) -> Path:
        """Folder of the stand-in `gcloud`."""
        return self.root / "bin"

    def make(self) -> None:
        self.programs.mkdir(parents=True)
        self.file.write_text(json.dumps(FRESH))
        program = self.programs / "gcloud"
        checkout = Path(__file__).parents[1]
        program.write_text(
            f"#!{sys.executable} -IS\nimport sys, pathlib\nsys.path.insert(0, {str(checkout)!r})\n"
            "from tests.fake_gcloud import main\n"
            f"sys.exit(main(pathlib.Path({str(self.file)!r}), sys.argv[1:]))\n"
        )
        program.chmod(0o755)

    @contextlib.contextmanager
    def state(self) -> Iterator[State]:
        with fake_gcloud.opened(self.file) as state:
            yield state

    def change(self, **changes: Any) -> None:
        with self.state() as state:
            state.update(changes)

    def seen(self) -> State:
        with self.state() as state:
            fake_gcloud.settle(state)
            return json.loads(json.dumps(state))  # type: ignore[no-any-return]

    def clusters(self, owner: str | None = None) -> list[str]:
        """Names of all clusters, or of those of one owner."""
        return sorted(
            name
            for name, each in self.seen()["clusters"].items()
            if owner in (None, each["resourceLabels"].get("k8s-ucp-owner"))
        )

    def provider(self, workspace: str = "one", text: str | None = None) -> GkeProvider:
        return GkeProvider(
            self.folder(workspace),
            owner=f"owner-{workspace}",
            key=lambda: key() if text is None else text,
            pause=0.02,
        )

    def folder(self, workspace: str = "one") -> Path:
        return self.root / workspace / "my files" / "gke"


@contextlib.contextmanager
def google(root: Path) -> Iterator[Google]:
    """The cloud, with its `gcloud` first on PATH."""
    found = Google(root)
    found.make()
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{found.programs}{os.pathsep}{before}"
    try:
        yield found
    finally:
        os.environ["PATH"] = before


@contextlib.contextmanager
def google_before(backing: Backing) -> Iterator[Google]:
    """The cloud, with real API servers behind its clusters."""
    with google(backing.root / "google") as cloud, contextlib.ExitStack() as stack:
        gates = {
            name: stack.enter_context(gate(config, FRESH["token"]))
            for name, config in backing.configs.items()
        }
        behind = Behind()
        servers = {name: gates[behind[name]] for name in ("kept", "n", "own", "*")}
        cloud.change(apis_of_clusters=servers)
        yield cloud


@contextlib.contextmanager
def gate(config: Mapping[str, Any], token: str) -> Iterator[dict[str, str]]:
    """Serve HTTPS for clients with the token; yields the endpoint and its CA certificate."""
    cluster, user = current_context(config)
    address = urlsplit(cluster["server"])
    trusted = base64.b64decode(cluster["certificate-authority-data"]).decode()
    admin = ssl.create_default_context(cadata=trusted)
    nobody = ssl.create_default_context(cadata=trusted)
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder) / "admin.crt", user["client-certificate-data"])
        _write(Path(folder) / "admin.key", user["client-key-data"])
        admin.load_cert_chain(f"{folder}/admin.crt", f"{folder}/admin.key")
        authority = _certificate(Path(folder))
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.load_cert_chain(f"{folder}/gate.crt", f"{folder}/gate.key")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            if self.headers.get("Upgrade") or "watch=true" in self.path:
                self.tunnel()
                return
            kept = {k: v for k, v in self.headers.items() if k in self.passed()}
            there = http.client.HTTPSConnection(
                str(address.hostname), address.port, timeout=20, context=self.identity()
            )
            with contextlib.closing(there):
                there.request(self.command, self.path, body, kept)
                answer = there.getresponse()
                content = answer.read()
                if self.path == "/version":  # Google's version has a suffix
                    told = {**json.loads(content), "gitVersion": f"v{FRESH['versions'][0]}"}
                    content = json.dumps(told).encode()
                self.reply(answer.status, content, str(answer.headers["Content-Type"]))

        def is_google(self) -> bool:
            return self.headers.get("Authorization") == f"Bearer {token}"

        def identity(self) -> ssl.SSLContext:
            """The admin's identity for Google's token; other tokens are service accounts'."""
            return admin if self.is_google() else nobody

        def passed(self) -> tuple[str, ...]:
            own = () if self.is_google() else ("Authorization",)
            return ("Content-Type", "Accept", *own)

        def tunnel(self) -> None:
            """Forward a stream in both directions until one side closes the connection."""
            self.close_connection = True
            plain = socket.create_connection((str(address.hostname), address.port))
            with self.identity().wrap_socket(plain, server_hostname=address.hostname) as there:
                kept = [
                    f"{k}: {v}"
                    for k, v in self.headers.items()
                    if k != "Authorization" or k in self.passed()
                ]
                head = "\r\n".join([f"{self.command} {self.path} HTTP/1.1", *kept, "", ""])
                there.sendall(head.encode())
                ends = {self.connection: there, there: self.connection}
                with contextlib.suppress(OSError):
                    while (
                        ready := [
                            each
                            for each in ends
                            if isinstance(each, ssl.SSLSocket) and each.pending()
                        ]
                        or select.select(list(ends), [], [])[0]
                    ):
                        for each in ready:
                            data = each.recv(65536)
                            if not data:
                                return
                            ends[each].sendall(data)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = pass_on  # noqa: N815

        def reply(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.socket = own.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield {"endpoint": f"127.0.0.1:{server.server_address[1]}", "authority": authority}
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)


def _write(path: Path, data: str) -> None:
    path.write_bytes(base64.b64decode(data))


def _certificate(folder: Path) -> str:
    """Create gate.crt and gate.key for 127.0.0.1; return the certificate in base64."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    own = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "gate")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(own.public_key()), False)
        .sign(own, hashes.SHA256())
    )
    text = certificate.public_bytes(serialization.Encoding.PEM)
    (folder / "gate.crt").write_bytes(text)
    (folder / "gate.key").write_bytes(
        own.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return base64.b64encode(text).decode()
