"""A source of snapshots that a test controls, and an HTTP client that behaves as a browser does."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from k8s_ucp.board.actions import Action, Outcome
from k8s_ucp.board.collector import Collector
from k8s_ucp.board.server import Board, BoardServer, listen
from k8s_ucp.board.snapshot import Snapshot
from k8s_ucp.errors import UcpError

ENVIRONMENTS = ("dev", "stage", "preprod", "prod")


def app_row(app: str, env: str, tag: str = "1.0.0", **more: Any) -> dict[str, Any]:
    return {
        "app": app,
        "env": env,
        "application": f"{app}-{env}",
        "sync": "Synced",
        "health": "Healthy",
        "since": "2026-01-01T00:00:00Z",
        "why": "",
        "images": [f"registry.example.org/{app}:{tag}"],
        "tag": tag,
        "pins": {app: tag},
        "held": [],
        "changed": {
            "by": "Ada",
            "time": 1_760_000_000,
            "kind": "promote",
            "commit": "0123456789ab",
            "from": "0.9.0",
            "to": tag,
        },
        "newer": None,
        "problem": "",
        **more,
    }


def board_data(apps: int = 2, environments: tuple[str, ...] = ("stage", "prod")) -> Snapshot:
    """A topology in which everything is healthy."""
    return {
        "about": {
            "": {
                "topology": "demo",
                "core": {"name": "demo-core", "provider": "embedded", "ready": True},
                "environments": list(environments),
                "asked": True,
                "lost": False,
                "lostSince": None,
                "problem": "",
                "write": False,
            }
        },
        "apps": {
            f"app-{number:03}/{env}": app_row(f"app-{number:03}", env)
            for number in range(apps)
            for env in environments
        },
        "environments": {
            env: {
                "name": env,
                "state": "running",
                "provider": "embedded",
                "ready": True,
                "registered": True,
                "reachable": True,
                "cluster": f"demo-{env}",
                "simulated": True,
                "tokenExpiresAt": "2100-01-01T00:00:00Z",
                "why": "",
            }
            for env in environments
        },
        "components": {
            "argocd": {
                "name": "argocd",
                "version": "v3.5.7",
                "ready": True,
                "placement": "host",
                "why": "",
            }
        },
        "applications": {
            "root": {
                "name": "root",
                "sync": "Synced",
                "health": "Healthy",
                "revision": "0123456789ab",
                "why": "",
            }
        },
        "mirrors": {
            "ca": {"name": "ca", "ready": True, "done": ["demo-stage"], "pending": [], "why": ""}
        },
        "findings": {
            "mirror/ca": {
                "id": "mirror/ca",
                "severity": "warning",
                "message": "mirror ca: 1 copy pending",
                "next": "ucp mirror list",
            }
        },
        "resources": {
            "Provider//cloud": {
                "kind": "Provider",
                "name": "cloud",
                "synced": "Unknown",
                "ready": "True",
                "deleting": False,
                "why": "",
            }
        },
        "events": {
            "1": {
                "last": "2026-01-01T00:00:00Z",
                "count": 3,
                "type": "Warning",
                "about": "Application argocd/app-000-prod",
                "reason": "OperationCompleted",
                "message": "sync failed",
            }
        },
    }


@dataclass
class WrittenSource:
    """Provides `data` to the board; `change` edits it and notifies the board."""

    data: Snapshot = field(default_factory=board_data)
    opened: int = 0
    open_now: int = 0
    _changed: Callable[[], None] = lambda: None

    @contextlib.contextmanager
    def open(self, changed: Callable[[], None]) -> Iterator[Callable[[], Snapshot]]:
        self._changed = changed
        self.opened += 1
        self.open_now += 1
        try:
            yield lambda: json.loads(json.dumps(self.data))
        finally:
            self.open_now -= 1

    def change(self, section: str, key: str, **fields: Any) -> None:
        self.data[section][key] = {**self.data[section].get(key, {}), **fields}
        self._changed()


@dataclass
class Actor:
    """Records the requested actions, and does nothing."""

    asked: list[Action] = field(default_factory=list)
    answer: Outcome = field(default_factory=lambda: Outcome(True, "promoted: echo in prod"))

    def __call__(self, action: Action) -> Outcome:
        self.asked.append(action)
        return self.answer


def written_history(app: str, env: str) -> list[dict[str, Any]]:
    """One change, for an app that exists."""
    if not app.startswith("app-"):
        raise UcpError(f"the app {app} does not exist in the repository")
    changed: dict[str, Any] = app_row(app, env)["changed"]
    return [changed]


def make_server(source: WrittenSource, actor: Actor | None = None) -> BoardServer:
    picture = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'
    collector = Collector(source, linger=0.2)
    board = Board("demo", collector, lambda: picture, written_history, actor)
    return BoardServer(board, listen())


@dataclass
class Answer:
    code: int
    headers: http.client.HTTPMessage
    body: bytes


PATIENCE = 90.0
"""Seconds: a change is a push, whose hooks build every app, on a possibly busy machine."""


@dataclass
class Client:
    """A browser's HTTP requests, without a page."""

    port: int
    cookie: str = ""
    base: str = ""
    csrf: str = ""

    def ask(
        self,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        method: str = "GET",
        body: bytes | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        cookie = {"Cookie": self.cookie} if self.cookie else {}
        try:
            connection.request(method, path, body, {**cookie, **(headers or {})})
            found = connection.getresponse()
            return Answer(found.status, found.headers, found.read())
        finally:
            connection.close()

    def enter(self, url: str) -> Answer:
        """Exchange the token, keep the cookie, load the page."""
        parts = urlsplit(url)
        answer = self.ask(f"{parts.path}?{parts.query}")
        assert answer.code == 303, answer
        self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        self.base = answer.headers["Location"].rstrip("/")
        page = self.ask(f"{self.base}/")
        self.csrf = page.body.decode().partition('name="csrf" content="')[2].partition('"')[0]
        return page

    def change(self, data: Any, **headers: str) -> Answer:
        """Send a change as the page does, but with these headers; "" omits one."""
        given = {
            "Origin": f"http://127.0.0.1:{self.port}",
            "Sec-Fetch-Site": "same-origin",
            "Content-Type": "application/json",
            "X-UCP-Board": self.csrf,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        kept = {name: value for name, value in given.items() if value}
        return self.ask(f"{self.base}/actions", kept, method="POST", body=json.dumps(data).encode())

    @contextlib.contextmanager
    def stream(self) -> Iterator[Iterator[tuple[str, Any]]]:
        """Yield (name, data) of each event that the server sends."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", f"{self.base}/events", headers={"Cookie": self.cookie})
        found = connection.getresponse()
        assert found.status == 200
        try:
            yield _events(found)
        finally:
            found.close()
            connection.close()


def _events(stream: Any) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in stream:
        text = line.decode().rstrip("\n")
        if text.startswith("event: "):
            name = text.removeprefix("event: ")
        elif text.startswith("data: "):
            yield name, json.loads(text.removeprefix("data: "))
