"""Both ways to an API server, past the official client and through it: the same checks, the same
credential, the same limits.
"""

from __future__ import annotations

import base64
import contextlib
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
from urllib3.exceptions import InsecureRequestWarning

from k8s_ucp.components.host.certificates import Certificates
from k8s_ucp.kube import Kube, KubeError, Unreachable
from k8s_ucp.kube.transport import _as_file

LIMIT = 1.0


class ApiServer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/slow":
            with contextlib.suppress(OSError):
                self._trickle()
            return
        peer = dict(each[0] for each in cast("Any", self.connection).getpeercert()["subject"])
        content = f'{{"gitVersion": "{peer["commonName"]}"}}'.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _trickle(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        for _ in range(50):
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(0.2)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class Proxy(BaseHTTPRequestHandler):
    target: tuple[str, int]
    asked: list[str]

    def do_CONNECT(self) -> None:
        self.asked.append(self.path)
        with socket.create_connection(self.target) as far:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=_pass_on, args=(far, self.connection), daemon=True)
            back.start()
            _pass_on(self.connection, far)
            back.join()
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(65536):
            target.sendall(part)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def _served(server: ThreadingHTTPServer) -> Iterator[int]:
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    made = Certificates(tmp_path_factory.mktemp("certificates"))
    made.ensure()
    return made


@pytest.fixture(scope="module")
def api_server(certificates: Certificates) -> Iterator[int]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificates.authority)
    context.load_cert_chain(*certificates.server)
    context.verify_mode = ssl.CERT_REQUIRED
    server = ThreadingHTTPServer(("127.0.0.1", 0), ApiServer)
    # Some tests cause rejected handshakes on purpose: print nothing.
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    with _served(server) as port:
        yield port


@pytest.fixture(params=["past the official client", "through the official client"])
def cluster(request: pytest.FixtureRequest, api_server: int) -> Iterator[dict[str, Any]]:
    if request.param == "past the official client":
        yield {"server": f"https://127.0.0.1:{api_server}"}
        return
    Proxy.target, Proxy.asked = ("127.0.0.1", api_server), []
    with _served(ThreadingHTTPServer(("127.0.0.1", 0), Proxy)) as port:
        yield {
            "server": "https://api.invalid:6443",
            "proxy-url": f"http://127.0.0.1:{port}",
            "tls-server-name": "localhost",
        }
        assert set(Proxy.asked) == {"api.invalid:6443"}


@contextlib.contextmanager
def _connected(
    cluster: dict[str, Any],
    certificates: Certificates,
    *,
    user: dict[str, Any] | None = None,
    longest: float = 30.0,
) -> Iterator[Kube]:
    def encoded(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    certificate, key = certificates.client
    own = {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)}
    trusted = {"certificate-authority-data": encoded(certificates.authority), **cluster}
    config = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": trusted}],
        "users": [{"name": "a", "user": own if user is None else user}],
    }
    kube = Kube(config, longest=longest)
    try:
        yield kube
    finally:
        kube.close()


def test_client_certificate_is_sent(cluster: dict[str, Any], certificates: Certificates) -> None:
    subject = certificates.client[0].read_bytes()
    with _connected(cluster, certificates) as kube:
        assert kube.version() == common_name(subject)
        kube.close()
        # Closed connections are opened again with the same credential.
        assert kube.version() == common_name(subject)


def test_server_rejects_a_client_without_the_certificate(
    cluster: dict[str, Any], certificates: Certificates
) -> None:
    with _connected(cluster, certificates, user={"token": "t"}) as kube, pytest.raises(KubeError):
        kube.version()


def test_unknown_certificate_authority_is_not_trusted(
    cluster: dict[str, Any], certificates: Certificates
) -> None:
    with (
        _connected({**cluster, "certificate-authority-data": ""}, certificates) as kube,
        pytest.raises(Unreachable, match="not trusted"),
    ):
        kube.version()


def test_certificate_of_another_host_is_not_trusted(
    cluster: dict[str, Any], certificates: Certificates
) -> None:
    with (
        _connected({**cluster, "tls-server-name": "other"}, certificates) as kube,
        pytest.raises(Unreachable, match="not trusted"),
    ):
        kube.version()


def test_verification_is_off_if_the_kubeconfig_says_so(
    cluster: dict[str, Any], certificates: Certificates
) -> None:
    off = {
        "insecure-skip-tls-verify": True,
        "certificate-authority-data": "",
        "tls-server-name": "other",
    }
    with (
        _connected({**cluster, **off}, certificates) as kube,
        pytest.warns(InsecureRequestWarning),
    ):
        assert kube.version()


def test_slow_response_is_limited_as_a_whole(
    cluster: dict[str, Any], certificates: Certificates
) -> None:
    with _connected(cluster, certificates, longest=LIMIT) as kube:
        began = time.monotonic()
        with pytest.raises(Unreachable):
            kube.request("GET", "/slow")
        assert time.monotonic() - began < 20


KILLED = """
import os, signal, sys
from pathlib import Path

del os.memfd_create
from k8s_ucp.kube.transport import _as_file

with _as_file("c2VjcmV0") as path:
    assert Path(path).read_text() == "secret"
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_no_key_stays_in_the_temporary_folder_after_a_kill(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", KILLED],
        env={"TMPDIR": str(tmp_path), "PATH": ""},
        timeout=60,
        check=False,
    )
    assert ended.returncode == -9
    assert list(tmp_path.iterdir()) == []


def test_key_file_is_deleted_after_it_was_read() -> None:
    with _as_file("c2VjcmV0") as path:
        assert Path(path).read_bytes() == b"secret"
    assert not Path(path).exists()


def common_name(certificate: bytes) -> str:
    """The common name of a certificate in PEM."""
    from cryptography import x509

    subject = x509.load_pem_x509_certificate(certificate).subject
    return str(subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value)
