"""A push that others came before is made again, on what they pushed."""

from __future__ import annotations

from itertools import count

import pytest

from k8s_ucp.git.failures import GitFailed, Rejected
from k8s_ucp.git.push_loop import ATTEMPTS, push_until_accepted


@pytest.mark.parametrize("others", [0, 1, ATTEMPTS - 1])
def test_it_pushes_until_the_remote_accepts(others: int) -> None:
    calls, pauses = count(1), list[float]()

    def attempt() -> int:
        if (number := next(calls)) <= others:
            raise Rejected("the branch has moved")
        return number

    assert push_until_accepted(attempt, sleep=pauses.append) == others + 1
    assert len(pauses) == others
    assert all(0 <= pause <= 0.05 * 2**ATTEMPTS for pause in pauses)


@pytest.mark.parametrize(("failure", "times"), [(Rejected, ATTEMPTS), (GitFailed, 1)])
def test_it_gives_up(failure: type[GitFailed], times: int) -> None:
    calls = list[int]()

    def attempt() -> None:
        calls.append(1)
        raise failure("no")

    with pytest.raises(failure):
        push_until_accepted(attempt, sleep=lambda _: None)
    assert len(calls) == times
