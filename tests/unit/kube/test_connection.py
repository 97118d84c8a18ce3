"""Connections to API servers: imports, credentials and proxies of a kubeconfig."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.kube import Kube, Unreachable
from k8s_ucp.kube.connection import Connection

SERVER = "http://api.invalid:6443"
PROGRAM = """
import random, sys, threading, time
from k8s_ucp.kube import Kube, Unreachable

config = {
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "clusters": [{"name": "a", "cluster": {
        "server": "https://api.invalid:1", "proxy-url": "http://127.0.0.1:1"}}],
    "users": [{"name": "a", "user": {}}],
}
sys.setswitchinterval(1e-6)
failed = []

def connect():
    time.sleep(random.random() * 0.4)
    try:
        Kube(config).version()
    except Unreachable:
        pass
    except BaseException as error:
        failed.append(repr(error))

threads = [threading.Thread(target=connect) for _ in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
sys.exit(str(failed) if failed else 0)
"""


def test_the_client_library_is_imported_safely_from_concurrent_threads() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr


LOADED = """
import sys
from k8s_ucp.kube import Kube, Unreachable

try:
    Kube({
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": sys.argv[1], "tls-server-name": "a"}}],
    }).version()
except Unreachable:
    print(*(each for each in ("kubernetes", "google.auth", "requests") if each in sys.modules))
"""


@pytest.mark.parametrize(
    "server", ["https://127.0.0.1:1", "https://localhost:1", "https://[::1]:1"]
)
def test_a_local_server_needs_no_import_of_the_client_library(server: str) -> None:
    said = subprocess.run(
        [sys.executable, "-c", LOADED, server],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert said.stdout == "\n"


@pytest.mark.parametrize(
    "broken",
    [
        {"client-certificate-data": "bm9uZQ==", "client-key-data": "bm9uZQ=="},
        {"client-certificate-data": "bm9uZQ=="},
        {"client-certificate-data": "?", "client-key-data": "bm9uZQ=="},
    ],
)
def test_invalid_credentials_are_reported_as_unreachable(broken: dict[str, str]) -> None:
    whole = config(server="https://127.0.0.1:1")
    whole["contexts"] = [{"name": "a", "context": {"cluster": "a", "user": "a"}}]
    whole["users"] = [{"name": "a", "user": broken}]
    with pytest.raises(Unreachable, match="certificates or key are not valid"):
        Connection(whole).request("GET", "/readyz")


def config(**cluster: str) -> dict[str, object]:
    return {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a"}}],
        "clusters": [{"name": "a", "cluster": cluster}],
    }


class Proxy(BaseHTTPRequestHandler):
    asked: list[str]
    answer = b'{"via": "proxy"}'

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a proxy that answers itself."""
    monkeypatch.setenv("NO_PROXY", "*")
    Proxy.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_proxy_of_a_kubeconfig_is_used(proxy: str) -> None:
    with closing(Connection(config(server=SERVER, **{"proxy-url": proxy}))) as connection:
        assert connection.request("GET", "/readyz") == {"via": "proxy"}
    assert Proxy.asked == [f"{SERVER}/readyz"]


@pytest.mark.parametrize("answer", [b"<html>Log in", b"[]", b"", b"{}"])
def test_a_page_in_place_of_an_api_server_is_no_answer(
    answer: bytes, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Proxy, "answer", answer)
    with (
        closing(Kube(config(server=SERVER, **{"proxy-url": proxy}))) as kube,
        pytest.raises(Unreachable, match=r"is not a (JSON object|Kubernetes API server)"),
    ):
        kube.version()


def test_an_invalid_proxy_url_is_refused() -> None:
    for url in ("socks5://127.0.0.1:1080", "http://[::1", "ftp://x", "x"):
        with pytest.raises(UcpError, match="proxy-url"):
            Connection(config(**{"server": "http://api.invalid:6443", "proxy-url": url}))
