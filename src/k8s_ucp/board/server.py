"""The HTTP server of the board: the page, its data as server-sent events, and changes.

Python's own server is sufficient: one page for one user needs no framework.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from k8s_ucp.board import actions, page, security
from k8s_ucp.board.collector import Collector, TooManyViewers
from k8s_ucp.board.security import BoardSession, Sessions
from k8s_ucp.board.snapshot import Row, difference
from k8s_ucp.bounded_server import BoundedServer
from k8s_ucp.errors import UcpError
from k8s_ucp.loopback import ADDRESS

ALIVE_SECONDS = 15.0
"""Interval of keep-alive messages on a stream, which detect a closed page."""
PATIENCE_SECONDS = 30.0
"""Timeout for receiving a request and for sending a response."""
LARGEST_BODY = 16 * 1024


@dataclass(frozen=True)
class Board:
    """What the server serves. run: None if the board is read-only."""

    topology: str
    collector: Collector
    picture: Callable[[], str]
    """The map of the topology, as SVG."""
    history: Callable[[str, str], list[Row]] = lambda *_: []
    """The last changes of an app in an environment. Raises UcpError."""
    run: actions.Run | None = None
    sessions: Sessions = field(default_factory=Sessions)
    acting: threading.Lock = field(default_factory=threading.Lock)
    """Serializes changes."""


@dataclass(frozen=True)
class Rest:
    """What an unused board does after a while."""

    after: float
    """Seconds."""
    begin: Callable[[], None]


def listen(port: int = 0) -> socket.socket:
    """Listen on loopback. port: 0 for a free one. Raises UcpError if the port is in use."""
    try:
        return socket.create_server((ADDRESS, port))
    except OSError as error:
        raise UcpError(
            f"failed to listen on {ADDRESS}:{port}: {error.strerror}",
            next="choose another port with --port, or leave it out",
        ) from error


class BoardServer(BoundedServer):
    """On loopback; a browser keeps a connection for each page that it shows."""

    most_connections = 256

    def __init__(
        self,
        board: Board,
        listener: socket.socket,
        announce: Callable[[str], None] = lambda _: None,
        rest: Rest | None = None,
    ) -> None:
        """announce: called with the next URL each time that one was used."""
        super().__init__((ADDRESS, 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_address = listener.getsockname()
        self.board = board
        self.announce = announce
        self._rest = rest
        self._used = time.monotonic()

    def service_actions(self) -> None:
        if self.is_used or self.board.collector.working:
            self._used = time.monotonic()
        elif self._rest and time.monotonic() - self._used >= self._rest.after:
            self._rest.begin()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """Valid for one browser; then it changes."""
        return f"http://{ADDRESS}:{self.port}/?token={self.board.sessions.token}"

    def shutdown(self) -> None:
        self.board.collector.close()
        super().shutdown()


class _Handler(BaseHTTPRequestHandler):
    server: BoardServer
    protocol_version = "HTTP/1.1"
    server_version = "ucp"
    sys_version = ""
    timeout = PATIENCE_SECONDS

    def do_GET(self) -> None:
        sessions = self.server.board.sessions
        parts = urlsplit(self.path)
        if parts.path == "/" and security.is_own_host(self._headers, self.server.port):
            self._exchange(parse_qs(parts.query).get("token", [""])[0])
            return
        session = self._session()
        name = parts.path.removeprefix(f"{sessions.base}/")
        if session is None or name == parts.path:
            self._refuse()
        elif name == "":
            self._page(session)
        elif name in page.TYPES:
            self._answer(200, page.asset(name), page.TYPES[name])
        elif name == "map.svg":
            self._answer(200, self.server.board.picture().encode(), "image/svg+xml")
        elif name == "history":
            self._history(parse_qs(parts.query))
        elif name == "events":
            self._stream()
        else:
            self._answer(404, b"not found\n")

    def do_POST(self) -> None:
        # Read the body before responding: closing a connection with unread data may discard the
        # response.
        body = self._body()
        board = self.server.board
        session = self._session()
        if session is None or not security.may_change(self._headers, session):
            self._refuse()
        elif self.path != f"{board.sessions.base}/actions":
            self._answer(404, b"not found\n")
        elif body is None:
            self._answer(413, b"too large\n")
        elif board.run is None:
            self._answer_outcome(
                actions.Outcome(False, "the board is read-only\n  next: ucp board --write")
            )
        else:
            with board.acting:
                outcome = actions.attempt(board.run, body)
            self._answer_outcome(outcome)

    def _body(self) -> bytes | None:
        """The body; None if it is too large, or its length is unknown."""
        self.close_connection = True
        length = self.headers.get("Content-Length", "")
        size = int(length) if length.isascii() and length.isdigit() else 0
        body = self.rfile.read(min(size, 16 * LARGEST_BODY))
        return body if 0 < size <= LARGEST_BODY else None

    def _session(self) -> BoardSession | None:
        """The session of a request; None if the request is refused."""
        if not security.is_own_host(self._headers, self.server.port):
            return None
        if security.is_foreign(self._headers):
            return None
        return self.server.board.sessions.find(self._headers)

    def _exchange(self, token: str) -> None:
        """Exchange a token for a cookie, and redirect to a URL without the token."""
        board = self.server.board
        session = board.sessions.exchange(token)
        if session is None:
            self._refuse()
            return
        self._head(
            303,
            {
                "Location": f"{board.sessions.base}/",
                "Set-Cookie": board.sessions.set_cookie(session),
                "Content-Length": "0",
            },
        )
        self.server.announce(self.server.url)

    def _page(self, session: BoardSession) -> None:
        board = self.server.board
        text = page.page(board.topology, session.csrf, may_change=board.run is not None)
        policy = security.policy(f"http://{self.headers['Host']}", board.sessions.base)
        self._answer(200, text, "text/html; charset=utf-8", {"Content-Security-Policy": policy})

    def _history(self, query: Mapping[str, list[str]]) -> None:
        app, env = (query.get(name, [""])[0] for name in ("app", "env"))
        try:
            found = self.server.board.history(app, env)
        except UcpError as error:
            self._answer(404, f"{error}\n".encode())
            return
        self._answer(200, json.dumps(found).encode(), "application/json")

    def _stream(self) -> None:
        collector = self.server.board.collector
        self.close_connection = True
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(collector.viewer())
            except TooManyViewers as error:
                self._answer(503, f"{error}\n".encode())
                return
            self._head(200, {"Content-Type": "text/event-stream", "Connection": "close"})
            version, shown = 0, None
            while not collector.closed:
                newer = collector.after(version, ALIVE_SECONDS)
                if newer is None:
                    self._send(b": alive\n\n")
                    continue
                version, found = newer
                if shown is None:
                    self._send(_event("snapshot", found))
                else:
                    self._send(_event("change", difference(shown, found)))
                shown = found

    def _send(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def _refuse(self) -> None:
        """Refuse without revealing the reason."""
        self.close_connection = True
        self._answer(403, b"forbidden: open the URL that `ucp board` printed last\n")

    def _answer_outcome(self, outcome: actions.Outcome) -> None:
        data = {"ok": outcome.ok, "message": outcome.message}
        self._answer(200, json.dumps(data).encode(), "application/json")

    def _answer(
        self,
        code: int,
        body: bytes,
        kind: str = "text/plain; charset=utf-8",
        more: Mapping[str, str] | None = None,
    ) -> None:
        length = {"Content-Type": kind, "Content-Length": str(len(body))}
        self._head(code, {**length, **(more or {})})
        self._send(body)

    def _head(self, code: int, headers: Mapping[str, str]) -> None:
        self.send_response(code)
        for name, value in {**security.HEADERS, **headers}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    @property
    def _headers(self) -> Mapping[str, str]:
        """Headers by their usual spelling; duplicates are joined, which makes them invalid."""
        found = {}
        for name in ("Host", "Origin", "Sec-Fetch-Site", "Cookie", "Content-Type",
                     security.CSRF_HEADER):  # fmt: skip
            values = self.headers.get_all(name)
            if values:
                found[name] = ", ".join(values)
        return found

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: URLs contain tokens."""


def _event(name: str, data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
