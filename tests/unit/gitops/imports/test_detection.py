"""What an import finds, whatever the apps are declared by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.imports.detection import ImportTools, detect
from k8s_ucp.gitops.imports.findings import RemoteSource
from k8s_ucp.gitops.imports.own_urls import normal_url
from k8s_ucp.gitops.imports.trees import Origin
from k8s_ucp.gitops.manifests import forms, yaml_text
from k8s_ucp.gitops.manifests.reachable import FolderTree
from tests.unit.gitops.imports.repository_files import (
    CHART,
    CONFIG,
    URL,
    application,
    application_set,
    document,
    found,
    kustomized,
    overlay,
    place,
)


@pytest.mark.parametrize(
    "text",
    [
        application("web", {"path": "web"}).replace("spec:", "spec: *nothing\nx:"),
        CONFIG + "data: [\n",
        document("HelmRelease", "web", {}).replace("argoproj.io", "fluxcd.io").replace("{}", "{"),
    ],
    ids=["application", "manifest", "release"],
)
def test_a_file_that_is_not_valid_yaml_is_listed(text: str) -> None:
    """It was left out without a word."""
    there = found({"apps/db/all.yaml": CONFIG, "clusters/web.yaml": text})

    assert [each.name for each in there.findings] == ["db"]
    [broken] = there.refusals
    assert "web.yaml is not valid YAML: " in broken.reason
    assert broken.advice.startswith("correct ")
    assert broken.where.startswith("clusters")


def test_an_invalid_file_is_not_listed_if_another_tool_fills_it() -> None:
    text = "{% for each in apps %}\n" + application("web", {"path": "web"}) + "{% endfor %}\n"
    there = found({"apps/db/all.yaml": CONFIG, "roles/web.yaml": text})
    assert there.refusals == ()


def test_without_a_repository_its_url_is_inferred_from_applicationset_generators() -> None:
    files = {
        "apps/web/all.yaml": CONFIG,
        "set.yaml": application_set(
            "apps",
            {"git": {"repoURL": URL, "directories": [{"path": "apps/*"}]}},
            {
                "metadata": {"name": "{{path.basename}}"},
                "spec": {"source": {"repoURL": URL, "path": "{{path}}"}},
            },
        ),
    }
    there = detect(place(files), title="shop")
    assert [(each.name, each.remote) for each in there.findings] == [("web", None)]
    assert not there.refusals


def test_without_a_repository_its_url_is_inferred_from_most_applications() -> None:
    files = {
        **kustomized("web/base", {"prod": "web/overlays/prod"}),
        "web.yaml": application("web", {"path": "web/overlays/prod"}),
        "api.yaml": application(
            "api", {"path": "deploy", "repoURL": "https://other.example.org/x"}
        ),
    }
    api, web = detect(place(files), title="shop").findings
    assert web.remote is None
    assert api.remote == RemoteSource("https://other.example.org/x")


def test_equivalent_repository_urls_are_recognized() -> None:
    words = (
        "https://git.example.org/team/platform",
        "git@git.example.org:team/platform.git",
        "ssh://git@git.example.org:22/team/platform.git",
        "https://me@Git.example.org/team/platform/",
    )
    assert {normal_url(each) for each in words} == {normal_url(URL)}


def test_without_a_repository_its_url_is_inferred_from_rendered_charts() -> None:
    files = {
        "apps/Chart.yaml": CHART,
        "apps/templates/all.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\n",
        "web/all.yaml": CONFIG,
    }

    def render(chart: str, values: str | bytes | None) -> str:
        return application("web", {"path": "web"})

    [only] = detect(place(files), title="shop", tools=ImportTools(render=render)).findings
    assert (only.remote, only.path) == (None, "web")


def test_a_file_that_is_too_large_for_a_manifest_hides_no_app() -> None:
    there = place({"web/all.yaml": CONFIG, "data/huge.yaml": CONFIG})

    def read(path: str) -> bytes | None:
        if path == "data/huge.yaml":
            raise UsageError("data/huge.yaml is too large for a manifest")
        return there.read(path)

    apps = detect(FolderTree(there.names, read), title="shop").findings
    assert [each.name for each in apps] == ["web"]


def test_a_manifest_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []

    def documents(content: bytes, path: str) -> list[Any]:
        parsed.append(content)
        return yaml_text.documents(content, path)

    monkeypatch.setattr(forms, "documents", documents)
    text = CONFIG.replace("settings", "parsed-once")
    found(
        {"web/all.yaml": "a: b\n", "web/lower/one.yaml": text, "web/lower/bad.yaml": f"{text}  -"}
    )
    assert sorted(parsed, key=len)[-2:] == [text.encode(), f"{text}  -".encode()]
    assert parsed.count(text.encode()) == parsed.count(f"{text}  -".encode()) == 1


def test_suggested_commands_name_the_repository() -> None:
    files = {
        "web/qa/Chart.yaml": CHART,
        "web/prod/Chart.yaml": CHART,
        "api/qa/main.jsonnet": "{}",
        "api/prod/main.jsonnet": "{}",
        "k8s/all.yaml": CONFIG,
        "k8s/more/kustomization.yaml": overlay("x.yaml"),
        "k8s/more/x.yaml": CONFIG,
        "old.yaml": application("old", {"path": "web", "targetRevision": "v1"}),
    }
    there = found(files, origin=Origin(url=URL, revision="v2"))
    proposed = {each.name: each.advice for each in there.refusals}
    start = f"ucp app add {{}} {URL} --path {{}} --ref v2"
    assert proposed["web"].startswith(start.format("web", "web/prod"))
    assert proposed["api"] == start.format("api", "api/prod")
    assert proposed["shop"].startswith(start.format("shop", "k8s/all.yaml"))
    assert proposed["old"].endswith(f"ucp app add old {URL} --path web --ref v1")
    for folder, word in (
        ("../my shop", "'../my shop/api/prod'"),
        ("/there/", "/there/api/prod"),
        (".", "./api/prod"),
    ):
        there = found(files, origin=Origin(folder=folder))
        proposed = {each.name: each.advice for each in there.refusals}
        assert proposed["api"] == f"ucp app add api {word}"


@pytest.mark.parametrize(
    "files",
    [
        {"web/Chart.yaml": f"{CHART}dependencies: 5\n"},
        {"all.yaml": application_set("all", {3: {}}, {"spec": {}})},
        {"all.yaml": application("web", {"path": "web", "helm": {2: 1}}), "web/Chart.yaml": CHART},
        {"all.yaml": application("web", {"path": "web", "kustomize": {2: 1}}), "web/a.yaml": ""},
        {"all.yaml": application("../..", {"chart": "web", "repoURL": "https://c.example.org"})},
        {
            "all.yaml": application_set(
                "all",
                {"clusters": {"selector": {"matchExpressions": [{"operator": "In", "values": 1}]}}},
                {"metadata": {"name": "web"}, "spec": {"source": {"repoURL": URL, "path": "web"}}},
            ),
            "web/all.yaml": CONFIG,
        },
        {
            "all.yaml": application("web", {"path": "web", "kustomize": {"components": ["x"]}}),
            "web/kustomization.yaml": "components: 1\nresources: [all.yaml]\n",
            "web/x/kustomization.yaml": "kind: Component\n",
            "web/all.yaml": CONFIG,
        },
    ],
)
def test_fields_of_a_wrong_type_end_no_import(files: Mapping[str, str]) -> None:
    there = found(files)
    assert there.findings or there.refusals
