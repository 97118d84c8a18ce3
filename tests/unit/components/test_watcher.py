"""The watcher's decision whether to restart supervisord."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp.components.watcher import (
    ASK_SECONDS,
    PAUSE_SECONDS,
    SILENT_TIMES,
    Next,
    WatchdogInput,
    decide,
)

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
