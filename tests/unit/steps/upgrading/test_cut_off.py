"""What the next `ucp upgrade` does with a part that the last one has left half moved."""

from __future__ import annotations

import pytest

from k8s_ucp.steps.upgrading.cut_off import CutOffDecision, HalfMoved, Versions, decide, is_newer

OLD = {"kubernetes": "1.34.9", "etcd": "3.6.1"}
NEW = {"kubernetes": "1.35.4", "etcd": "3.6.1"}
NEWEST = {"kubernetes": "1.36.0", "etcd": "3.7.0"}


def half(
    before: Versions, now: Versions, *, exchanged: bool = True, stays: bool = True
) -> HalfMoved:
    return HalfMoved(before, now, exchanged=exchanged, stays=stays)


def test_what_was_not_cut_off_is_left_alone() -> None:
    assert decide(None, NEW) is CutOffDecision.NOTHING
    # It had come to its end, and only the journal does not know.
    assert decide(half(NEW, NEW), NEW) is CutOffDecision.NOTHING


@pytest.mark.parametrize("stays", [True, False])
@pytest.mark.parametrize("brought", [NEW, NEWEST])
def test_it_goes_on_to_what_this_ucp_brings(brought: Versions, stays: bool) -> None:
    assert decide(half(OLD, NEW, stays=stays), brought) is CutOffDecision.GO_ON


def test_it_goes_back_where_no_newer_program_has_run_or_it_was_going_back() -> None:
    for now in (OLD, NEW, {"kubernetes": "1.34.9", "etcd": "3.7.0"}):
        assert decide(half(OLD, now, exchanged=False), NEW) is CutOffDecision.GO_BACK


def test_an_older_ucp_leaves_a_cluster_that_is_newer_and_takes_a_component_back() -> None:
    for brought in (OLD, NEW):
        assert decide(half(OLD, NEWEST), brought) is CutOffDecision.GO_ON
        assert decide(half(OLD, NEWEST, stays=False), brought) is CutOffDecision.GO_BACK


def test_what_is_of_no_whole_version_goes_back_to_one_that_was_well() -> None:
    mixed = {"kubernetes": "1.33.0", "etcd": "3.7.0"}
    assert decide(half(OLD, mixed), OLD) is CutOffDecision.GO_BACK


def test_newer_means_that_nothing_is_older() -> None:
    assert is_newer(NEWEST, NEW)
    assert not is_newer(NEW, NEW)
    assert not is_newer({"kubernetes": "1.36.0", "etcd": "3.5.0"}, NEW)
