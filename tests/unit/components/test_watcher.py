"""The watcher's decision whether to restart supervisord."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.components.watcher import (
    ASK_SECONDS,
    PAUSE_SECONDS,
    SILENT_TIMES,
    CoreWriters,
    Next,
    WatchdogInput,
    decide,
    guard_fence,
)
from k8s_ucp.fence.files import FenceFiles
from k8s_ucp.fence.guard import Guard
from k8s_ucp.fence.rules import FenceVerdict
from k8s_ucp.workspace import StateFolder

WELL = WatchdogInput(stopping=False, orphaned=False, silent=0, since_asked=0)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, Next.NOTHING),
        ({"since_asked": ASK_SECONDS}, Next.ASK),
        ({"orphaned": True}, Next.REPLACE),
        ({"silent": SILENT_TIMES - 1}, Next.NOTHING),
        ({"silent": SILENT_TIMES}, Next.REPLACE),
        ({"orphaned": True, "since_failed": PAUSE_SECONDS - 1}, Next.NOTHING),
        ({"orphaned": True, "since_failed": PAUSE_SECONDS}, Next.REPLACE),
    ],
)
def test_the_watcher_decides_when_to_ask_or_replace_supervisor(
    change: dict[str, object], expected: Next
) -> None:
    assert decide(replace(WELL, **change)) is expected  # type: ignore[arg-type]


@given(st.booleans(), st.integers(0, 9), st.floats(0, 1e9), st.floats(0, 1e9))
def test_nothing_is_done_while_stopping(
    orphaned: bool, silent: int, asked: float, failed: float
) -> None:
    assert decide(WatchdogInput(True, orphaned, silent, asked, failed)) is Next.NOTHING


class Broken(Guard):
    """Fails with a bug first."""

    ticks = 0

    def tick(self) -> FenceVerdict | None:
        self.ticks += 1
        if self.ticks == 1:
            raise KeyError("spec")
        raise SystemExit


def test_a_bug_does_not_end_the_guard_of_the_fence(tmp_path: Path) -> None:
    """Its permits would expire, and all writers stop, until somebody restarts the watcher."""
    placement, files = HostPlacement(StateFolder(tmp_path), tmp_path), FenceFiles(tmp_path)
    reported: list[str] = []
    guard = Broken(files, CoreWriters(placement, files), reported.append)
    with pytest.raises(SystemExit):
        guard_fence(placement, guard, reported.append)
    assert reported == ["the fence's guard: bug: KeyError: 'spec'"]
