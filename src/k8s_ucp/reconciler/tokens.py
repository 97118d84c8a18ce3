"""Life of a token: what was granted counts, and it is renewed at about two thirds of it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

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
