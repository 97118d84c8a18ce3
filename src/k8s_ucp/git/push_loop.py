"""Pushes to a branch with concurrent pushes: fetch the tip, commit on top, push, retry."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from k8s_ucp.errors import DeadlineExceeded
from k8s_ucp.git.failures import Interrupted, Rejected

_T = TypeVar("_T")


@dataclass(frozen=True)
class Pace:
    """How long and how often to try. Seconds."""

    deadline: float = 300.0
    tries: int = 100
    interruptions: int = 3
    longest_pause: float = 10.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = field(default=random.random)


FEW = Pace(tries=8)
"""For what is pushed now and then: so many collisions are no chance."""


def push_until_accepted(
    attempt: Callable[[int], _T], pace: Pace = FEW, report: Callable[[str], None] = lambda _: None
) -> _T:
    """What `attempt` returns, which gets its number, reads the branch, commits on top and pushes.

    It is made again after Rejected, and a few times after Interrupted; what else it raises is
    final. Raises DeadlineExceeded when others were faster every time.
    """
    start, number, interruptions = pace.clock(), 0, 0
    while True:
        number += 1
        begun = pace.clock()
        try:
            return attempt(number)
        except Rejected as error:
            rivals, took, last = number, pace.clock() - begun, error.message
            report(f"attempt {number}: the branch has moved, or is being moved")
        except Interrupted as error:
            interruptions += 1
            if interruptions > pace.interruptions:
                raise
            rivals, took, last = interruptions + 1, 0.5, error.message
            report(f"attempt {number}: the connection was interrupted")
        # A random part of a window that grows with the rivals met so far and with the time of an
        # attempt, in which a rival's push does harm: two who collided don't collide again.
        pause = pace.random() * min(took * 2 ** min(rivals - 1, 10), pace.longest_pause)
        spent = pace.clock() - start
        if number == pace.tries or pause >= pace.deadline - spent:
            raise DeadlineExceeded(
                f"the push ({number} attempts)",
                spent,
                last,
                next="run the command again: it continues from the current state of the branch",
            )
        pace.sleep(pause)
