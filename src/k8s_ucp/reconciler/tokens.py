"""Life of a token: what was granted counts, and it is renewed at about two thirds of it."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from k8s_ucp.errors import UcpError
from k8s_ucp.kube import Kube
from k8s_ucp.reconciler.clock import Clock, parse_stamp, stamp

SHORTEST = 600
"""TokenRequest refuses less, in seconds."""
RENEW_AT = 2 / 3
JITTER = 1 / 30
"""Up to this part of its life earlier, so that clusters registered together part ways."""


@dataclass(frozen=True)
class Token:
    """A token just granted. Its text must never reach a log, an error or an annotation."""

    text: str
    issued_at: float
    expires_at: float

    def __repr__(self) -> str:
        return f"Token(expires {stamp(self.expires_at)})"

    def annotations(self, issued: str, expires: str) -> dict[str, str]:
        """Its times under the two annotation names."""
        return {issued: stamp(self.issued_at), expires: stamp(self.expires_at)}

    def renew_at(self, whose: str) -> float:
        """When it is due, in seconds since the epoch."""
        return renew_at(stamp(self.issued_at), stamp(self.expires_at), whose)


def request(
    kube: Kube, namespace: str, service_account: str, *, lifetime: float, clock: Clock
) -> Token:
    """Ask for a token. The server may grant a shorter or a longer life. Raises KubeError."""
    issued = clock()
    text, expires = kube.request_token(
        namespace, service_account, seconds=max(SHORTEST, int(lifetime))
    )
    granted = parse_stamp(expires)
    return Token(text, issued, granted if granted is not None else issued + SHORTEST)


def renew_at(issued: str | None, expires: str | None, whose: str) -> float:
    """When the token with these two stamps is due, in seconds since the epoch.

    whose: the cluster's name, for the jitter: with the stamps it always gives the same time.
    0, always due, where a stamp is missing or unreadable or the life is no life at all.
    """
    first, last = parse_stamp(issued), parse_stamp(expires)
    if first is None or last is None or last <= first:
        return 0.0
    chance = zlib.crc32(f"{whose} {issued}".encode()) / 0xFFFFFFFF
    return first + (last - first) * (RENEW_AT - JITTER * chance)


class Renewing:
    """A TokenSource of kube/: taken when first needed, renewed when due or turned down.

    One request at a time; while a token lives, failing to renew it harms nobody.
    """

    def __init__(self, take: Callable[[], Token], whose: str, clock: Clock) -> None:
        """take: asks for a new one. Raises UcpError. whose: for the jitter."""
        self._take = take
        self._whose = whose
        self._clock = clock
        self._token: Token | None = None
        self._lock = threading.Lock()

    def __call__(self, *, rejected: str | None = None) -> str:
        token = self._token
        usable = token is not None and token.text != rejected
        if token and usable and self._clock() < token.renew_at(self._whose):
            return token.text
        with self._lock:
            if self._token and self._token is not token:
                return self._token.text
            try:
                self._token = self._take()
            except UcpError:
                if token is None or not usable or self._clock() >= token.expires_at:
                    raise
                return token.text
            return self._token.text
