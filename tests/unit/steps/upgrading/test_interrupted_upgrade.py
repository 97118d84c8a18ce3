"""What the next `ucp upgrade` does with a part that an interrupted one left half upgraded."""

from __future__ import annotations

import pytest

from k8s_ucp.steps.upgrading.interrupted import (
    PartialUpgrade,
    ResumeDecision,
    Versions,
    decide,
    is_newer,
)

OLD = {"kubernetes": "1.34.9", "etcd": "3.6.1"}
NEW = {"kubernetes": "1.35.4", "etcd": "3.6.1"}
NEWEST = {"kubernetes": "1.36.0", "etcd": "3.7.0"}


def half(
    before: Versions, now: Versions, *, replaced: bool = True, stays: bool = True
) -> PartialUpgrade:
    return PartialUpgrade(before, now, replaced=replaced, stays=stays)


def test_a_part_that_was_not_interrupted_needs_nothing() -> None:
    assert decide(None, NEW) is ResumeDecision.NOTHING
    # The upgrade was complete, but not recorded in the journal.
    assert decide(half(NEW, NEW), NEW) is ResumeDecision.NOTHING


@pytest.mark.parametrize("stays", [True, False])
@pytest.mark.parametrize("target", [NEW, NEWEST])
def test_an_interrupted_upgrade_continues_to_the_versions_of_this_ucp(
    target: Versions, stays: bool
) -> None:
    assert decide(half(OLD, NEW, stays=stays), target) is ResumeDecision.RESUME


def test_a_part_is_rolled_back_if_no_newer_program_has_run() -> None:
    for now in (OLD, NEW, {"kubernetes": "1.34.9", "etcd": "3.7.0"}):
        assert decide(half(OLD, now, replaced=False), NEW) is ResumeDecision.ROLL_BACK


def test_an_older_ucp_continues_a_newer_cluster_and_rolls_a_component_back() -> None:
    for target in (OLD, NEW):
        assert decide(half(OLD, NEWEST), target) is ResumeDecision.RESUME
        assert decide(half(OLD, NEWEST, stays=False), target) is ResumeDecision.ROLL_BACK


def test_a_part_with_mixed_versions_is_rolled_back_to_the_previous_ones() -> None:
    mixed = {"kubernetes": "1.33.0", "etcd": "3.7.0"}
    assert decide(half(OLD, mixed), OLD) is ResumeDecision.ROLL_BACK


def test_a_set_of_versions_is_newer_only_if_none_is_older() -> None:
    assert is_newer(NEWEST, NEW)
    assert not is_newer(NEW, NEW)
    assert not is_newer({"kubernetes": "1.36.0", "etcd": "3.5.0"}, NEW)
