"""Leader election: a Lease expires by our own clock, or when a local holder's process ended."""

from __future__ import annotations

import os
from typing import Any

import pytest

from k8s_ucp import process
from k8s_ucp.reconciler.runtime.leader import LEASE_SECONDS, Holder, LeaseState

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
def test_a_lease_without_a_holder_is_acquired(spec: dict[str, Any]) -> None:
    assert LeaseState(HERE).may_take({"spec": spec}, 0)


def test_our_own_lease_is_renewed() -> None:
    assert LeaseState(HERE).may_take(lease(str(HERE)), 0)


def test_a_foreign_lease_is_acquired_once_it_was_not_renewed_for_its_duration() -> None:
    standing = LeaseState(HERE)
    other = lease("elsewhere/1/1.00")
    assert not standing.may_take(other, 100)
    assert not standing.may_take(other, 100 + LEASE_SECONDS)
    assert standing.may_take(other, 100 + LEASE_SECONDS + 0.1)


def test_each_renewal_restarts_the_lease_duration_whatever_its_timestamp() -> None:
    standing = LeaseState(HERE)
    for number in range(10):
        assert not standing.may_take(
            lease("elsewhere/1/1.00", f"t{number}"), number * LEASE_SECONDS
        )


def test_a_longer_lease_duration_is_respected() -> None:
    standing = LeaseState(HERE)
    other = lease("elsewhere/1/1.00", seconds=60)
    assert not standing.may_take(other, 0)
    assert not standing.may_take(other, 59)
    assert standing.may_take(other, 61)


def test_the_lease_of_a_local_process_that_ended_is_acquired_immediately() -> None:
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
def test_holders_on_other_machines_and_unknown_holders_count_as_running(other: str) -> None:
    assert not HERE.outlived(other)


@pytest.mark.parametrize("older", [False, True])
def test_a_running_local_process_keeps_its_lease(older: bool) -> None:
    """older: the identity as earlier versions wrote it, with the start as a wall-clock time."""
    parent = process.identify(os.getppid())
    assert parent is not None
    start = f"{parent.started_at:.2f}" if older else parent.start
    assert not HERE.outlived(str(Holder("machine", parent.pid, start)))


def test_a_local_process_from_before_a_reboot_has_ended() -> None:
    start = f"00000000-0000-0000-0000-000000000000:{HERE.start.rpartition(':')[2]}"
    assert HERE.outlived(str(Holder("machine", HERE.pid, start)))
