"""Who may take a Lease: decided by our own clock, and by whether a neighbour still lives."""

from __future__ import annotations

import os
from typing import Any

import pytest

from k8s_ucp import process
from k8s_ucp.reconciler.runtime.leader import LASTS, Holder, LeaseState

HERE = Holder.here("machine")


def lease(holder: str, renewed: str = "t0", seconds: int = 15) -> dict[str, Any]:
    return {
        "spec": {
            "holderIdentity": holder,
            "renewTime": renewed,
            "leaseDurationSeconds": seconds,
        }
    }


@pytest.mark.parametrize("spec", [{}, {"holderIdentity": ""}, {"holderIdentity": None}])
def test_what_nobody_holds_is_taken(spec: dict[str, Any]) -> None:
    assert LeaseState(HERE).may_take({"spec": spec}, 0)


def test_our_own_is_renewed() -> None:
    assert LeaseState(HERE).may_take(lease(str(HERE)), 0)


def test_another_s_is_taken_once_it_stood_still_for_its_whole_life() -> None:
    standing = LeaseState(HERE)
    other = lease("elsewhere/1/1.00")
    assert not standing.may_take(other, 100)
    assert not standing.may_take(other, 100 + LASTS)
    assert standing.may_take(other, 100 + LASTS + 0.1)


def test_each_renewal_counts_anew_whatever_its_time_says() -> None:
    standing = LeaseState(HERE)
    for number in range(10):
        assert not standing.may_take(lease("elsewhere/1/1.00", f"t{number}"), number * LASTS)


def test_a_longer_life_is_respected() -> None:
    standing = LeaseState(HERE)
    other = lease("elsewhere/1/1.00", seconds=60)
    assert not standing.may_take(other, 0)
    assert not standing.may_take(other, 59)
    assert standing.may_take(other, 61)


def test_a_neighbour_that_is_gone_is_succeeded_at_once() -> None:
    assert HERE.outlived(f"machine/{2**22 + 1}/1.00")
    assert HERE.outlived(f"machine/{os.getpid()}/1.00"), "the PID is another process's now"


@pytest.mark.parametrize(
    "other",
    [
        f"other/{2**22 + 1}/1.00",
        "machine",
        "machine/x/1.00",
        "machine/1/x",
        "somebody",
    ],
)
def test_who_lives_or_lives_elsewhere_is_not_outlived(other: str) -> None:
    assert not HERE.outlived(other)


@pytest.mark.parametrize("older", [False, True])
def test_a_neighbour_that_lives_is_not_outlived(older: bool) -> None:
    """older: as versions named it that knew a start as a time of day."""
    parent = process.identify(os.getppid())
    assert parent is not None
    start = f"{parent.started_at:.2f}" if older else parent.start
    assert not HERE.outlived(str(Holder("machine", parent.pid, start)))


def test_a_neighbour_of_another_boot_is_outlived() -> None:
    start = f"00000000-0000-0000-0000-000000000000:{HERE.start.rpartition(':')[2]}"
    assert HERE.outlived(str(Holder("machine", HERE.pid, start)))
