"""A forge that is slow, unavailable for a moment, or none, ends no promotion without a reason."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.error import HTTPError
from urllib.request import Request

import pytest

from k8s_ucp.gitops.forge import base
from k8s_ucp.gitops.forge.base import ForgeFailed, Proposal, PullRequest, Site, TooSlow, in_time
from k8s_ucp.gitops.forge.gitea import Gitea
from k8s_ucp.gitops.forge.sites import KINDS, open_forge
from tests.raw_server import endless
from tests.raw_server import server as raw_server
from tests.serving import serving

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
    with serving(HTTPServer(("127.0.0.1", 0), _Dripping)) as server:
        yield f"http://127.0.0.1:{server.server_port}"
        _ENDED.set()


def test_a_forge_that_sends_a_byte_now_and_then_is_given_up(
    dripping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "CALL_SECONDS", 0.3)
    forge = Gitea(Site("gitea", dripping, "octo/shop"))
    began = time.monotonic()
    with pytest.raises(ForgeFailed, match="is not responding"):
        forge.find("ucp/echo/stage", "main")
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("kind", KINDS)
def test_a_response_that_is_too_large_is_refused(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "LARGEST", 100_000)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    with raw_server(endless(head, b" " * 65536)) as (address, _):
        forge = open_forge(Site(kind, address, "octo/shop", "t"))
        with pytest.raises(ForgeFailed, match="returned more than 100,000 bytes"):
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


@pytest.mark.parametrize(
    ("statuses", "sent"),
    [([], 1), ([502, 500, 503], 4), ([504] * 4, 4), ([404], 1), ([503, 422], 2)],
)
def test_a_call_to_a_forge_that_is_unavailable_is_repeated(
    statuses: list[int], sent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "PAUSES", (0.0, 0.0, 0.0))
    forge = Gitea(Site("gitea", "http://192.0.2.1", "octo/shop"))
    methods = []

    def respond(request: Request, **_: object) -> io.BytesIO:
        methods.append(request.get_method())
        if len(methods) <= len(statuses):
            status = statuses[len(methods) - 1]
            raise HTTPError(request.full_url, status, "", Message(), io.BytesIO(b"{}"))
        return io.BytesIO(b"{}")

    monkeypatch.setattr(forge, "_open", respond)
    failure = pytest.raises(ForgeFailed, match="failed to update pull request 7")
    with failure if sent == len(statuses) else nullcontext():
        forge.update(PullRequest(7, ""), Proposal("head", "main", "c0ffee", "title", "body"))
    assert methods == ["PATCH"] * sent


def test_a_call_in_time_returns_or_raises_what_it_returns_or_raises() -> None:
    assert in_time(lambda: None) is None
    assert in_time(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        in_time(lambda: 1 // 0)
    with pytest.raises(TooSlow):
        in_time(lambda: time.sleep(0.3), seconds=0.01)
