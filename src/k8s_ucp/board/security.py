"""Access control of the board. Pure, except for the sessions that it stores.

The board listens on loopback, to which every user of the machine can connect, and so can every web
page in the user's browser. Therefore a request must have our address as its host (which excludes
DNS rebinding), must not come from another page, and needs a session. A session is issued for the
token in the URL that `ucp board` prints. Each token is valid once, because URLs end up in histories
and process lists.

Browsers separate cookies by host, not by port. So the cookie is for a path that nobody can guess,
and isn't sent to other servers on loopback.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

COOKIE = "ucp-board"
CSRF_HEADER = "X-UCP-Board"
_FROM_US = ("same-origin", "none")
"""Sec-Fetch-Site for requests of our own page, and for URLs that the user typed."""


def hosts(port: int) -> tuple[str, ...]:
    """Valid values of the header Host."""
    return (f"127.0.0.1:{port}", f"localhost:{port}")


def is_own_host(headers: Mapping[str, str], port: int) -> bool:
    """Whether the request is addressed to us, so that no other name was resolved to us."""
    return headers.get("Host", "").lower() in hosts(port)


def is_foreign(headers: Mapping[str, str]) -> bool:
    """Whether another page caused the request. Host must have been checked before."""
    origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site")
    if origin is not None and origin.lower() != f"http://{headers.get('Host', '').lower()}":
        return True
    return site is not None and site not in _FROM_US


def may_change(headers: Mapping[str, str], session: BoardSession) -> bool:
    """Whether a change comes from the page of this session, which alone knows its CSRF token."""
    return (
        "Origin" in headers
        and not is_foreign(headers)
        and headers.get("Content-Type", "").partition(";")[0] == "application/json"
        and is_same(headers.get(CSRF_HEADER, ""), session.csrf)
    )


def is_same(given: str, secret: str) -> bool:
    """Constant-time comparison."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def policy(origin: str, base: str) -> str:
    """The page's Content-Security-Policy: its own files by path, nothing else."""
    own = f"{origin}{base}"
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {own}/board.js",
            f"style-src {own}/board.css",
            f"img-src {own}/",
            f"connect-src {own}/",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every response."""


@dataclass(frozen=True)
class BoardSession:
    """One browser that presented a token. csrf: token that its page sends with every change."""

    cookie: str
    csrf: str


@dataclass(frozen=True)
class KeptSessions:
    """The secrets of a board. sessions: oldest first."""

    base: str
    token: str
    sessions: tuple[BoardSession, ...] = ()


class Sessions:
    """The current token, and the sessions issued for earlier ones."""

    MOST = 64
    """Number of sessions; the oldest is deleted first."""

    def __init__(self, kept: KeptSessions | None = None) -> None:
        """kept: of a board that starts again."""
        new = KeptSessions(f"/{secrets.token_urlsafe(12)}", secrets.token_urlsafe(32))
        kept = kept or new
        self.base = kept.base
        """Path of everything except the token exchange."""
        self._lock = threading.Lock()
        self._token = kept.token
        self._sessions = {each.cookie: each for each in kept.sessions}

    def kept(self) -> KeptSessions:
        """Everything that a board needs to start again."""
        with self._lock:
            return KeptSessions(self.base, self._token, tuple(self._sessions.values()))

    @property
    def token(self) -> str:
        """The current token; it is replaced when it is used."""
        with self._lock:
            return self._token

    def exchange(self, token: str) -> BoardSession | None:
        """A new session for the current token; None for any other."""
        with self._lock:
            if not is_same(token, self._token):
                return None
            self._token = secrets.token_urlsafe(32)
            session = BoardSession(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
            self._sessions[session.cookie] = session
            while len(self._sessions) > self.MOST:
                del self._sessions[next(iter(self._sessions))]
            return session

    def find(self, headers: Mapping[str, str]) -> BoardSession | None:
        """The session of a request, by its cookie."""
        try:
            morsel = SimpleCookie(headers.get("Cookie", "")).get(COOKIE)
        except CookieError:
            return None
        if morsel is None:
            return None
        with self._lock:
            known = list(self._sessions.values())
        return next((each for each in known if is_same(morsel.value, each.cookie)), None)

    def set_cookie(self, session: BoardSession) -> str:
        """Value of the header Set-Cookie for the session."""
        return f"{COOKIE}={session.cookie}; Path={self.base}/; HttpOnly; SameSite=Strict"
