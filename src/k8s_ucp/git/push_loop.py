"""Pushes to a branch with concurrent pushes: fetch the tip, commit on top, push, retry."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from k8s_ucp.errors import DeadlineExceeded
from k8s_ucp.git.failures import GitFailed, Interrupted, Rejected

_T = TypeVar("_T")


@dataclass(frozen=True)
class Pace:
    """Limits of the retries, in seconds."""

    deadline: float = 300.0
    tries: int = 100
    interruptions: int = 3
    longest_pause: float = 10.0
    """After slow attempts, pauses may be longer: as long as LONG_PAUSE of them."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = field(default=random.random)


LONG_PAUSE = 8
"""Longest pause in attempts.

Fifty promotions of which each attempt takes 5 s collide 14 times each if none pauses for longer
than two attempts, and 8 times if pauses have room for all: a third less time (by a model, and over
ssh).
"""

FEW = Pace(tries=8)
"""For infrequent pushes: more collisions than that are not a coincidence."""


def push_until_accepted(
    attempt: Callable[[int], _T], pace: Pace = FEW, report: Callable[[str], None] = lambda _: None
) -> _T:
    """Call `attempt` with its number until it succeeds, and return its result.

    An attempt fetches the branch, commits on top and pushes. It is repeated after Rejected, and a
    few times after Interrupted; other errors are raised. Raises DeadlineExceeded if every attempt
    lost a race.
    """
    start, number, interruptions = pace.clock(), 0, 0
    last: GitFailed
    while True:
        number += 1
        begun = pace.clock()
        try:
            return attempt(number)
        except Rejected as error:
            rivals, took, last = number, pace.clock() - begun, error
            report(f"attempt {number}: the branch has moved, or is being moved")
        except Interrupted as error:
            interruptions += 1
            if interruptions > pace.interruptions:
                raise
            rivals, took, last = interruptions + 1, 0.5, error
            report(f"attempt {number}: the connection was interrupted")
        # Random pause in a window that grows with the number of rivals so far and the duration of
        # an attempt, which is when a rival's push does harm: pushes that collided don't collide
        # again.
        spent = pace.clock() - start
        left = pace.deadline - spent
        longest = max(pace.longest_pause, min(LONG_PAUSE * took, left / 4))
        pause = pace.random() * min(took * 2 ** min(rivals - 1, 10), longest)
        if number == pace.tries or pause >= left:
            raise DeadlineExceeded(
                f"the push ({number} attempts)",
                spent,
                last.message,
                next=last.next
                or "run the command again: it continues from the current state of the branch",
            )
        pace.sleep(pause)
