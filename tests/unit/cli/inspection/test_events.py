"""Lines of `ucp events`."""

from __future__ import annotations

import pytest

from k8s_ucp.cli.inspection.events import COLUMNS, _row
from k8s_ucp.inspect.events import EventScope


@pytest.mark.parametrize("time", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678901Z"])
def test_times_of_both_notations_are_printed_as_the_other_commands_print_them(time: str) -> None:
    event = {"involvedObject": {"kind": "Pod", "name": "web"}, "lastTimestamp": time}
    row = dict(
        zip(COLUMNS, _row(EventScope("demo-core", {}).line("demo-core", event)), strict=True)
    )
    assert row["time"] == "2026-01-02T03:04:05Z"
