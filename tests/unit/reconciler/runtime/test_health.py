"""The health server: others' connections take none of the reconciler's files."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.request import urlopen

import pytest

from k8s_ucp.bounded_server import BoundedServer
from k8s_ucp.reconciler.runtime.health import HealthServer


@pytest.fixture
def server() -> Iterator[HealthServer]:
    found = HealthServer(0, list, list, lambda: b"metrics\n")
    found.start()
    yield found
    found.stop()


def test_connections_without_a_request_make_room_for_others(server: HealthServer) -> None:
    with ExitStack() as stack:
        idle = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 30))
            for _ in range(BoundedServer.most_connections + 8)
        ]
        for path in ("healthz", "readyz", "metrics"):
            with urlopen(f"http://127.0.0.1:{server.port}/{path}", timeout=30) as answer:
                assert answer.status == 200
        assert [each.recv(1) for each in idle[:8]] == [b""] * 8
        # The timeout of a connection, after which all of them are closed, is not over.
        idle[-1].sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert idle[-1].recv(12) == b"HTTP/1.0 200"
