"""The board over HTTP: authentication, content, and when it watches the topology."""

from __future__ import annotations

import json
import socket
import time
from contextlib import ExitStack
from queue import Queue
from urllib.parse import urlsplit

import pytest

from k8s_ucp.board import server as server_module
from k8s_ucp.board.actions import Action, Outcome
from k8s_ucp.board.server import BoardServer
from tests.integration.board.conftest import Serve
from tests.integration.board.sources import (
    ENVIRONMENTS,
    Actor,
    Client,
    WrittenSource,
    board_data,
)

PROMOTE = {
    "kind": "promote",
    "app": "echo",
    "env": "prod",
    "images": {"echo": "1.2.3"},
    "seen": {"echo": "1.2.2"},
}


@pytest.fixture
def source() -> WrittenSource:
    return WrittenSource()


@pytest.fixture
def server(serve: Serve, source: WrittenSource) -> BoardServer:
    return serve(source)


@pytest.fixture
def client(server: BoardServer) -> Client:
    """A client that is logged in."""
    found = Client(server.port)
    assert found.enter(server.url).code == 200
    return found


def test_token_is_exchanged_only_once_for_a_cookie(server: BoardServer) -> None:
    url = urlsplit(server.url)
    first, second = Client(server.port), Client(server.port)
    page = first.enter(server.url)
    assert page.code == 200
    assert b"demo" in page.body
    assert "token" not in first.base
    assert second.ask(f"/?{url.query}").code == 403
    assert urlsplit(server.url).query != url.query
    assert second.enter(server.url).code == 200
    assert second.cookie != first.cookie


def test_new_url_is_announced_after_a_token_was_used(server: BoardServer) -> None:
    told: Queue[str] = Queue()
    server.announce = told.put
    Client(server.port).enter(server.url)
    # It is announced after the response was sent.
    assert told.get(timeout=20) == server.url
    assert told.empty()


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/?token=%C3%A4", "/board.js"])
def test_request_without_a_valid_token_is_rejected(server: BoardServer, path: str) -> None:
    answer = Client(server.port).ask(path)
    assert answer.code == 403
    assert b"demo" not in answer.body


def test_path_without_the_cookie_is_rejected(client: Client) -> None:
    other = Client(client.port, base=client.base)
    for path in ("/", "/board.js", "/events", "/map.svg"):
        assert other.ask(f"{client.base}{path}").code == 403
    other.cookie = "ucp-board=guess"
    assert other.ask(f"{client.base}/").code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", ""]
)
def test_foreign_host_header_is_rejected(server: BoardServer, client: Client, host: str) -> None:
    headers = {"Host": host.format(port=client.port)}
    assert client.ask(f"{client.base}/", headers).code == 403
    url = urlsplit(server.url)
    assert Client(client.port).ask(f"/?{url.query}", headers).code == 403


def test_localhost_is_an_accepted_host(client: Client) -> None:
    assert client.ask(f"{client.base}/", {"Host": f"localhost:{client.port}"}).code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_request_from_another_origin_is_rejected(client: Client, headers: dict[str, str]) -> None:
    for path in ("/", "/events", "/map.svg"):
        assert client.ask(f"{client.base}{path}", headers).code == 403


def test_every_response_has_security_headers(client: Client) -> None:
    for path in ("/", "/board.js", "/board.css", "/icon.svg", "/map.svg", "/nothing"):
        answer = client.ask(f"{client.base}{path}")
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    policy = client.ask(f"{client.base}/").headers["Content-Security-Policy"]
    assert f"script-src http://127.0.0.1:{client.port}{client.base}/board.js;" in policy
    assert "unsafe" not in policy


def test_cookie_is_limited_to_this_board(server: BoardServer) -> None:
    url = urlsplit(server.url)
    cookie = Client(server.port).ask(f"/?{url.query}").headers["Set-Cookie"]
    base = server.board.sessions.base
    assert cookie.endswith(f"; Path={base}/; HttpOnly; SameSite=Strict")


def test_event_stream_begins_with_a_snapshot_and_continues_with_changes(
    client: Client, source: WrittenSource
) -> None:
    with client.stream() as events:
        name, data = next(events)
        assert (name, data) == ("snapshot", board_data())
        source.change("apps", "app-001/prod", tag="1.0.1")
        name, data = next(events)
        assert name == "change"
        assert list(data) == ["apps"]
        assert list(data["apps"]["put"]) == ["app-001/prod"]
        assert data["apps"]["put"]["app-001/prod"]["tag"] == "1.0.1"


def test_history_of_an_app_is_served(client: Client) -> None:
    found = json.loads(client.ask(f"{client.base}/history?app=app-000&env=prod").body)
    assert [(each["by"], each["from"], each["to"]) for each in found] == [("Ada", "0.9.0", "1.0.0")]
    for query in ("", "?app=../x&env=prod"):
        assert client.ask(f"{client.base}/history{query}").code == 404


def test_events_stay_small_with_a_hundred_apps_in_four_environments(serve: Serve) -> None:
    source = WrittenSource(board_data(100, ENVIRONMENTS))
    server = serve(source)
    client = Client(server.port)
    client.enter(server.url)
    with client.stream() as events:
        _, data = next(events)
        assert len(data["apps"]) == 400
        assert len(json.dumps(data)) < 300_000
        source.change("apps", "app-099/prod", health="Degraded")
        _, change = next(events)
        assert len(json.dumps(change)) < 1000


def test_source_is_open_only_while_a_browser_is_connected(
    client: Client, source: WrittenSource
) -> None:
    client.ask(f"{client.base}/board.js")
    assert source.opened == 0
    with client.stream() as events:
        next(events)
        with client.stream() as others:
            next(others)
            assert (source.opened, source.open_now) == (1, 1)
    source.change("apps", "app-000/prod", tag="2")  # Writes to a client that has disconnected.
    source.change("apps", "app-000/prod", tag="3")
    deadline = time.monotonic() + 30
    while source.open_now and time.monotonic() < deadline:
        source.change("apps", "app-000/prod", tag=str(time.monotonic()))
        time.sleep(0.05)
    assert source.open_now == 0
    with client.stream() as events:
        assert next(events)[0] == "snapshot"
    assert source.opened == 2


def test_change_is_executed_and_its_outcome_is_returned(serve: Serve) -> None:
    actor = Actor()
    server = serve(WrittenSource(), actor)
    client = Client(server.port)
    page = client.enter(server.url)
    assert b'data-mode="write"' in page.body
    answer = client.change(PROMOTE)
    assert answer.code == 200
    assert json.loads(answer.body) == {"ok": True, "message": "promoted: echo in prod"}
    assert actor.asked == [Action("promote", "echo", "prod", {"echo": "1.2.3"}, {"echo": "1.2.2"})]
    actor.answer = Outcome(False, "held: echo in prod was rolled back from 1.2.3 and held")
    assert json.loads(client.change(PROMOTE).body)["ok"] is False


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": ""},
        {"Origin": "http://evil.example"},
        {"Sec_Fetch_Site": "cross-site"},
        {"X_UCP_Board": ""},
        {"X_UCP_Board": "guess"},
        {"Content_Type": "text/plain"},
        {"Host": "evil.example"},
        {"Cookie": "ucp-board=guess"},
    ],
)
def test_change_that_does_not_come_from_the_page_is_rejected(
    serve: Serve, headers: dict[str, str]
) -> None:
    actor = Actor()
    server = serve(WrittenSource(), actor)
    client = Client(server.port)
    client.enter(server.url)
    assert client.change(PROMOTE, **headers).code == 403
    assert actor.asked == []


def test_csrf_token_of_another_session_is_rejected(serve: Serve) -> None:
    actor = Actor()
    server = serve(WrittenSource(), actor)
    one, other = Client(server.port), Client(server.port)
    one.enter(server.url)
    other.enter(server.url)
    assert one.change(PROMOTE, X_UCP_Board=other.csrf).code == 403
    assert actor.asked == []


def test_read_only_board_rejects_changes(client: Client) -> None:
    answer = client.change(PROMOTE)
    assert json.loads(answer.body) == {
        "ok": False,
        "message": "the board is read-only\n  next: ucp board --write",
    }


def test_invalid_change_is_rejected(serve: Serve) -> None:
    actor = Actor()
    server = serve(WrittenSource(), actor)
    client = Client(server.port)
    client.enter(server.url)
    for data in (
        [],
        {"kind": "delete"},
        {**PROMOTE, "app": "../x"},
        {**PROMOTE, "images": {}},
        {**PROMOTE, "seen": {}},
        {**PROMOTE, "kind": "rollback", "seen": ["1.2.2"]},
    ):
        assert json.loads(client.change(data).body)["ok"] is False
    large = {**PROMOTE, "images": {"echo": "1" * 20_000}}
    assert client.change(large).code == 413
    assert actor.asked == []


def test_connections_without_a_request_make_room_for_others(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any user of this machine can connect; the board keeps no thread for each for ever."""
    monkeypatch.setattr(server_module.BoardServer, "most_connections", 8)
    with ExitStack() as stack:
        idle = [
            stack.enter_context(socket.create_connection(("127.0.0.1", client.port), 5))
            for _ in range(12)
        ]
        assert client.ask(f"{client.base}/").code == 200
        assert [each.recv(1) for each in idle[:4]] == [b""] * 4
