"""A cloud's token endpoint can cost the reconciler little time and few bytes."""

from __future__ import annotations

import gzip
import time
from unittest.mock import Mock

import pytest

from k8s_ucp.kube import Unreachable
from k8s_ucp.reconciler.access.authenticators import cloud_access
from k8s_ucp.reconciler.access.authenticators.base import NoAccess
from k8s_ucp.reconciler.access.authenticators.cloud_access import CloudAccess
from tests.raw_server import Speak, endless, server, trickling

OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "speak",
    [trickling(OK + b"Content-Length: 10000\r\n\r\n", b" "), endless(OK + b"\r\n", b" " * 65536)],
    ids=["a byte now and then", "content without end"],
)
def test_a_slow_or_endless_token_endpoint_times_out(
    speak: Speak, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud_access, "SECONDS", 1.0)
    access = CloudAccess(Mock(), time.time)
    with server(speak) as (address, _):
        began = time.monotonic()
        with pytest.raises(Unreachable, match=r"token endpoint of 127\.0\.0\.1"):
            access.fetch(address)
        assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("encoding", "content"),
    [(b"identity", b"[" * 100_000), (b"gzip", gzip.compress(b" " * 100_000_000 + b"{}"))],
    ids=["nested too deeply", "unpacks to a multiple"],
)
def test_a_response_that_would_be_costly_to_parse_is_refused(
    encoding: bytes, content: bytes
) -> None:
    head = OK + b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n"
    answer = head % (encoding, len(content)) + content
    with (
        server(lambda connection: connection.sendall(answer)) as (address, _),
        pytest.raises(NoAccess, match=r"token endpoint of 127\.0\.0\.1 returned 200"),
    ):
        CloudAccess(Mock(), time.time).fetch(address)
