"""Connections: the first ones of a process at once, and the way that a kubeconfig asks for."""

from __future__ import annotations

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.kube.connection import Connection

PROGRAM = """
import random, sys, threading, time
from k8s_ucp.kube import Kube

config = {
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "a", "user": {}}],
}
sys.setswitchinterval(1e-6)
failed = []

def connect():
    time.sleep(random.random() * 0.4)
    try:
        Kube(config).close()
    except BaseException as error:
        failed.append(repr(error))

threads = [threading.Thread(target=connect) for _ in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
sys.exit(str(failed) if failed else 0)
"""


def test_the_client_is_imported_once_for_all_threads() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr


def config(**cluster: str) -> dict[str, object]:
    return {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a"}}],
        "clusters": [{"name": "a", "cluster": cluster}],
    }


class Proxy(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"via": "proxy"}')

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


def test_the_proxy_of_a_kubeconfig_is_gone_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    Proxy.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    proxy = f"http://127.0.0.1:{server.server_port}"
    asked = {"server": "http://api.invalid:6443", "proxy-url": proxy}
    connection = Connection(config(**asked))
    try:
        assert connection.request("GET", "/readyz") == {"via": "proxy"}
    finally:
        connection.close()
        server.shutdown()
        server.server_close()
    assert Proxy.asked == ["http://api.invalid:6443/readyz"]


def test_a_proxy_that_is_none_is_refused() -> None:
    for url in ("socks5://127.0.0.1:1080", "http://[::1", "ftp://x", "x"):
        with pytest.raises(UcpError, match="proxy-url"):
            Connection(config(**{"server": "http://api.invalid:6443", "proxy-url": url}))
