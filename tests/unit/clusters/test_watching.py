"""When a dead control plane is started again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp.clusters.watching import (
    FREE_RESTARTS,
    LONGEST_PAUSE,
    WINDOW,
    pause_before_restart,
    plan,
)


def test_first_deaths_are_answered_at_once() -> None:
    for count in range(FREE_RESTARTS):
        assert pause_before_restart([100.0] * count, 100.0) == 0


def test_a_crash_loop_is_started_less_and_less_often() -> None:
    times: list[float] = []
    now = 0.0
    pauses = []
    for _ in range(FREE_RESTARTS + 5):
        pause = pause_before_restart(times, now)
        pauses.append(pause)
        now += pause
        times.append(now)
    assert pauses == [0.0] * FREE_RESTARTS + [1.0, 2.0, 4.0, 8.0, 16.0]


def test_old_restarts_are_forgotten() -> None:
    assert pause_before_restart([0.0] * 20, WINDOW + 1) == 0


@given(
    times=st.lists(st.floats(0, 1000), max_size=40).map(sorted),
    later=st.floats(0, 1000),
)
def test_a_pause_is_never_long_nor_negative(times: list[float], later: float) -> None:
    now = (times[-1] if times else 0.0) + later
    assert 0 <= pause_before_restart(times, now) <= LONGEST_PAUSE


def test_only_clusters_with_a_death_are_started() -> None:
    assert plan({"a": [], "b": ["etcd"]}, {}, 0.0) == ["b"]


def test_a_pausing_component_does_not_hold_up_another() -> None:
    looping = {("a", "kwok-controller"): [10.0] * 8}
    assert plan({"a": ["kwok-controller"]}, looping, 10.0) == []
    assert plan({"a": ["etcd", "kwok-controller"]}, looping, 10.0) == ["a"]
    assert plan({"b": ["kwok-controller"]}, looping, 10.0) == ["b"]
