"""Lifetime of tokens: the granted one counts; they are renewed after about two thirds of it."""

from __future__ import annotations

import base64
import json
import random
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from k8s_ucp.errors import UcpError
from k8s_ucp.kube import Kube
from k8s_ucp.reconciler.runtime.clock import Clock
from k8s_ucp.reconciler.runtime.work_queue import BackOff
from k8s_ucp.timestamps import parse_stamp, stamp

SHORTEST = 600
"""Minimum that TokenRequest accepts, in seconds."""
LEAST = 60.0
"""Minimum lifetime that we assume, whatever a server says, so that renewals don't spin."""
MOST = 10 * 365 * 86_400.0
RENEW_AT = 2 / 3
RETRY = BackOff(start=1.0, cap=30.0)
"""Delay between attempts to renew a token that is still valid; the server may be busy."""
JITTER = 1 / 30
"""Renewals are earlier by up to this part of the lifetime, so that clusters registered together
spread."""


@dataclass(frozen=True)
class Token:
    """A granted token. Its text must never reach a log, an error or an annotation."""

    text: str
    issued_at: float
    expires_at: float

    def __repr__(self) -> str:
        return f"Token(expires {stamp(self.expires_at)})"

    def annotations(self, issued: str, expires: str) -> dict[str, str]:
        """Its times, under the two annotation names."""
        return {issued: stamp(self.issued_at), expires: stamp(self.expires_at)}

    def renew_at(self, whose: str) -> float:
        """When it is due for renewal, in seconds since the epoch. whose: see the function."""
        return renewal_time(stamp(self.issued_at), stamp(self.expires_at), whose)


def request(
    kube: Kube, namespace: str, service_account: str, *, lifetime: float, clock: Clock
) -> Token:
    """Request a token. The server may grant a shorter or longer lifetime. Raises KubeError.

    The lifetime starts now by our clock, since the server's may differ by hours.
    """
    issued = clock()
    text, expires = kube.request_token(
        namespace, service_account, seconds=max(SHORTEST, int(lifetime))
    )
    life = _life(text)
    if life is None:
        granted = parse_stamp(expires)
        life = granted - issued if granted is not None else SHORTEST
        if life < LEAST:
            life = SHORTEST
    return Token(text, issued, issued + min(max(life, LEAST), MOST))


def _life(text: str) -> float | None:
    """Lifetime in seconds by the token's claims, both on the server's clock; None: unknown."""
    parts = text.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        life = float(claims["exp"]) - float(claims["iat"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return life if life > 0 else None


def renewal_time(issued: str | None, expires: str | None, whose: str) -> float:
    """When the token with these two times is due for renewal, in seconds since the epoch.

    whose: name of the cluster, for a jitter that is the same for the same times. Returns 0 (always
    due) if a time is missing or unreadable, or the lifetime is not positive.
    """
    first, last = parse_stamp(issued), parse_stamp(expires)
    if first is None or last is None or last <= first:
        return 0.0
    chance = zlib.crc32(f"{whose} {issued}".encode()) / 0xFFFFFFFF
    return first + (last - first) * (RENEW_AT - JITTER * chance)


class Renewing:
    """A TokenSource of kube/: requested on first use, renewed when due or rejected.

    Sends one request at a time; a failed renewal does no harm while the token is valid.
    """

    def __init__(self, take: Callable[[], Token], whose: str, clock: Clock) -> None:
        """take: requests a new token, raises UcpError. whose: for the jitter."""
        self._take = take
        self._whose = whose
        self._clock = clock
        self._token: Token | None = None
        self._failures = 0
        self._again_at = 0.0
        """Earliest time of the next attempt, while the token is valid."""
        self._lock = threading.Lock()

    def __call__(self, *, rejected: str | None = None) -> str:
        token = self._token
        usable = token is not None and token.text != rejected
        if token and usable and not self._is_due(token):
            return token.text
        with self._lock:
            if self._token and self._token is not token:
                return self._token.text
            if token and usable and not self._is_due(token):
                # Another thread has just tried to renew it, and failed.
                return token.text
            try:
                self._token = self._take()
            except UcpError:
                if token is None or not usable or self._clock() >= token.expires_at:
                    raise
                self._failures += 1
                delay = RETRY.delay(self._failures, random.random())  # noqa: S311
                self._again_at = self._clock() + delay
                return token.text
            self._failures, self._again_at = 0, 0.0
            return self._token.text

    def _is_due(self, token: Token) -> bool:
        now = self._clock()
        if now >= token.expires_at:
            return True
        return now >= token.renew_at(self._whose) and not now < self._again_at <= now + RETRY.cap
