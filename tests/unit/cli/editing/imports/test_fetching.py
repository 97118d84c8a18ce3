"""Apps of an import that turn out to be none once they are built."""

from __future__ import annotations

import contextlib

from k8s_ucp.cli.editing.adding.flags import AppFlags
from k8s_ucp.cli.editing.imports.fetching import empty_charts
from k8s_ucp.cli.editing.imports.selection import Candidate, ChosenApp, Selection
from k8s_ucp.cli.editing.preview.app_objects import AppObjects
from k8s_ucp.cli.editing.preview.granting import Inspection
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.imports.environment_mapping import ImportRequest
from k8s_ucp.gitops.imports.findings import DiscoveredApp, Discovery, RemoteSource
from k8s_ucp.gitops.imports.trees import Origin


def _selection(*findings: DiscoveredApp) -> Selection:
    found = Selection(Discovery(findings), explicit=False)
    for each in findings:
        request = ImportRequest(path=f"charts/{each.name}")
        candidate = Candidate(each, request, AppFlags(each.name))
        found.choices[each.name] = ChosenApp(candidate, {}, contextlib.ExitStack())
    return found


def test_a_chart_of_shared_templates_is_not_added_as_an_app_without_objects() -> None:
    remote = RemoteSource("https://charts.example.org", "1.0.0", "db")
    selection = _selection(
        DiscoveredApp(name="parts", form="helm", where="charts/parts/Chart.yaml"),
        DiscoveredApp(name="db", form="helm", where="db.yaml:1", remote=remote),
        DiscoveredApp(name="web", form="helm", where="charts/web/Chart.yaml"),
        DiscoveredApp(name="page", form="jsonnet", where="page"),
    )
    inspection = Inspection(
        {
            "parts": AppObjects(is_chart=True),
            "db": AppObjects(is_chart=True),
            "web": AppObjects([{"kind": "Service"}], is_chart=True),
            # Argo CD renders it.
            "page": AppObjects(),
        }
    )
    found = empty_charts(inspection, selection, Origin(folder="theirs"))
    assert {name: each.advice for name, each in found.items()} == {
        "parts": "ucp app add parts theirs/charts/parts --values FILE, if the chart lacks values",
        "db": "--app db adds it nevertheless",
    }


def test_a_host_that_many_charts_need_is_reported_once() -> None:
    charts = [DiscoveredApp(each, "helm", f"charts/{each}/Chart.yaml") for each in "abcd"]
    selection = _selection(*charts)
    for each in charts[:3]:
        words = f"failed to fetch the charts that the chart {each.name} depends on: no such host"
        selection.leave_out(each, UcpError(words, next="put them into its charts/ folder"))
    assert selection.reasons() == {
        "a, b, c are not added: failed to fetch chart dependencies: no such host": (
            "put them into its charts/ folder"
        )
    }
