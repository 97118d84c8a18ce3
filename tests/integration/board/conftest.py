"""A board whose data is written by the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from k8s_ucp.board.server import BoardServer
from tests.integration.board.sources import Actor, WrittenSource, make_server
from tests.integration.gitops.promotion.conftest import environment, hosted, repository, ucp

__all__ = ["environment", "hosted", "repository", "ucp"]

Serve = Callable[..., BoardServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts boards, and stops all of them at the end of the test."""
    servers: list[tuple[BoardServer, threading.Thread]] = []

    def start(source: WrittenSource, actor: Actor | None = None) -> BoardServer:
        server = make_server(source, actor)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        servers.append((server, thread))
        return server

    yield start
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()
