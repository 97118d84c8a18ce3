"""Values with which Applications deploy charts."""

from __future__ import annotations

from typing import Any

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.imports.detection import detect
from k8s_ucp.gitops.imports.findings import RemoteSource
from k8s_ucp.gitops.manifests import yaml_text
from k8s_ucp.gitops.manifests.reachable import FolderTree
from k8s_ucp.gitops.manifests.yaml_text import dump_all
from tests.unit.gitops.imports.repository_files import (
    CHART,
    URL,
    application,
    application_set,
    document,
    found,
    place,
    refusal,
)


def test_values_of_an_application_are_merged_as_helm_merges_them() -> None:
    helm = {
        "valueFiles": ["values.yaml", "../../values/all.yaml", "values-prod.yaml"],
        "values": "a: {three: 3}\n",
        "parameters": [
            {"name": "a.four", "value": "4"},
            {"name": "text", "value": "4", "forceString": True},
        ],
    }
    files = {
        "charts/web/Chart.yaml": CHART,
        "charts/web/values-prod.yaml": "a: {one: 2}\nlist: [2]\n",
        "values/all.yaml": "a: {one: 1, two: 2}\nlist: [1, 1]\n",
        "argo/web.yaml": application("web-prod", {"path": "charts/web", "helm": helm}),
    }
    [only] = found(files).findings
    assert (
        only.values["prod"]
        == dump_all(
            [{"a": {"one": 2, "two": 2, "three": 3, "four": 4}, "list": [2], "text": "4"}]
        ).encode()
    )


def test_parameters_set_items_of_lists_as_helm_does() -> None:
    helm = {
        "valueFiles": ["values.yaml"],
        "parameters": [
            {"name": "hosts[0].name", "value": "web"},
            {"name": "hosts[2]", "value": "4"},
            {"name": "args", "value": "{-v,3,a\\,b}"},
            {"name": "texts", "value": "{3,true}", "forceString": True},
            {"name": "labels.example\\.org/a", "value": "b\\,c"},
        ],
    }
    files = {
        "web/Chart.yaml": CHART,
        "web/values.yaml": "hosts: [{name: own, path: /}, two]\n",
        "argo/web.yaml": application("web-prod", {"path": "web", "helm": helm}),
    }
    [only] = found(files).findings
    content = only.values["prod"]
    assert isinstance(content, bytes)
    assert yaml_text.documents(content, "values") == [
        {
            "hosts": [{"name": "web", "path": "/"}, "two", 4],
            "args": ["-v", 3, "a,b"],
            "texts": ["3", "true"],
            "labels": {"example.org/a": "b,c"},
        }
    ]


def test_a_single_values_file_of_the_chart_is_referenced_in_place() -> None:
    files = {
        "web/Chart.yaml": CHART,
        "web/values-qa.yaml": "",
        "web.yaml": application("web", {"path": "web", "helm": {"valueFiles": ["values-qa.yaml"]}}),
    }
    [only] = found(files).findings
    assert only.values == {"qa": "values-qa.yaml"}


def test_a_source_of_an_application_can_provide_only_values() -> None:
    sources = [
        {"repoURL": "https://charts.example.org", "chart": "web", "targetRevision": "1.0.0"},
        {"repoURL": "git@git.example.org:team/platform", "ref": "values"},
    ]
    sources[0]["helm"] = {"valueFiles": ["$values/values/web.yaml"]}  # type: ignore[assignment]
    files = {
        "values/web.yaml": "replicas: 2\n",
        "web.yaml": document("Application", "web", {"sources": sources}),
        "two.yaml": document(
            "Application",
            "two",
            {"sources": [{"repoURL": URL, "path": "a"}, {"repoURL": URL, "path": "b"}]},
        ),
    }
    [only] = [each for each in found(files).findings if each.name == "web"]
    assert only.values == {"": b"replicas: 2\n"}


def test_values_of_another_repository_are_fetched() -> None:
    chart = {"repoURL": "https://charts.example.org", "chart": "web", "targetRevision": "1.0.0"}
    chart["helm"] = {"valueFiles": ["$other/web.yaml", "$old/web.yaml"]}  # type: ignore[assignment]
    others = [
        {"repoURL": "https://x.example.org/y", "targetRevision": "main", "ref": "other"},
        {"repoURL": URL, "targetRevision": "v1", "ref": "old"},
    ]
    files = {"argo/web.yaml": document("Application", "web", {"sources": [chart, *others]})}
    there = {
        ("https://x.example.org/y", None): place({"web.yaml": "a: 1\nb: 1\n"}),
        (URL, "v1"): place({"web.yaml": "b: 2\n"}),
    }
    [web] = found(files, fetch=lambda url, revision: there[url, revision]).findings
    assert web.values == {"": dump_all([{"a": 1, "b": 2}]).encode()}

    def silent(url: str, revision: str | None) -> FolderTree:
        raise UcpError(f"{url} is silent")

    only = refusal(found(files, fetch=silent), "web")
    assert only.reason.endswith(
        "another repository, https://x.example.org/y, which can't be read: "
        "https://x.example.org/y is silent"
    )
    assert only.advice.startswith("copy it to a file, then ucp app add web --chart web")


def test_without_a_repository_values_references_are_resolved_in_the_folder() -> None:
    """No other source refers to a path in the folder."""
    chart = {"repoURL": "https://charts.example.org", "chart": "web", "targetRevision": "1.0.0"}
    files = {"envs/qa/web.yaml": "replicas: 1\n", "envs/prod/web.yaml": "replicas: 3\n"}

    def sources(environment: str) -> Any:
        helm = {"valueFiles": [f"$values/envs/{environment}/web.yaml"]}
        return [{**chart, "helm": helm}, {"repoURL": "https://x.org/y", "ref": "values"}]

    declared = {
        f"argo/{each}.yaml": document("Application", f"web-{each}", {"sources": sources(each)})
        for each in ("qa", "prod")
    }
    template = {"metadata": {"name": "web-{{env}}"}, "spec": {"sources": sources("{{env}}")}}
    generator = {"list": {"elements": [{"env": "qa"}, {"env": "prod"}]}}
    for more in (declared, {"set.yaml": application_set("all", generator, template)}):
        [web] = detect(place({**files, **more}), title="shop").findings
        assert web.remote == RemoteSource("https://charts.example.org", "1.0.0", "web")
        assert web.values == {"qa": b"replicas: 1\n", "prod": b"replicas: 3\n"}


def test_values_that_cannot_be_read_are_refused_with_the_command_that_adds_the_app() -> None:
    chart = {"repoURL": "https://charts.example.org", "chart": "web", "targetRevision": "1.0.0"}
    chart["helm"] = {"valueFiles": ["$values/web.yaml"]}  # type: ignore[assignment]
    for source, reason in (
        ({"repoURL": "https://x.org/y"}, "is in another repository, https://x.org/y"),
        ({"repoURL": URL, "targetRevision": "v1"}, "the revision v1 of this repository"),
    ):
        spec = {"sources": [chart, {**source, "ref": "values"}]}
        files = {"web.yaml": "a: b\n", "argo/web.yaml": document("Application", "web", spec)}
        only = refusal(found(files), "web")
        assert reason in only.reason
        assert only.advice == (
            "copy it to a file, then ucp app add web --chart web --repo https://charts.example.org "
            "--version 1.0.0 --values FILE"
        )


def test_settings_in_the_folder_of_an_application_override_its_own() -> None:
    """Argo CD Image Updater writes them, with keys in lower case."""
    own = {"parameters": [{"name": "tag", "value": "1.0"}], "releaseName": "x", "values": "a: 1\n"}
    everywhere = {"releaseName": None, "values": "a: 2\n"}
    updated = [{"name": "tag", "value": "1.10", "forcestring": True}]
    files = {
        "web/Chart.yaml": CHART,
        "web/.argocd-source.yaml": dump_all([{"helm": everywhere, "path": "other"}]),
        "web/.argocd-source-web-prod.yaml": dump_all([{"helm": {"parameters": updated}}]),
        "web/.argocd-source-web-qa.yaml": "helm: {version: [}\n",
        "prod.yaml": application("web-prod", {"path": "web", "helm": own}),
    }
    [only] = found(files).findings
    assert only.values["prod"] == dump_all([{"a": 2, "tag": "1.10"}]).encode()
    assert not any("release" in each for each in only.notes)
    del files["prod.yaml"]
    assert "web/.argocd-source.yaml is not imported" in found(files).findings[0].notes[-1]
    files["qa.yaml"] = application("web-qa", {"path": "web"})
    assert refusal(found(files), "web-qa").advice == "correct web/.argocd-source-web-qa.yaml"


def test_variables_of_argo_cd_in_parameters_are_refused_by_name() -> None:
    for value in ("$ARGOCD_APP_NAME", "a-${ARGOCD_APP_REVISION}"):
        files = {"web/Chart.yaml": CHART, "web.yaml": _with_parameter(value)}
        reason = f"its parameter x has a variable that Argo CD fills: {value}"
        assert refusal(found(files), "web").reason == reason
    for value, literal in (("5$$a", "5$a"), ("5$", "5$")):
        files = {"web/Chart.yaml": CHART, "web.yaml": _with_parameter(value)}
        [web] = found(files).findings
        assert web.values == {"": dump_all([{"x": literal}]).encode()}


def _with_parameter(value: str) -> str:
    helm = {"parameters": [{"name": "x", "value": value}]}
    return application("web", {"path": "web", "helm": helm})


def test_patterns_of_values_files_are_refused_as_such() -> None:
    helm = {"valueFiles": ["values/*.yaml"]}
    files = {
        "web/Chart.yaml": CHART,
        "web/values/a.yaml": "",
        "web.yaml": application("web", {"path": "web", "helm": helm}),
    }
    assert "a pattern selects: values/*.yaml" in refusal(found(files), "web").reason


def test_an_applications_values_apply_over_those_of_each_environment_in_its_chart() -> None:
    files = {
        "web/Chart.yaml": CHART,
        "web/values-prod.yaml": "replicas: 3\ntag: '1'\n",
        "web.yaml": application("web", {"path": "web", "helm": {"values": "tag: '2'\n"}}),
    }
    [web] = found(files).findings
    assert web.values == {
        "prod": dump_all([{"replicas": 3, "tag": "2"}]).encode(),
        "": dump_all([{"tag": "2"}]).encode(),
    }
