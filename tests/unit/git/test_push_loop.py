"""A push rejected because the branch has moved is retried on top of the new commits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from k8s_ucp.errors import DeadlineExceeded, UcpError
from k8s_ucp.git.failures import GitFailed, Interrupted, Rejected
from k8s_ucp.git.push_loop import FEW, LONG_PAUSE, Pace, push_until_accepted


@pytest.mark.parametrize("others", [0, 1, FEW.tries - 1])
def test_a_rejected_push_is_retried_until_the_remote_accepts_it(others: int) -> None:
    pauses = list[float]()

    def attempt(number: int) -> int:
        if number <= others:
            raise Rejected("the branch has moved")
        return number

    assert push_until_accepted(attempt, replace(FEW, sleep=pauses.append)) == others + 1
    assert len(pauses) == others
    assert all(0 <= pause <= FEW.longest_pause for pause in pauses)


def test_pauses_after_slow_attempts_have_room_for_several_of_them() -> None:
    """Otherwise fifty slow promotions on one branch would keep colliding."""
    now, took, pauses = 0.0, 5.0, list[float]()

    def attempt(number: int) -> None:
        nonlocal now
        now += took
        raise Rejected("the branch has moved")

    def sleep(seconds: float) -> None:
        nonlocal now
        pauses.append(seconds)
        now += seconds

    pace = Pace(deadline=400, clock=lambda: now, sleep=sleep, random=lambda: 0.99)
    with pytest.raises(DeadlineExceeded):
        push_until_accepted(attempt, pace)
    assert max(pauses) == pytest.approx(0.99 * LONG_PAUSE * took)
    assert now <= pace.deadline + took, "an attempt has a deadline of its own"


@pytest.mark.parametrize(
    ("failure", "ends_with", "times"),
    [
        (Rejected, DeadlineExceeded, FEW.tries),
        (Interrupted, Interrupted, FEW.interruptions + 1),
        (GitFailed, GitFailed, 1),
    ],
)
def test_retries_of_a_push_are_limited(
    failure: type[GitFailed], ends_with: type[UcpError], times: int
) -> None:
    calls = list[int]()

    def attempt(number: int) -> None:
        calls.append(number)
        raise failure("no")

    with pytest.raises(ends_with, match="no"):
        push_until_accepted(attempt, replace(FEW, sleep=lambda _: None))
    assert calls == list(range(1, times + 1))


def test_the_advice_of_the_last_failure_survives_the_retries() -> None:
    def attempt(_: int) -> None:
        raise Rejected("main.lock: File exists", next="delete the .lock file")

    with pytest.raises(DeadlineExceeded) as error:
        push_until_accepted(attempt, replace(FEW, sleep=lambda _: None))
    assert error.value.next == "delete the .lock file"
