"""Pushes to a branch that others push to: read its tip, commit on top, push, and so on."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from k8s_ucp.git.failures import Rejected

ATTEMPTS = 8
_T = TypeVar("_T")


def push_until_accepted(
    attempt: Callable[[], _T], *, sleep: Callable[[float], None] = time.sleep
) -> _T:
    """What `attempt` returns, which reads the branch and pushes; raises the last Rejected.

    The pauses grow and are random, so that two who collided don't collide again.
    """
    for number in range(1, ATTEMPTS):
        try:
            return attempt()
        except Rejected:
            sleep(random.uniform(0, 0.05 * 2**number))  # noqa: S311 (jitter)
    return attempt()
