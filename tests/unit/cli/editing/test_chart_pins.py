"""Charts of an import are fetched at the same time, each once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, cast

import pytest

from k8s_ucp.cli.editing.chart_pins import UnpinnedChart, pinned_at_once
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.manifests.chart_source import ChartRef, PinnedChart

CALL = cast("Any", None)


def wanted(name: str, version: str | None = None) -> UnpinnedChart:
    return UnpinnedChart(ChartRef("https://charts.example.org", name), version, None)


def test_charts_are_fetched_at_the_same_time_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    both_run = threading.Barrier(2)
    fetched: list[str] = []

    def pin(_: Path, place: ChartRef, *_more: object) -> PinnedChart:
        fetched.append(place.name)
        if place.name == "lost":
            raise UcpError("the chart lost: not found")
        both_run.wait(timeout=20)
        return PinnedChart("1.0.0", f"sha256:{place.name}")

    monkeypatch.setattr("k8s_ucp.cli.app_sources.pinned_helm", lambda *_: Path("helm"))
    monkeypatch.setattr("k8s_ucp.gitops.manifests.chart_source.pin", pin)
    charts = [wanted("web"), wanted("api"), wanted("lost"), wanted("web")]
    with pinned_at_once(CALL, CALL, charts) as pinned:
        assert pinned(charts[0]).digest == "sha256:web"
        with pytest.raises(UcpError, match="lost"):
            pinned(charts[2])
        assert pinned(charts[1]) == PinnedChart("1.0.0", "sha256:api")
    assert sorted(fetched) == ["api", "lost", "web"]


def test_without_helm_the_reason_is_given_for_each_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> Path:
        raise UcpError("helm can't be installed")

    monkeypatch.setattr("k8s_ucp.cli.app_sources.pinned_helm", missing)
    with pinned_at_once(CALL, CALL, [wanted("web"), wanted("api")]) as pinned:
        for each in ("web", "api"):
            with pytest.raises(UcpError, match="helm can't be installed"):
                pinned(wanted(each))
