"""A forge that never completes its response, or is none, ends no promotion."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from k8s_ucp.gitops.forge import base, gitea
from k8s_ucp.gitops.forge.base import ForgeFailed, Site, TooSlow, in_time
from k8s_ucp.gitops.forge.gitea import Gitea

_ENDED = threading.Event()


class _Dripping(BaseHTTPRequestHandler):
    """Sends a space now and then, and completes the response when the test ends."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            while not _ENDED.wait(0.02):
                self.wfile.write(b" ")
            self.wfile.write(b"[]")

    def log_message(self, format: str, *args: object) -> None:
        """Not logged."""


@pytest.fixture
def dripping() -> Iterator[str]:
    _ENDED.clear()
    server = HTTPServer(("127.0.0.1", 0), _Dripping)
    serving = threading.Thread(target=server.serve_forever, args=(0.02,))
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}"
    _ENDED.set()
    server.shutdown()
    serving.join()
    server.server_close()


def test_a_forge_that_sends_a_byte_now_and_then_is_given_up(
    dripping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "CALL_SECONDS", 0.3)
    forge = Gitea(Site("gitea", dripping, "octo/shop"))
    began = time.monotonic()
    with pytest.raises(ForgeFailed, match="is not responding"):
        forge.find("ucp/echo/stage", "main")
    assert time.monotonic() - began < 30


def test_a_response_that_is_too_large_is_refused(
    dripping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gitea, "_LARGEST", 2)
    forge = Gitea(Site("gitea", dripping, "octo/shop"))
    with pytest.raises(ForgeFailed, match="returned more than 2 bytes"):
        forge.find("ucp/echo/stage", "main")


@pytest.mark.parametrize(
    "answer",
    ["<html>", "5", '{"message": "welcome"}', '["a"]', '[{"head": {}}]', 100_000 * "["],
)
def test_another_server_than_a_forge_is_named(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forge = Gitea(Site("gitea", "http://192.0.2.1", "octo/shop"))
    monkeypatch.setattr(forge, "_open", lambda *_, **__: io.BytesIO(answer.encode()))
    with pytest.raises(ForgeFailed, match="octo/shop is not on a Gitea server"):
        forge.find("ucp/echo/stage", "main")


def test_a_call_in_time_returns_or_raises_what_it_returns_or_raises() -> None:
    assert in_time(lambda: None) is None
    assert in_time(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        in_time(lambda: 1 // 0)
    with pytest.raises(TooSlow):
        in_time(lambda: time.sleep(0.3), seconds=0.01)
