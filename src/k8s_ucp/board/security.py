"""Who may talk to the board. Pure, but for the sessions that it remembers.

The board listens on loopback, where every user of the machine may connect, and so may every web
page that the user's browser has open. So a request has to name us as its host (a page elsewhere
whose name now leads here doesn't), must not come from another page, and needs a session. A session
is got for the token in the URL that `ucp board` prints: each token once, because URLs stay in
histories and lists of processes.

Browsers keep cookies apart by host, not by port: so the cookie is for a path that nobody can guess
and isn't sent to whatever else listens on loopback.
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
"""What Sec-Fetch-Site says of requests by our own page, and of those that a person typed."""


def hosts(port: int) -> tuple[str, ...]:
    """What the header Host may say."""
    return (f"127.0.0.1:{port}", f"localhost:{port}")


def is_own_host(headers: Mapping[str, str], port: int) -> bool:
    """The request is for us by name, so no name of others was led here."""
    return headers.get("Host", "").lower() in hosts(port)


def is_foreign(headers: Mapping[str, str]) -> bool:
    """Another page made the browser send it. Host has been checked before."""
    origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site")
    if origin is not None and origin.lower() != f"http://{headers.get('Host', '').lower()}":
        return True
    return site is not None and site not in _FROM_US


def may_change(headers: Mapping[str, str], session: BoardSession) -> bool:
    """A change comes from the page of this very session, which alone knows its second token."""
    return (
        "Origin" in headers
        and not is_foreign(headers)
        and headers.get("Content-Type", "").partition(";")[0] == "application/json"
        and is_same(headers.get(CSRF_HEADER, ""), session.csrf)
    )


def is_same(given: str, secret: str) -> bool:
    """Compared in a time that says nothing of how much of it was right."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def policy(origin: str, base: str) -> str:
    """The Content-Security-Policy of the page: its own files by path, nothing else."""
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
"""Of every answer."""


@dataclass(frozen=True)
class BoardSession:
    """One browser that showed a token. csrf: what its page has to say with every change."""

    cookie: str
    csrf: str


@dataclass(frozen=True)
class KeptSessions:
    """The secrets of a board. sessions: oldest first."""

    base: str
    token: str
    sessions: tuple[BoardSession, ...] = ()


class Sessions:
    """Tokens that are still good for one exchange, and the sessions that came of others."""

    MOST = 64
    """Sessions; the oldest goes first."""

    def __init__(self, kept: KeptSessions | None = None) -> None:
        """kept: of a board that goes on."""
        new = KeptSessions(f"/{secrets.token_urlsafe(12)}", secrets.token_urlsafe(32))
        kept = kept or new
        self.base = kept.base
        """Path of everything but the exchange."""
        self._lock = threading.Lock()
        self._token = kept.token
        self._sessions = {each.cookie: each for each in kept.sessions}

    def kept(self) -> KeptSessions:
        """All that a board needs to go on."""
        with self._lock:
            return KeptSessions(self.base, self._token, tuple(self._sessions.values()))

    @property
    def token(self) -> str:
        """Good for one exchange; another one takes its place then."""
        with self._lock:
            return self._token

    def exchange(self, token: str) -> BoardSession | None:
        """A session for a token that nobody has used yet."""
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
        """The header Set-Cookie for it."""
        return f"{COOKIE}={session.cookie}; Path={self.base}/; HttpOnly; SameSite=Strict"
