"""Time for the reconciler, so that tests can inject another clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], float]
"""Seconds since the epoch."""

system_clock: Clock = time.time


def stamp(seconds: float) -> str:
    """A time as RFC 3339 in UTC, to the second, as Kubernetes writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_stamp(text: str | None) -> float | None:
    """Seconds since the epoch of an RFC 3339 time; None if it isn't one."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
