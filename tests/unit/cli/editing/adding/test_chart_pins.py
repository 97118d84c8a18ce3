"""Charts of an import are fetched at the same time, each once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, cast

import pytest

from k8s_ucp.cli.editing.adding.chart_pins import (
    UnpinnedChart,
    fetch_dependencies,
    pinned_concurrently,
)
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.manifests.chart_source import ChartRef, PinnedChart
from k8s_ucp.gitops.manifests.forms import Files
from k8s_ucp.gitops.manifests.reachable import FolderTree

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
        both_run.wait(timeout=60)
        return PinnedChart("1.0.0", f"sha256:{place.name}")

    monkeypatch.setattr("k8s_ucp.cli.app_sources.pinned_helm", lambda *_: Path("helm"))
    monkeypatch.setattr("k8s_ucp.gitops.manifests.chart_source.pin", pin)
    charts = [wanted("web"), wanted("api"), wanted("lost"), wanted("web")]
    with pinned_concurrently(CALL, CALL, charts) as pinned:
        assert pinned(charts[0]).digest == "sha256:web"
        with pytest.raises(UcpError, match="lost"):
            pinned(charts[2])
        assert pinned(charts[1]) == PinnedChart("1.0.0", "sha256:api")
    assert sorted(fetched) == ["api", "lost", "web"]


def test_without_helm_the_reason_is_given_for_each_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> Path:
        raise UcpError("helm can't be installed")

    monkeypatch.setattr("k8s_ucp.cli.app_sources.pinned_helm", missing)
    with pinned_concurrently(CALL, CALL, [wanted("web"), wanted("api")]) as pinned:
        for each in ("web", "api"):
            with pytest.raises(UcpError, match="helm can't be installed"):
                pinned(wanted(each))


def test_dependencies_of_charts_in_folders_are_fetched_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both_run = threading.Barrier(2)

    def fetched(_: Path, files: Files, *_more: object) -> dict[str, bytes]:
        if b"name: lost" in files["Chart.yaml"]:
            raise UcpError("failed to fetch the charts")
        both_run.wait(timeout=60)
        return {}

    monkeypatch.setattr("k8s_ucp.cli.app_sources.pinned_helm", lambda *_: Path("helm"))
    monkeypatch.setattr("k8s_ucp.gitops.manifests.chart_source.with_dependencies", fetched)
    needs = 'version: 1.0.0\ndependencies: [{name: db, repository: "https://c.example.org"}]\n'
    charts = {each: f"name: {each}\n{needs}" for each in ("web", "api", "lost")}
    charts |= {"alone": "name: alone\nversion: 1.0.0\n", "broken": "name: [\n"}
    files = {f"{each}/Chart.yaml": text.encode() for each, text in charts.items()}
    place = FolderTree(
        lambda below: [each.partition("/")[2] for each in files if each.startswith(f"{below}/")],
        files.get,
    )
    failures = fetch_dependencies(CALL, CALL, place, {each: each for each in charts})
    assert {app: error.message for app, error in failures.items()} == {
        "lost": "failed to fetch the charts"
    }
