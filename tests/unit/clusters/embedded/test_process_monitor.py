"""When a crashed control plane is restarted, and how long its logs may get."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp.cli.inspection.logs import tail
from k8s_ucp.clusters.embedded.process_monitor import (
    FREE_RESTARTS,
    LOG_BYTES,
    LOG_KEPT,
    LONGEST_PAUSE,
    WINDOW,
    free_old_lines,
    pause_before_restart,
    plan,
)


def test_the_first_crashes_are_restarted_immediately() -> None:
    for count in range(FREE_RESTARTS):
        assert pause_before_restart([100.0] * count, 100.0) == 0


def test_a_crash_loop_is_restarted_with_exponential_backoff() -> None:
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
def test_the_backoff_is_never_negative_or_above_the_limit(times: list[float], later: float) -> None:
    now = (times[-1] if times else 0.0) + later
    assert 0 <= pause_before_restart(times, now) <= LONGEST_PAUSE


def test_only_clusters_with_a_crashed_component_are_started() -> None:
    assert plan({"a": [], "b": ["etcd"]}, {}, 0.0) == ["b"]


def test_a_component_in_backoff_does_not_delay_another_component() -> None:
    looping = {("a", "kwok-controller"): [10.0] * 8}
    assert plan({"a": ["kwok-controller"]}, looping, 10.0) == []
    assert plan({"a": ["etcd", "kwok-controller"]}, looping, 10.0) == ["a"]
    assert plan({"b": ["kwok-controller"]}, looping, 10.0) == ["b"]


def test_the_beginning_of_a_growing_log_is_freed(tmp_path: Path) -> None:
    """Its writer, a control plane's process, continues at its offset and notices nothing."""
    log = tmp_path / "etcd.log"
    line = b"it complains in a loop, again and again: " + b"x" * 58 + b"\n"
    with log.open("wb") as writer:
        writer.write(line * (12 * 1024 * 1024 // len(line)))
        writer.flush()
        free_old_lines(log)
        if log.stat().st_blocks * 512 > LOG_BYTES:
            pytest.skip("this file system frees no part of a file")
        writer.write(b"the last words\n")
    assert log.stat().st_blocks * 512 < 2 * LOG_KEPT
    text, _ = tail(log, 10**9)
    assert text.endswith("the last words")
    assert "\0" not in text
    assert len(text) > LOG_KEPT // 2
    assert tail(log, 2)[0].count("\n") == 1


def test_a_small_log_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "etcd.log"
    log.write_bytes(b"x" * LOG_KEPT * 2)
    free_old_lines(log)
    assert log.read_bytes() == b"x" * LOG_KEPT * 2
    free_old_lines(tmp_path / "absent.log")
