"""How long an installation still takes: judged by earlier builds, put right by those that ended."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from k8s_ucp.tools.forecast import Forecast, about
from k8s_ucp.tools.recipe import Phase, ToolProgress
from k8s_ucp.tools.store import StoreEntry, ToolStore

TOOK = {"kubernetes": 515.0, "argocd": 450.0, "crossplane": 202.0, "kwok": 45.0, "etcd": 37.0}
"""Seconds that builds took on a machine with two cores, two at a time, in this order."""


def heard(tool: str, phase: Phase, elapsed: float) -> ToolProgress:
    return ToolProgress(tool, "1", phase, elapsed)


def played(pace: float) -> tuple[list[tuple[float, float]], float]:
    """(when, seconds that were said to be left) as tools begin and end; and when all had ended."""
    forecast, now = Forecast(TOOK, 2), 0.0
    waiting = [(name, seconds * pace) for name, seconds in TOOK.items()]
    running: dict[str, tuple[float, float]] = {}
    said = []
    while waiting or running:
        while waiting and len(running) < 2:
            name, seconds = waiting.pop(0)
            running[name] = (now, now + seconds)
            forecast.note(heard(name, Phase.MODULES, 0.0), now)
        left = forecast.left(now)
        assert left is not None
        said.append((now, left))
        name = min(running, key=lambda each: running[each][1])
        began, now = running.pop(name)
        forecast.note(heard(name, Phase.INSTALLED, now - began), now)
    return said, now


@pytest.mark.parametrize("pace", [0.8, 1.0, 1.3])
def test_it_is_right_within_a_third_from_the_beginning(pace: float) -> None:
    said, end = played(pace)
    assert [left for now, left in said if abs(left - (end - now)) > (end - now) / 3] == []


@pytest.mark.parametrize("pace", [0.3, 3.0])
def test_a_machine_of_another_speed_is_known_by_what_has_ended(pace: float) -> None:
    said, end = played(pace)
    assert [left for now, left in said[1:] if abs(left - (end - now)) > (end - now) / 3] == []


def test_what_was_never_built_has_no_estimate_until_it_has_ended() -> None:
    forecast = Forecast({"argocd": None, "etcd": 40.0, "redis": 0.0}, 2)
    assert forecast.left(0.0) is None
    forecast.note(heard("argocd", Phase.INSTALLED, 9.0), 9.0)
    assert forecast.left(9.0) == 40.0


def test_what_takes_longer_than_ever_is_never_over() -> None:
    forecast = Forecast({"etcd": 40.0}, 2)
    forecast.note(heard("etcd", Phase.COMPILING, 0.0), 0.0)
    assert forecast.left(100.0) == 10.0


def test_the_newest_build_of_a_tool_is_what_counts(tmp_path: Path) -> None:
    store = ToolStore(tmp_path)
    store.make()

    def entry(version: str, seconds: float, compiler: str, written: int) -> None:
        name = f"etcd-{version}"
        about_file = store.folder(name) / "entry.json"
        about_file.parent.mkdir()
        told = StoreEntry(name, "etcd", version, "d", compiler, seconds, {}, False)
        about_file.write_text(json.dumps(asdict(told)), "utf-8")
        os.utime(about_file, (written, written))

    assert store.build_seconds("etcd") is None
    entry("3", 30.0, "go1", 2000)
    entry("9", 90.0, "go1", 1000)
    entry("4", 1.0, "", 3000)  # downloaded
    assert store.build_seconds("etcd") == 30.0


def test_nobody_is_told_seconds() -> None:
    assert (about(400), about(91), about(30)) == (
        "about 7 min left",
        "about 2 min left",
        "less than 2 min left",
    )
