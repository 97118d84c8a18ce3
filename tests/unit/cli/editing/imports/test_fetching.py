"""Apps of an import that turn out to be none once they are built."""

from __future__ import annotations

import contextlib
from typing import Any

from k8s_ucp.cli.editing.adding.flags import AppFlags
from k8s_ucp.cli.editing.imports.fetching import declaring_applications, empty_charts
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


def _application(name: str, kind: str = "Application", **source: str) -> dict[str, Any]:
    spec = {"source": {"repoURL": "https://example.org/all", **source}}
    metadata = {"name": name}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def test_an_app_of_applications_names_the_commands_that_add_what_they_deploy() -> None:
    elsewhere = RemoteSource("https://example.org/root", "v1")
    selection = _selection(
        DiscoveredApp(name="root", form="helm", where="root/Chart.yaml"),
        DiscoveredApp(name="sets", form="helm", where="sets/Chart.yaml"),
        DiscoveredApp(name="far", form="kustomize", where="far.yaml:1", remote=elsewhere),
        DiscoveredApp(name="web", form="kustomize", where="web"),
    )
    web = _application("Web", path="web", targetRevision="HEAD")
    db = _application("db", chart="db", targetRevision="1.2.3")
    inspection = Inspection(
        {
            "root": AppObjects([web, {"kind": "Service"}, db, {**web}]),
            "sets": AppObjects([_application("all", "ApplicationSet")]),
            "far": AppObjects([web]),
            "web": AppObjects([{"apiVersion": "v1", "kind": "Service"}]),
        }
    )
    found = declaring_applications(inspection, selection)
    start = "add the apps that they deploy instead: ucp app"
    assert {name: each.advice for name, each in found.items()} == {
        "root": f"{start} add web https://example.org/all --path web; "
        "ucp app add db --chart db --repo https://example.org/all --version 1.2.3",
        "sets": f"{start} add NAME REPO --path FOLDER for each",
        "far": f"{start} import https://example.org/root --ref v1",
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
