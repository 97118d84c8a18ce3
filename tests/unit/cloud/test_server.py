"""What the simulated cloud's process caches, and how many connections it serves."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from urllib.request import urlopen

import pytest
from botocore.loaders import JSONFileLoader, Loader, create_loader

from k8s_ucp.bounded_server import BoundedConnections
from k8s_ucp.cloud.server import read_endpoints_once, server_on


def test_endpoints_are_read_once_and_service_models_once_per_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Loader, "FILE_LOADER_CLASS", JSONFileLoader)
    read_endpoints_once()

    first, second = create_loader(), create_loader()

    assert first.load_data("endpoints") is second.load_data("endpoints")
    assert first.load_data("endpoints")["partitions"]
    # Not shared: a client changes the model of its service.
    models = [each.load_service_model("sts", "service-2") for each in (first, second)]
    assert models[0] == models[1]
    assert models[0] is not models[1]


def test_connections_without_a_request_make_room_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Any user of the machine can open them, without the access key."""
    monkeypatch.setattr(BoundedConnections, "most_connections", 4)

    def application(_: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        start("200 OK", [])
        return [b"ok"]

    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        address = listener.getsockname()
        server = server_on(listener, application)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
        idle = [stack.enter_context(socket.create_connection(address, 5)) for _ in range(6)]

        with urlopen(f"http://127.0.0.1:{address[1]}/", timeout=5) as answer:
            assert answer.status == 200

        assert [each.recv(1) for each in idle[:2]] == [b"", b""]
