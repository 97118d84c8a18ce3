"""Apps found in repositories of common layouts, and the reasons of refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.gitops.imports.application_sets import SetContext, expand
from k8s_ucp.gitops.imports.detection import Render, detect, normal_url
from k8s_ucp.gitops.imports.findings import Discovery, RefusedApp, RemoteSource
from k8s_ucp.gitops.imports.trees import Origin, RepositoryTree, read_documents
from k8s_ucp.gitops.manifests import forms, yaml_text
from k8s_ucp.gitops.manifests.reachable import FolderTree
from k8s_ucp.gitops.manifests.yaml_text import dump_all

URL = "https://git.example.org/team/platform.git"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
CHART = "apiVersion: v2\nname: any\nversion: 1.0.0\n"


def place(files: Mapping[str, str]) -> FolderTree:
    def names(below: str) -> list[str]:
        start = f"{below}/" if below else ""
        return sorted(each.removeprefix(start) for each in files if each.startswith(start))

    def read(path: str) -> bytes | None:
        return files[path].encode() if path in files else None

    return FolderTree(names, read)


def found(files: Mapping[str, str], render: Render | None = None, **more: Any) -> Discovery:
    return detect(place(files), title="shop", urls=[URL], render=render, **more)


def overlay(*resources: str) -> str:
    return dump_all([{"resources": list(resources)}])


def application(name: str, source: Mapping[str, Any], namespace: str = "web") -> str:
    spec = {"source": {"repoURL": URL, **source}, "destination": {"namespace": namespace}}
    return document("Application", name, spec)


def application_set(name: str, generator: Any, template: Any, **more: Any) -> str:
    return document(
        "ApplicationSet", name, {"generators": [generator], "template": template, **more}
    )


def document(kind: str, name: str, spec: Any) -> str:
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": {"name": name}}
    return dump_all([{**head, "spec": spec}])


def refusal(there: Discovery, name: str) -> RefusedApp:
    [only] = [each for each in there.refusals if each.name == name]
    return only


def kustomized(base: str, overlays: Mapping[str, str]) -> dict[str, str]:
    """A base and its overlays, in any folders. Overlays refer to the base by way of the root."""
    files = {f"{base}/kustomization.yaml": overlay("all.yaml"), f"{base}/all.yaml": CONFIG}
    for folder in overlays.values():
        up = "/".join([".."] * len(folder.split("/")))
        files[f"{folder}/kustomization.yaml"] = overlay(f"{up}/{base}")
    return files


def test_bases_with_overlays_are_found_in_all_common_layouts() -> None:
    layouts = {
        "apps/web/base": ("apps/web/overlays/qa", "apps/web/overlays/prod"),
        "web/base": ("web/overlays/qa", "web/overlays/prod"),
        "base/web": ("overlays/qa/web", "overlays/prod/web"),
        "common/base/web": ("common/environments/qa/web", "common/environments/prod/web"),
        "web/base/": ("web/qa", "web/prod"),
        "apps/base/web": ("apps/qa/web", "apps/prod/web"),
    }
    for base, (qa, prod) in layouts.items():
        base = base.rstrip("/")
        [only] = found(kustomized(base, {"qa": qa, "prod": prod})).findings
        assert (only.name, only.form, only.path) == ("web", "kustomize", base)
        assert only.overlays == {"qa": qa, "prod": prod}
        assert only.environments == ("prod", "qa")


def test_a_repository_can_be_a_single_app() -> None:
    files = kustomized("base", {"us": "envs/us", "eu": "envs/eu"})
    [only] = found(files).findings
    assert (only.name, only.where) == ("shop", ".")
    assert only.overlays == {"us": "envs/us", "eu": "envs/eu"}


def test_kustomizations_that_only_list_apps_are_not_apps() -> None:
    files = {
        **kustomized("base/web", {"prod": "overlays/prod/web"}),
        **kustomized("base/api", {"prod": "overlays/prod/api"}),
        "overlays/prod/kustomization.yaml": overlay("web", "api"),
        "kustomization.yaml": overlay("overlays/prod"),
    }
    there = found(files)
    assert [each.name for each in there.findings] == ["api", "web"]
    assert not there.refusals


def test_kustomizations_included_by_others_are_not_apps() -> None:
    files = {
        **kustomized("web/base", {"prod": "web/overlays/prod"}),
        "web/overlays/prod/kustomization.yaml": overlay("../../base", "../../../parts/ingress"),
        "parts/ingress/kustomization.yaml": overlay("all.yaml"),
        "parts/ingress/all.yaml": CONFIG,
        "parts/small/kustomization.yaml": "kind: Component\n",
    }
    assert [each.name for each in found(files).findings] == ["web"]


def test_charts_are_found_with_the_values_files_of_environments() -> None:
    files = {
        "charts/web/Chart.yaml": CHART,
        "charts/web/values.yaml": "",
        "charts/web/values-staging.yaml": "",
        "charts/web/values-production.yaml": "",
        "charts/web/values-small.yaml": "",
        "charts/web/charts/db/Chart.yaml": CHART,
        "charts/api/Chart.yaml": CHART,
        "charts/api/values/prod.yaml": "",
        "charts/parts/Chart.yaml": CHART + "type: library\n",
    }
    there = found(files)
    api, web = there.findings
    assert (api.name, api.form, api.values) == ("api", "helm", {"prod": "values/prod.yaml"})
    assert web.values == {"staging": "values-staging.yaml", "production": "values-production.yaml"}
    assert "values-small.yaml is skipped" in web.notes[0]
    assert "library chart" in refusal(there, "parts").reason
    named = found(files, environments=["small"])
    assert "small" in named.findings[1].values


def test_a_chart_for_each_environment_is_refused() -> None:
    files = {f"environments/{each}/web/Chart.yaml": CHART for each in ("qa", "prod")}
    there = found(files)
    assert not there.findings
    assert "a different chart" in refusal(there, "web").reason


def test_folders_of_manifests_and_jsonnet_are_found() -> None:
    files = {
        "web/all.yaml": CONFIG,
        "job/job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: j-}\n",
        "dash/main.jsonnet": "{}",
        "README.md": "kind: apiVersion",
        "ci/pipeline.yaml": "steps: []\n",
    }
    forms = {each.name: each.form for each in found(files).findings}
    assert forms == {"web": "kustomize", "job": "directory", "dash": "jsonnet"}


def test_manifests_in_folders_beside_other_apps_are_apps() -> None:
    there = found(
        {
            "deploy/all.yaml": CONFIG,
            "deploy/chart/Chart.yaml": CHART,
            "deploy/manifests/a.yaml": CONFIG,
            "deploy/manifests/more/b.yaml": CONFIG,
            "deploy/scaling/a.yaml": CONFIG,
        }
    )
    assert {each.path: each.form for each in there.findings} == {
        "deploy/chart": "helm",
        "deploy/manifests": "kustomize",
        "deploy/scaling": "kustomize",
    }
    assert [each.where for each in there.refusals] == ["deploy"]


def test_plain_manifests_get_a_kustomization_per_environment() -> None:
    files = {f"environments/{each}/web/all.yaml": CONFIG for each in ("qa", "prod")}
    [only] = found(files).findings
    assert only.overlays == {each: f"environments/{each}/web" for each in ("qa", "prod")}
    assert b"all.yaml" in only.generated["environments/qa/web/kustomization.yaml"]


def test_applications_per_environment_are_one_app() -> None:
    files = {
        **kustomized(
            "apps/web/base", {"qa": "apps/web/overlays/qa", "prod": "apps/web/overlays/prod"}
        ),
        "argo/qa.yaml": "# first\n---\n" + application("web-qa", {"path": "apps/web/overlays/qa"}),
        "argo/prod.yaml": application("web-prod", {"path": "apps/web/overlays/prod"}, "web-prod"),
    }
    [only] = found(files).findings
    assert (only.name, only.path, only.namespace) == ("web", "apps/web/base", "web")
    assert only.overlays == {"qa": "apps/web/overlays/qa", "prod": "apps/web/overlays/prod"}
    assert "become web" in only.notes[0]


def test_an_environment_in_the_middle_of_a_name_is_no_part_of_the_app() -> None:
    files = {"web/kustomization.yaml": overlay("all.yaml"), "web/all.yaml": CONFIG}
    for each, folder in (("uat", "uat"), ("production", "prod")):
        declared = application(f"shop-{each}-web", {"path": "web"}, f"shop-{each}")
        files[f"argo/{folder}/web.yaml"] = declared
    files["argo/e2e-test-web.yaml"] = application("e2e-test-web", {"path": "web"}, "web")
    apps = {each.name: each for each in found(files).findings}
    assert apps.keys() == {"shop-web", "e2e-test-web"}
    assert apps["shop-web"].environments == ("production", "uat")
    assert apps["e2e-test-web"].environments == ()


def test_the_folder_of_one_environment_names_no_app_of_several() -> None:
    files = {"web/kustomization.yaml": overlay("all.yaml"), "web/all.yaml": CONFIG}
    for each in ("qa", "prod"):
        files[f"argo/more/{each}/web.yaml"] = application("web", {"path": "web"})
    files["other/web/all.yaml"] = CONFIG
    names = [each.name for each in found(files).findings]
    assert not [each for each in names if "prod" in each or "qa" in each]


def test_a_generic_application_name_is_replaced_by_the_folder_name() -> None:
    files = kustomized("shop/base", {"qa": "shop/overlays/qa", "prod": "shop/overlays/prod"})
    for each in ("qa", "prod"):
        files[f"{each}.yaml"] = application(f"{each}-app", {"path": f"shop/overlays/{each}"})
    [only] = found(files).findings
    assert (only.name, only.environments) == ("shop", ("prod", "qa"))


def test_the_location_of_a_finding_has_a_line() -> None:
    files = {
        "a.yaml": "# x\n---\n# y\n" + application("web", {"chart": "web", "repoURL": "https://c"})
    }
    assert found(files).findings[0].where == "a.yaml:4"


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


def test_many_values_files_of_no_environment_are_one_note() -> None:
    files = {f"web/values/values.{each}.yaml": "" for each in ("mysql", "s3", "tls", "qa", "x-y")}
    [web] = found({"web/Chart.yaml": CHART, **files}).findings
    assert web.values == {"qa": "values/values.qa.yaml"}
    [note] = web.notes
    assert note.startswith("4 values files are skipped")
    assert "mysql, s3, tls and 1 more (--map mysql=ENV" in note


def test_an_application_can_name_a_chart_inside_of_another_charts_folder() -> None:
    files = {
        "apps/Chart.yaml": CHART,
        "apps/web/Chart.yaml": CHART,
        "apps/web/templates/all.yaml": "{{ if .Values.a }}\nkind: ConfigMap\n{{ end }}\n",
        "web.yaml": application("web", {"path": "apps/web"}),
    }
    assert ("web", "helm", "apps/web") in [
        (each.name, each.form, each.path) for each in found(files).findings
    ]


def test_a_single_values_file_of_the_chart_is_referenced_in_place() -> None:
    files = {
        "web/Chart.yaml": CHART,
        "web/values-qa.yaml": "",
        "web.yaml": application("web", {"path": "web", "helm": {"valueFiles": ["values-qa.yaml"]}}),
    }
    [only] = found(files).findings
    assert only.values == {"qa": "values-qa.yaml"}


def test_remote_charts_and_repositories_are_found() -> None:
    chart = {"chart": "web", "repoURL": "registry.example.org/charts", "targetRevision": "1.2.3"}
    other = {
        "path": "deploy",
        "repoURL": "https://elsewhere.example.org/api",
        "targetRevision": "v1",
    }
    files = {
        "web.yaml": application("web", {**chart, "helm": {"values": "replicas: 2\n"}}),
        "api.yaml": application("api", other),
    }
    for name, source in {
        "whole": {"repoURL": "oci://registry.example.org/charts/whole", "path": "."},
        "below": {"repoURL": "registry.example.org", "chart": "charts/below"},
    }.items():
        files[f"{name}.yaml"] = application(name, {**source, "targetRevision": "1.0.0"})
    api, below, web, whole = found(files).findings
    for each in (below, whole):
        assert each.remote == RemoteSource("oci://registry.example.org/charts", "1.0.0", each.name)
    assert web.remote == RemoteSource("oci://registry.example.org/charts", "1.2.3", "web")
    assert (
        web.values == {"": b"replicas: 2\n"}
        or web.values[""] == dump_all([{"replicas": 2}]).encode()
    )
    assert api.remote == RemoteSource("https://elsewhere.example.org/api", "v1")


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


def test_each_source_of_an_application_becomes_an_app() -> None:
    """All are in the Application's namespace, since they refer to each other by name."""
    chart = {"repoURL": "https://charts.example.org", "chart": "db", "targetRevision": "1.0.0"}

    def sources(environment: str) -> Any:
        paths = (f"web/overlays/{environment}", f"extra/{environment}")
        return [*({"repoURL": URL, "path": each} for each in paths), chart]

    files = {
        f"argo/{each}.yaml": document("Application", f"web-{each}", {"sources": sources(each)})
        for each in ("qa", "prod")
    }
    for folder in ("web/overlays/qa", "web/overlays/prod", "extra/qa", "extra/prod"):
        files |= {f"{folder}/kustomization.yaml": overlay("a.yaml"), f"{folder}/a.yaml": CONFIG}
    there = found(files)
    assert not there.refusals
    assert [(each.name, each.namespace) for each in there.findings] == [
        ("web", "web"),
        ("web-db", "web"),
        ("web-extra", "web"),
    ]
    web, db, extra = there.findings
    assert db.remote == RemoteSource("https://charts.example.org", "1.0.0", "db")
    assert extra.overlays == {"qa": "extra/qa", "prod": "extra/prod"}
    assert web.notes == ("each source of the Application becomes an app: web, web-extra, web-db",)


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


def test_the_dry_source_of_a_source_hydrator_is_imported() -> None:
    dry = {"repoURL": URL, "path": "web", "targetRevision": "HEAD"}
    files = {
        f"{each}.yaml": document(
            "Application", f"web-{each}", {"sourceHydrator": {"drySource": {**dry, "helm": helm}}}
        )
        for each, helm in (("qa", {"valueFiles": ["values-qa.yaml"]}), ("prod", {}))
    }
    files |= {"web/Chart.yaml": CHART, "web/values-qa.yaml": "a: b\n"}
    [web] = found(files).findings
    assert (web.path, web.environments) == ("web", ("prod", "qa"))


def test_rendered_branches_are_not_mistaken_for_an_app_of_apps() -> None:
    source = {"repoURL": URL, "path": "./", "targetRevision": "env/qa"}
    files = {"argo/web.yaml": application("web", source), "web/web.yaml": CONFIG}
    assert refusal(found(files), "web").reason.startswith("its targetRevision is env/qa")


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


def test_applications_with_the_same_name_are_refused_with_the_commands_that_add_them() -> None:
    """One that deploys the same source is a duplicate, which isn't refused."""
    files = {
        "a.yaml": application("web", {"path": "web"}),
        "b.yaml": application("web", {"path": "web"}),
        "web/all.yaml": CONFIG,
        "more/all.yaml": CONFIG,
    }
    assert [each.name for each in found(files).findings] == ["more", "web"]
    files["c.yaml"] = application("web", {"path": "more"})
    assert refusal(found(files), "web").advice == (
        "add them under different names: ucp app add web web; ucp app add web-2 more"
    )


def test_unsupported_settings_of_an_application_are_refused() -> None:
    cases = {
        "plugin": ({"path": "web", "plugin": {"name": "x"}}, "plugin"),
        "patched": ({"path": "web", "kustomize": {"version": "v4"}}, "kustomize.version"),
        "named": ({"path": "web", "kustomize": {"namePrefix": "x-"}}, "web, which has none"),
        "elsewhere": (
            {"repoURL": "https://x.org/y", "path": "web", "kustomize": {"namePrefix": "x-"}},
            "another repository's folder",
        ),
        "old": ({"path": "web", "targetRevision": "v0.9"}, "targetRevision is v0.9"),
        "gone": ({"path": "nowhere"}, "no folder nowhere"),
        "file": ({"path": "web", "helm": {"fileParameters": [{"name": "x"}]}}, "fileParameters"),
        "lost": (
            {"path": "web", "helm": {"valueFiles": ["lost.yaml"]}},
            "lost.yaml does not exist",
        ),
        "list": (
            {"path": "web", "helm": {"parameters": [{"name": "a[x]", "value": "1"}]}},
            "a[x] is not a path",
        ),
    }
    for name, (source, words) in cases.items():
        files = {"web/Chart.yaml": CHART, "a.yaml": application(name, source)}
        only = refusal(found(files), name)
        assert words in only.reason
        assert only.where == "a.yaml:1"
        assert only.advice


def test_chart_versions_may_differ_between_environments_but_commits_may_not() -> None:
    def of(version: str, **more: str) -> dict[str, str]:
        return {"repoURL": "https://c.example.org", "targetRevision": version, **more}

    files = {
        "a.yaml": application("web-qa", of("2.0.0", chart="web")),
        "b.yaml": application("web-prod", of("1.0.0", chart="web")),
    }
    assert found(files).findings[0].versions == {"qa": "2.0.0", "prod": "1.0.0"}
    files["b.yaml"] = application("web-prod", of("1.0.0", chart="other"))
    assert "different versions" in refusal(found(files), "web").reason
    files = {each: application(f"web-{each}", of(f"v-{each}", path="x")) for each in ("qa", "prod")}
    files = {f"{each}.yaml": text for each, text in files.items()}
    assert "different versions" in refusal(found(files), "web").reason


def test_applicationsets_over_lists_and_directories_are_expanded() -> None:
    template = {
        "metadata": {"name": "{{path.basename}}-{{env}}"},
        "spec": {
            "source": {"repoURL": URL, "path": "{{path}}/overlays/{{env}}"},
            "destination": {"namespace": "{{path.basename}}"},
        },
    }
    names = [{"list": {"elements": [{"env": "qa"}, {"env": "blue"}]}}]
    folders = {
        "git": {
            "repoURL": URL,
            "directories": [{"path": "apps/*"}, {"path": "apps/old", "exclude": True}],
        }
    }
    files = {
        "set.yaml": application_set("all", {"matrix": {"generators": [folders, *names]}}, template),
    }
    for app in ("web", "api", "old"):
        overlays = {each: f"apps/{app}/overlays/{each}" for each in ("qa", "blue")}
        files |= kustomized(f"apps/{app}/base", overlays)
    there = found(files)
    api, _, web = there.findings
    assert (api.name, web.name) == ("api", "web")
    assert web.overlays == {each: f"apps/web/overlays/{each}" for each in ("qa", "blue")}
    assert web.where == "set.yaml:1"
    # The directory that the set excludes is found by its layout.
    assert there.findings[1].where == "apps/old"


def test_applicationsets_over_files_with_go_templates_are_expanded() -> None:
    template = {
        "metadata": {"name": "{{ index .path.segments 1 | lower }}-{{ .env }}"},
        "spec": {
            "source": {
                "repoURL": URL,
                "path": "charts/{{ index .path.segments 1 }}",
                "helm": {"valueFiles": ["values-{{ .env }}.yaml"]},
            },
            "destination": {"namespace": "{{ .target.namespace }}"},
        },
    }
    generator = {"git": {"repoURL": URL, "files": [{"path": "config/**/config.json"}]}}
    files = {
        "set.yaml": application_set("all", generator, template, goTemplate=True),
        "config/web/qa/config.json": '{"env": "qa", "target": {"namespace": "shop"}}',
        "config/web/prod/config.json": '{"env": "prod", "target": {"namespace": "shop"}}',
        "charts/web/Chart.yaml": CHART,
        "charts/web/values-qa.yaml": "",
        "charts/web/values-prod.yaml": "",
    }
    [only] = found(files).findings
    assert (only.name, only.namespace, only.environments) == ("web", "shop", ("prod", "qa"))
    assert only.values == {"qa": "values-qa.yaml", "prod": "values-prod.yaml"}


def test_applicationsets_that_cannot_be_expanded_are_refused() -> None:
    template = {"metadata": {"name": "{{name}}"}, "spec": {"source": {"repoURL": URL, "path": "x"}}}
    folders = [{"path": "*"}]
    cases: dict[str, tuple[Any, Any, str]] = {
        "clusters": (
            {"clusters": {"selector": {"matchLabels": {"enable_web": "true"}}}},
            template,
            "by labels (enable_web=true) that name no environment",
        ),
        "scm": ({"scmProvider": {}}, template, "queries a git host"),
        "other": (
            {"git": {"repoURL": "https://x.org/y", "directories": folders}},
            template,
            "another",
        ),
        "unknown": ({"list": {"elements": [{"a": "b"}]}}, template, "{{name}}"),
        "nothing": ({"list": {"elements": []}}, template, "yield nothing"),
    }
    for name, (generator, body, words) in cases.items():
        only = refusal(found({"s.yaml": application_set(name, generator, body)}), name)
        assert words in only.reason


def applications_of(
    generator: Any, template: Any, files: Mapping[str, str] | None = None, **more: Any
) -> list[Any]:
    """The specs of the Applications that a set generates for the clusters stage and prod."""
    usual = {"apps/web/a.yaml": CONFIG, "config/x.json": '{"of": [{"a": 1}]}'}
    tree = RepositoryTree(place(usual if files is None else files))
    [declared] = read_documents(application_set("all", generator, template, **more).encode(), "s")
    context = SetContext(tree, lambda url: url == URL, ("stage", "prod"), {"stage", "prod", "qa"})
    return [each.document.content["spec"] for each in expand(declared, context)]


def test_cluster_generators_yield_the_environments() -> None:
    template = {"spec": {"path": "{{metadata.labels.environment}}/{{values.a}}"}}
    every = {"clusters": {"values": {"a": "of-{{name}}"}}}
    assert applications_of(every, template) == [
        {"path": "stage/of-stage"},
        {"path": "prod/of-prod"},
    ]
    source = {"source": {"repoURL": URL, "path": "charts/web", "helm": {}}}
    source["source"]["helm"] = {"valueFiles": ["values-{{name}}.yaml"]}
    files = {
        "set.yaml": application_set(
            "all", {"clusters": {}}, {"metadata": {"name": "{{name}}-web"}, "spec": source}
        ),
        "charts/web/Chart.yaml": CHART,
        **{f"charts/web/values-{each}.yaml": f"a: {each}\n" for each in ("east", "west")},
    }
    [web] = found(files, clusters=["east", "west"]).findings
    assert (web.name, web.environments) == ("web", ("east", "west"))
    assert web.values == {"east": "values-east.yaml", "west": "values-west.yaml"}
    labels = {"matchLabels": {"argocd.argoproj.io/secret-type": "cluster", "env": "qa"}}
    assert applications_of({"clusters": {"selector": labels}}, {"spec": {"path": "{{name}}"}}) == [
        {"path": "qa"}
    ]


def test_cluster_generators_exclude_clusters_by_name() -> None:
    def chosen(*rules: Mapping[str, Any]) -> list[Any]:
        generator = {"clusters": {"selector": {"matchExpressions": list(rules)}}}
        return [each["path"] for each in applications_of(generator, {"spec": {"path": "{{name}}"}})]

    own = {"key": "name", "operator": "NotIn", "values": ["in-cluster"]}
    assert chosen(own) == ["stage", "prod"]
    assert chosen(own, {"key": "env", "operator": "NotIn", "values": ["prod"]}) == ["stage"]
    gold = {"key": "tier", "operator": "NotIn", "values": ["gold"]}
    files = {
        "s.yaml": application_set(
            "web", {"clusters": {"selector": {"matchExpressions": [gold]}}}, {"metadata": {}}
        )
    }
    assert refusal(found(files), "web").advice.startswith("--map gold=ENV, if one environment")


def cluster(name: str, labels: Mapping[str, str]) -> str:
    marked = {"argocd.argoproj.io/secret-type": "cluster", **labels}
    metadata = {"name": f"c-{name}", "labels": marked, "annotations": {"at": "x"}}
    said = {"name": name, "server": "https://192.0.2.1"}
    head = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    return dump_all([{**head, "stringData": said}])


def test_cluster_generators_select_cluster_secrets_in_the_repository_by_labels() -> None:
    path = "{{metadata.labels.tier}}/{{metadata.annotations.at}}"
    source = {"source": {"repoURL": URL, "path": f"web/{path}"}}
    selector = {"selector": {"matchLabels": {"web": "true"}}}
    files = {
        "clusters/a.yaml": cluster("eu-stage", {"web": "true", "tier": "gold"}),
        "clusters/b.yaml": cluster("b", {"web": "true", "tier": "iron", "env": "prod"}),
        "clusters/c.yaml": cluster("c", {"tier": "iron"}),
        "set.yaml": application_set(
            "all", {"clusters": selector}, {"metadata": {"name": "{{name}}-web"}, "spec": source}
        ),
        **{f"web/{each}/x/kustomization.yaml": overlay("a.yaml") for each in ("gold", "iron")},
        **{f"web/{each}/x/a.yaml": CONFIG for each in ("gold", "iron")},
    }
    there = found(files, environments=["stage", "prod"])
    assert {each.environments: dict(each.overlays) for each in there.findings} == {
        ("stage",): {"stage": "web/gold/x"},
        ("prod",): {"prod": "web/iron/x"},
    }
    files["clusters/c.yaml"] = cluster("c", {"web": "true"})
    assert refusal(found(files), "all").advice == "--map c=ENV, or --skip-env c"


def test_generators_are_merged_and_filtered_by_selectors() -> None:
    template = {"spec": {"env": "{{env}}", "tag": "{{tag}}"}}
    elements = [{"env": "stage", "tag": "1"}, {"env": "prod", "tag": "1"}]
    some = [{"env": "prod", "tag": "2"}, {"env": "eu", "tag": "3"}]
    merged = {
        "mergeKeys": ["env"],
        "generators": [{"list": {"elements": each}} for each in (elements, some)],
    }
    assert applications_of({"merge": merged}, template) == [
        {"env": "stage", "tag": "1"},
        {"env": "prod", "tag": "2"},
    ]
    for selector in (
        {"matchLabels": {"env": "prod"}},
        {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["stage"]}]},
    ):
        generator = {"list": {"elements": elements}, "selector": selector}
        assert applications_of(generator, template) == [{"env": "prod", "tag": "1"}]


def test_template_patches_and_template_functions_are_evaluated() -> None:
    elements = [{"env": "stage"}, {"env": "prod", "tag": "2", "site": "eu-west"}]
    found = applications_of(
        {"list": {"elements": elements}},
        {"spec": {"tag": '{{ .tag | default "1" }}', "more": {"a": "b"}}},
        goTemplate=True,
        templatePatch=(
            'spec: {more: {site: \'{{ .site | default .env | replace "-" "_" | upper }}\'}, '
            'name: \'{{ printf "%s-%s" .env (index (splitList "-" .env) 0) }}\'}'
        ),
    )
    assert found == [
        {"tag": "1", "more": {"a": "b", "site": "STAGE"}, "name": "stage-stage"},
        {"tag": "2", "more": {"a": "b", "site": "EU_WEST"}, "name": "prod-prod"},
    ]
    only = refusal(
        found_set("{{ if .env }}a{{ end }}", elements),
        "all",
    )
    assert "{{if .env}}" in only.reason


@pytest.mark.parametrize("text", ['{{ default "x" }}', "{{ last .labels }}"])
def test_a_template_function_with_wrong_arguments_is_refused(text: str) -> None:
    only = refusal(found_set(text, [{"env": "stage", "labels": {"a": "b"}}]), "all")
    assert text.replace("{{ ", "{{").replace(" }}", "}}") in only.reason


def found_set(text: str, elements: Any) -> Discovery:
    template = {"metadata": {"name": text}, "spec": {"source": {"repoURL": URL, "path": "x"}}}
    generator = {"list": {"elements": elements}}
    return found({"s.yaml": application_set("all", generator, template, goTemplate=True)})


def test_applications_of_a_fork_may_name_the_original() -> None:
    original = "https://git.example.org/others/platform.git"
    files = {
        "a.yaml": application("web-a", {"repoURL": original, "path": "web"}),
        "b.yaml": application("api", {"repoURL": "https://x.org/api", "path": "web"}),
        "web/all.yaml": CONFIG,
    }
    there = found(files)
    assert [(each.name, each.path, bool(each.remote)) for each in there.findings] == [
        ("api", "web", True),
        ("web-a", "web", False),
    ]
    assert there.notes == (
        "git.example.org/others/platform is taken for this repository: its Applications name it",
    )
    # If one names this repository, another one with the same name is meant as such.
    files["c.yaml"] = application("own", {"path": "web"})
    there = found(files)
    assert [each.name for each in there.findings if each.remote] == ["api", "web-a"]
    assert not there.notes


def test_parameters_of_paths_and_of_lists_in_files_are_evaluated() -> None:
    files = {"repoURL": URL, "files": [{"path": "config/*.json"}], "pathParamPrefix": "from"}
    elements = {"list": {"elementsYaml": "{{ .of | toJson }}"}}
    generator = {"matrix": {"generators": [{"git": files}, elements]}}
    template = {"spec": {"a": "{{ .a }}", "path": "{{ .from.path.basename }}"}}
    assert applications_of(generator, template, goTemplate=True) == [{"a": "1", "path": "config"}]


def test_templates_can_name_the_file_that_a_generator_found() -> None:
    generator = {"git": {"repoURL": URL, "files": [{"path": "clusters/*.yaml"}]}}
    files = {"clusters/EU_1.yaml": "a: b\n"}
    plain = {"spec": {"a": "{{path.filename}} {{path.filenameNormalized}} {{path}} {{path[0]}}"}}
    [found_plain] = applications_of(generator, plain, files)
    assert found_plain == {"a": "EU_1.yaml eu-1.yaml clusters clusters"}
    go = {"spec": {"a": '{{ .path.filename | trimSuffix ".yaml" }} {{ .path.path }}'}}
    assert applications_of(generator, go, files, goTemplate=True) == [{"a": "EU_1 clusters"}]


def test_hidden_folders_are_no_apps_of_an_applicationset() -> None:
    generator = {"git": {"repoURL": URL, "directories": [{"path": "*"}, {"path": "*/*"}]}}
    files = {".github/a.yaml": CONFIG, "web/.cache/a.yaml": CONFIG, "web/a.yaml": CONFIG}
    template = {"spec": {"path": "{{path}}"}}
    assert applications_of(generator, template, files) == [{"path": "web"}]


def test_a_kustomization_of_applications_in_other_folders_is_no_app() -> None:
    files = {
        "root.yaml": application("root", {"path": "clusters/eu"}),
        "clusters/eu/kustomization.yaml": overlay("../base"),
        "clusters/base/kustomization.yaml": overlay("web.yaml"),
        "clusters/base/web.yaml": application("web", {"path": "web"}),
        "web/all.yaml": CONFIG,
    }
    there = found(files)
    assert [each.name for each in there.findings] == ["web"]
    assert "listed separately" in refusal(there, "root").reason


def test_charts_that_contain_applications_are_rendered() -> None:
    files = {
        "root.yaml": application("root", {"path": "apps"}),
        "apps/Chart.yaml": CHART,
        "apps/values-qa.yaml": "",
        "apps/values-prod.yaml": "",
        "apps/templates/all.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\n{{ x }}\n",
        **kustomized("web/base", {"qa": "web/overlays/qa", "prod": "web/overlays/prod"}),
    }

    def render(chart: str, values: str | bytes | None) -> str:
        environment = str(values).removeprefix("values-").removesuffix(".yaml")
        return application("web", {"path": f"{chart}/../web/overlays/{environment}"})

    there = found(files, render)
    [only] = there.findings
    assert only.overlays == {"qa": "web/overlays/qa", "prod": "web/overlays/prod"}
    assert only.where == "apps/templates:1"
    assert "contains Applications" in refusal(there, "root").reason
    assert "helm is not available" in refusal(found(files), "apps").reason

    def fail(chart: str, values: str | bytes | None) -> str:
        raise UcpError("nil pointer")

    assert "nil pointer" in refusal(found(files, fail), "apps").reason


def test_charts_that_contain_applications_are_rendered_with_their_applications_values() -> None:
    files = {
        "argo/root.yaml": application(
            "root",
            {
                "path": "apps",
                "helm": {"valueFiles": ["more.yaml"], "values": "spec: {server: here}\n"},
            },
        ),
        "apps/Chart.yaml": CHART,
        "apps/more.yaml": "a: b\n",
        "apps/templates/web.yaml": application("web", {"path": "{{ .Values.path }}"}),
        "web/all.yaml": CONFIG,
    }
    given: list[object] = []

    def render(chart: str, values: str | bytes | None) -> str:
        given.append(values)
        return application("web", {"path": "web"})

    assert [each.name for each in found(files, render).findings] == ["web"]
    assert given == [dump_all([{"a": "b", "spec": {"server": "here"}}]).encode()]


def test_an_overlay_named_like_its_app_is_not_an_environment() -> None:
    files = {
        **kustomized("apps/bgd/base", {"": "apps/bgd/overlays/bgd"}),
        "argo/bgd.yaml": application("bgd-app", {"path": "apps/bgd/overlays/bgd"}, "bgd"),
    }
    [bgd] = found(files).findings
    assert (bgd.name, bgd.environments, bgd.path) == ("bgd-app", (), "apps/bgd/overlays/bgd")


def test_an_application_of_another_repository_is_not_an_app_of_apps() -> None:
    other = "https://git.example.org/team/other.git"
    files = {
        "argocd/root.yaml": application("root", {"path": "argocd"}),
        "argocd/web.yaml": application("web", {"repoURL": other, "path": "."}),
        "argocd/all.yaml": application("all", {"path": "."}),
    }
    there = found(files)
    assert [(each.name, each.remote) for each in there.findings] == [("web", RemoteSource(other))]
    assert {each.name for each in there.refusals} == {"root", "all"}


def test_cnoe_urls_refer_to_folders_beside_the_application() -> None:
    """Packages of idpbuilder use such URLs."""
    chart = {"repoURL": "https://charts.example.org", "chart": "db", "targetRevision": "1.0.0"}
    files = {
        "stacks/web.yaml": application("web", {"repoURL": "cnoe://web/manifests", "path": "."}),
        "stacks/web/manifests/web.yaml": CONFIG,
        "stacks/shop.yaml": application("shop", {"repoURL": "cnoe://../all", "path": "shop"}),
        "all/shop/kustomization.yaml": overlay("all.yaml"),
        "stacks/lost.yaml": application("lost", {"repoURL": "cnoe://lost"}),
        "stacks/db.yaml": document(
            "Application",
            "db",
            {
                "sources": [
                    {**chart, "helm": {"valueFiles": ["$own/values.yaml"]}},
                    {"repoURL": "cnoe://web", "path": "manifests"},
                    {"repoURL": "cnoe://web", "ref": "own"},
                ]
            },
        ),
        "stacks/web/values.yaml": "a: b\n",
    }
    there = found(files)
    assert there.findings[0].values == {"": b"a: b\n"}
    assert [(each.name, each.path, each.remote) for each in there.findings] == [
        ("db", "", RemoteSource("https://charts.example.org", "1.0.0", "db")),
        ("db-manifests", "stacks/web/manifests", None),
        ("shop", "all/shop", None),
        ("web", "stacks/web/manifests", None),
    ]
    assert refusal(there, "lost").reason == "the repository has no folder stacks/lost"


def test_flux_releases_in_kustomizations_and_appprojects_are_refused() -> None:
    flux = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web}\n"
    project = document("AppProject", "team", {})
    app = application("api", {"chart": "api", "repoURL": "https://c.example.org"})
    there = found(
        {
            "web/kustomization.yaml": overlay("a.yaml"),
            "web/a.yaml": flux,
            "p.yaml": project + "---\n" + app,
        }
    )
    assert [each.name for each in there.findings] == ["api"]
    assert "Flux" in refusal(there, "web").reason
    assert "its own AppProject" in refusal(there, "team").reason


def flux(kind: str, name: str, spec: Mapping[str, Any]) -> str:
    group = "source" if kind.endswith("Repository") else "helm"
    head = {"apiVersion": f"{group}.toolkit.fluxcd.io/v1", "kind": kind}
    return dump_all([{**head, "metadata": {"name": name}, "spec": spec}])


def test_flux_helmreleases_become_apps() -> None:
    charts = {"kind": "HelmRepository", "name": "charts"}
    nginx = {"chart": {"spec": {"chart": "nginx", "version": "2.x", "sourceRef": charts}}}
    here = {"chart": "./charts/shop", "sourceRef": {"kind": "GitRepository", "name": "all"}}
    there = found(
        {
            "charts.yaml": flux("HelmRepository", "charts", {"url": "https://c.example.org/"}),
            "all.yaml": flux("GitRepository", "all", {"url": URL}),
            "api/oci.yaml": flux("OCIRepository", "a", {"url": "oci://c/api", "ref": {"tag": "1"}}),
            "job/oci.yaml": flux("OCIRepository", "a", {"url": "oci://c/job", "ref": {"tag": "2"}}),
            "api/release.yaml": flux(
                "HelmRelease",
                "api",
                {
                    "chartRef": {"kind": "OCIRepository", "name": "a"},
                    "targetNamespace": "shop",
                    "values": {"host": "api.${DOMAIN}"},
                },
            ),
            "api/config.yaml": CONFIG,
            "flux.yaml": dump_all(
                [
                    {
                        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
                        "kind": "Kustomization",
                        "metadata": {"name": "qa"},
                        "spec": {"path": "./qa", "targetNamespace": "shop"},
                    }
                ]
            ),
            "qa/web.yaml": flux("HelmRelease", "web", {**nginx, "values": {"replicas": 1}}),
            "prod/web.yaml": flux("HelmRelease", "web", {**nginx, "values": {"replicas": 2}}),
            "shop.yaml": flux("HelmRelease", "shop", {"chart": {"spec": here}}),
            "charts/shop/Chart.yaml": CHART,
        }
    )
    api, shop, web = there.findings
    assert api.remote == RemoteSource("oci://c", "1", "api")
    assert (api.namespace, api.values) == ("shop", {"": b"host: api.${DOMAIN}\n"})
    assert api.notes == (
        "Flux would fill ${DOMAIN} in its values: write what they stand for",
        "the objects beside it are not imported: ConfigMap; add each file, such as "
        "ucp app add api-more api/config.yaml --namespace shop",
    )
    assert (shop.form, shop.path, shop.remote) == ("helm", "charts/shop", None)
    assert web.remote == RemoteSource("https://c.example.org", "2.x", "nginx")
    assert web.values == {"qa": b"replicas: 1\n", "prod": b"replicas: 2\n"}
    assert shop.namespace is None
    assert not there.refusals


def test_a_flux_release_from_a_commit_of_another_repository_keeps_that_commit() -> None:
    away = {"chart": "./charts/shop", "sourceRef": {"kind": "GitRepository", "name": "all"}}
    release = flux("HelmRelease", "shop", {"chart": {"spec": away}})

    def of(ref: Mapping[str, str]) -> Discovery:
        source = {"url": "https://git.example.org/a", "ref": ref}
        return found({"a.yaml": flux("GitRepository", "all", source), "shop.yaml": release})

    (shop,) = of({"branch": "main", "commit": "0" * 40}).findings
    assert shop.remote == RemoteSource("https://git.example.org/a", "0" * 40)
    assert "ref.semver" in refusal(of({"branch": "main", "semver": "1.x"}), "shop").reason


def test_unsupported_flux_releases_are_refused_with_the_command_that_adds_them() -> None:
    charts = {"kind": "HelmRepository", "name": "charts"}
    there = found(
        {
            "charts.yaml": flux("HelmRepository", "charts", {"url": "https://c.example.org/"}),
            "api.yaml": flux(
                "OCIRepository", "api", {"url": "oci://c/api", "ref": {"tag": "1.2.3"}}
            ),
            "web.yaml": flux(
                "HelmRelease",
                "web",
                {
                    "chart": {"spec": {"chart": "nginx", "version": "2.x", "sourceRef": charts}},
                    "values": {"replicas": 2},
                },
            ),
            "prod/web.yaml": flux(
                "HelmRelease", "web", {"chart": {"spec": {"version": "2.1"}}, "values": {}}
            ),
            "release.yaml": flux(
                "HelmRelease",
                "api",
                {
                    "chartRef": {"kind": "OCIRepository", "name": "api"},
                    "valuesFrom": [{"kind": "Secret", "name": "api"}],
                },
            ),
            "patched/kustomization.yaml": dump_all(
                [{"resources": ["release.yaml"], "patches": [{"path": "a.yaml"}]}]
            ),
            "patched/release.yaml": flux(
                "HelmRelease", "patched", {"chartRef": {"kind": "OCIRepository", "name": "api"}}
            ),
            "lost.yaml": flux("HelmRelease", "lost", {"chartRef": {"kind": "OCIRepository"}}),
        }
    )
    assert {each.name: each.advice for each in there.refusals} == {
        "api": "ucp app add api --chart oci://c/api --version 1.2.3",
        "patched": "ucp app add patched --chart oci://c/api --version 1.2.3",
        "lost": "ucp app add lost URL|DIR, with the chart that it names",
        "web": "ucp app add web --chart nginx --repo https://c.example.org "
        "--values FILE (with the `values` of the HelmRelease)",
    }


def test_the_command_that_adds_a_flux_release_is_quoted_for_a_shell() -> None:
    chart = {"chart": "$(id)", "sourceRef": {"kind": "HelmRepository", "name": "charts"}}
    (only,) = found(
        {
            "source.yaml": flux("HelmRepository", "charts", {"url": "https://c.example.org"}),
            "release.yaml": flux(
                "HelmRelease", "web", {"chart": {"spec": chart}, "postRenderers": [{}]}
            ),
        }
    ).refusals
    assert only.advice == "ucp app add web --chart '$(id)' --repo https://c.example.org"


def test_flux_folders_without_found_apps_are_refused_with_the_command_that_adds_them() -> None:
    def kustomization(name: str, path: str) -> str:
        head = {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization"}
        return dump_all([{**head, "metadata": {"name": name}, "spec": {"path": path}}])

    there = found(
        {
            "web/read.me": "",
            "found/all.yaml": CONFIG,
            "flux/found.yaml": kustomization("found", "./found"),
            "apps/api/release.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n"
            "metadata: {name: api}\n",
            "flux/web.yaml": kustomization("shop", "./web"),
            "flux/apps.yaml": kustomization("apps", "./apps"),
        }
    )
    assert {each.name: each.advice for each in there.refusals if each.where[:4] == "flux"} == {
        "shop": "ucp app add shop web"
    }


def test_folders_that_only_a_component_includes_are_not_apps() -> None:
    head = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
    files = {
        "web/all.yaml": CONFIG,
        "web/kustomization.yaml": dump_all(
            [{"resources": ["all.yaml"], "components": ["../components/backup"]}]
        ),
        "components/backup/kustomization.yaml": dump_all([{**head, "resources": ["claim"]}]),
        "components/backup/claim/kustomization.yaml": overlay("all.yaml"),
        "components/backup/claim/all.yaml": CONFIG,
    }
    assert [each.name for each in found(files).findings] == ["web"]


def test_copies_of_go_modules_and_npm_packages_are_not_apps() -> None:
    files = {
        "web/vendor/modules.txt": "# example.org/a v1.0.0\n",
        "web/vendor/example.org/a/testdata/all.yaml": CONFIG,
        "ui/node_modules/b/deploy/all.yaml": CONFIG,
        "vendor/chart/all.yaml": CONFIG,
    }
    assert [each.where for each in found(files).findings] == ["vendor/chart"]


def test_jsonnet_at_the_top_of_a_repository_with_other_apps_is_refused() -> None:
    there = found({"main.jsonnet": "{}", "chart/Chart.yaml": CHART})
    assert [each.form for each in there.findings] == ["helm"]
    assert refusal(there, "shop").advice.endswith("then: ucp app add shop FOLDER")
    [alone] = found({"main.jsonnet": "{}", "lib/a.libsonnet": "{}"}).findings
    assert (alone.form, alone.where) == ("jsonnet", ".")


def test_folders_with_tests_of_a_program_are_no_environment() -> None:
    files = {"test/more/web/all.yaml": CONFIG, "integration/db/Chart.yaml": CHART, "a.go": ""}
    there = found(files)
    assert [(each.name, each.environments) for each in there.findings] == [("db", ())]
    assert [each.where for each in there.refusals] == ["test/more"]
    # Beside another environment, below `overlays`, or if the user names it, it is one.
    for more in ({"prod/web/all.yaml": CONFIG}, {"db/overlays/test/all.yaml": CONFIG}):
        assert "test" in {
            name for each in found(files | more).findings for name in each.environments
        }
    [_, web] = found({**files, "integration/db/Chart.yaml": CHART}, environments=["test"]).findings
    assert web.environments == ("test",)


def test_a_chart_of_a_single_environment_is_refused_with_that_reason() -> None:
    there = found({"prod/web/Chart.yaml": CHART})
    assert refusal(there, "web").reason == "its chart is in the folder of an environment (prod)"


def test_only_manifests_count_as_objects_of_flux() -> None:
    files = {"web/all.yaml": CONFIG, "web/docs/index.html": "See fluxcd.io/docs\n"}
    there = found(files)
    assert [each.name for each in there.findings] == ["web"]
    assert not there.refusals


def test_apps_with_the_same_name_are_distinguished_by_their_parent_folder() -> None:
    files = {"team-a/web/all.yaml": CONFIG, "team-b/web/all.yaml": CONFIG}
    assert [each.name for each in found(files).findings] == ["team-a-web", "team-b-web"]


def test_app_names_include_as_many_parent_folders_as_needed() -> None:
    paths = ("a/tools/web/all.yaml", "b/tools/web/all.yaml", "c/base/web/base/all.yaml")
    files = dict.fromkeys(paths, CONFIG)
    names = {each.where: each.name for each in found(files).findings}
    assert names == {
        "a/tools/web": "a-tools-web",
        "b/tools/web": "b-tools-web",
        "c/base/web/base": "c-web",
    }


def test_folder_names_that_describe_their_content_are_not_used_as_app_names() -> None:
    files = {
        "src/cart/k8s/all.yaml": CONFIG,
        "src/front/deploy/k8s/all.yaml": CONFIG,
        "src/pay/chart/Chart.yaml": CHART,
        "kubernetes-manifests/all.yaml": CONFIG,
        "helm/Chart.yaml": CHART.replace("any", "teller"),
        "\u6f22\u5b57/all.yaml": CONFIG,
    }
    assert {each.where: each.name for each in found(files).findings} == {
        "src/cart/k8s": "cart",
        "src/front/deploy/k8s": "front",
        "src/pay/chart/Chart.yaml": "pay",
        "kubernetes-manifests": "kubernetes-manifests-shop",
        "helm/Chart.yaml": "teller",
        "\u6f22\u5b57": "shop",
    }


def test_an_invalid_yaml_file_excludes_only_the_app_of_its_folder() -> None:
    broken = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a\n"
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Name }}}\n"
    files = {
        "web/dev/a.yaml": CONFIG,
        "web/dev/b.yaml": broken,
        "web/prod/a.yaml": CONFIG,
        "api/a.yaml": CONFIG,
        "api/b.yaml": template,
        "cart/a.yaml": CONFIG,
    }
    there = found(files)
    assert [each.name for each in there.findings] == ["cart"]
    assert "not valid YAML" in refusal(there, "web").reason
    assert "not valid YAML" in refusal(there, "api").reason


def test_manifests_beside_other_apps_are_refused_with_the_command_that_adds_them() -> None:
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Name }}}\n"
    files = {"apps/all.yaml": CONFIG, "apps/web/Chart.yaml": CHART}
    there = found({**files, "apps/web/templates/all.yaml": template})
    assert [each.name for each in there.findings] == ["web"]
    only = refusal(there, "apps")
    assert "beside other apps (web)" in only.reason
    assert only.advice.startswith("ucp app add apps apps/all.yaml")


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

    [only] = detect(place(files), title="shop", render=render).findings
    assert (only.remote, only.path) == (None, "web")


def test_a_base_can_be_in_any_folder() -> None:
    files = kustomized("base/web", {"prod": "clusters/prod/web", "dev": "clusters/dev/web"})
    [only] = found(files).findings
    assert only.path == "base/web"


def test_tanka_environments_are_refused_with_the_reason() -> None:
    spec = '{"apiVersion": "tanka.dev/v1alpha1", "kind": "Environment"}'
    files = {"main.jsonnet": "{}", "spec.json": spec}
    there = found(
        {f"environments/{env}/{name}": text for env in ("a", "b") for name, text in files.items()}
    )
    assert not there.findings
    assert [each.reason for each in there.refusals] == ["Tanka renders its environments"]


def test_the_command_for_manifests_beside_other_apps_names_a_manifest_file() -> None:
    there = found(
        {
            "k8s/Makefile": "all:\n",
            "k8s/README.md": "read me\n",
            "k8s/all.yaml": CONFIG,
            "k8s/web/kustomization.yaml": overlay("web.yaml"),
            "k8s/web/web.yaml": CONFIG.replace("settings", "web"),
        }
    )
    assert refusal(there, "shop").advice == "ucp app add shop k8s/all.yaml, and so on for each file"


def test_common_folder_names_are_not_used_as_app_names() -> None:
    for folder in ("k8s-specifications", "deploy/helm-chart", "release", "dist"):
        assert [each.name for each in found({f"{folder}/a.yaml": CONFIG}).findings] == ["shop"]


def test_files_of_unsupported_tools_are_reported() -> None:
    files = {
        "web/fleet.yaml": "helm: {chart: web, repo: 'https://charts.example.org'}\n",
        "shop/fleet.yaml": "defaultNamespace: shop\n",
        "shop/web.yaml": CONFIG,
        "db/helmfile.yaml": "releases: []\n",
        "compose.yaml": "services: {}\n",
    }
    there = found(files)
    [shop] = there.findings
    assert "shop/fleet.yaml of Rancher Fleet is not supported" in shop.notes[0]
    assert [each.where for each in there.refusals] == ["db/helmfile.yaml", "web/fleet.yaml"]
    advice = "ucp app add web --chart web --repo https://charts.example.org"
    assert refusal(there, "web").advice == advice
    # Beside other findings a compose file isn't reported, since it is for developers.
    several = {f"compose{each}.yaml": "services: {}\n" for each in ("", ".full", ".tests")}
    assert refusal(found(several), "shop").where == "compose.full.yaml"

    modules = {f"mod/{each}/cue.mod/module.cue": "" for each in ("a", "b")}
    there = found({**modules, "mod/b/timoni.cue": ""})
    assert [(each.name, each.where) for each in there.refusals] == [
        ("a", "mod/a/cue.mod/module.cue"),
        ("b", "mod/b/timoni.cue"),
    ]


def test_many_compose_files_have_the_same_words_so_that_one_line_can_list_them() -> None:
    there = found({f"stacks/{each}/compose.yaml": "services: {}\n" for each in "abcd"})
    assert [each.name for each in there.refusals] == ["a", "b", "c", "d"]
    [(reason, advice)] = {(each.reason, each.advice) for each in there.refusals}
    assert reason == "files of Docker Compose are not read"
    assert "ucp app add NAME IMAGE:TAG" in advice


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


def test_files_that_an_application_does_not_deploy_are_not_imported() -> None:
    job = CONFIG.replace("settings", "job")
    files = {"web/all.yaml": CONFIG, "web/jobs/job.yaml": job}
    for directory, reason in (
        ({"recurse": True, "exclude": "jobs*"}, "selects files with directory.exclude"),
        ({"recurse": True, "include": "all.yaml"}, "selects files with directory.include"),
        ({}, "web/jobs/job.yaml is in a subfolder"),
    ):
        declared = application("web", {"path": "web", "directory": directory})
        there = found({**files, "argo/web.yaml": declared})
        assert not there.findings
        assert reason in refusal(there, "web").reason
    for directory in (
        {"recurse": True},
        {"recurse": True, "include": "*.yaml"},
        {"recurse": True, "include": "{*.yml,*.yaml}", "exclude": "{README.md,*.json}"},
    ):
        whole = application("web", {"path": "web", "directory": directory})
        assert [each.path for each in found({**files, "argo/web.yaml": whole}).findings] == ["web"]


def test_files_that_an_applicationset_excludes_are_not_imported() -> None:
    rules = [{"path": "apps/*/config.yaml"}, {"path": "apps/old/config.yaml", "exclude": True}]
    declared = application_set(
        "all",
        {"git": {"repoURL": URL, "files": rules}},
        {
            "metadata": {"name": "{{name}}"},
            "spec": {"source": {"repoURL": URL, "path": "{{path}}"}},
        },
    )
    files = {"argo/all.yaml": declared}
    for name in ("web", "old"):
        files[f"apps/{name}/config.yaml"] = f"name: declared-{name}\n"
        files[f"apps/{name}/all.yaml"] = CONFIG
    names = {each.name for each in found(files).findings}
    assert "declared-web" in names
    assert "declared-old" not in names


def test_ignored_differences_of_an_application_are_reported() -> None:
    spec = {
        "source": {"repoURL": URL, "path": "web"},
        "ignoreDifferences": [{"kind": "ConfigMap", "jsonPointers": ["/data"]}],
    }
    files = {"argo/web.yaml": document("Application", "web", spec), "web/all.yaml": CONFIG}
    [web] = found(files).findings
    assert any("ignoreDifferences" in each for each in web.notes)


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


def test_different_versions_are_refused_with_a_command_that_adds_one_of_them() -> None:
    files = {
        f"{each}.yaml": application(
            f"db-{each}",
            {"repoURL": "https://c.example.org", "path": "db", "targetRevision": version},
        )
        for each, version in (("qa", "2.0.0"), ("prod", "1.0.0"))
    }
    assert refusal(found(files), "db").advice == (
        "add one with `ucp app add db https://c.example.org --path db --ref 1.0.0`, then change "
        "the others by commits"
    )


def test_kustomize_settings_of_an_application_are_written_to_the_kustomization() -> None:
    files = kustomized("web/base", {"qa": "web/overlays/qa", "prod": "web/overlays/prod"})
    for each, image in (("qa", "web:2"), ("prod", "web:1")):
        source = {"path": f"web/overlays/{each}", "kustomize": {"images": [image]}}
        files[f"argo/{each}.yaml"] = application(f"web-{each}", source)
    [web] = found(files).findings
    assert web.overlays == {"qa": "web/overlays/qa", "prod": "web/overlays/prod"}
    file = "web/overlays/qa/kustomization.yaml"
    assert web.generated[file].decode() == (files[file] + "images:\n- name: web\n  newTag: '2'\n")
    assert any("written to web/overlays/prod/kustomization.yaml, " in each for each in web.notes)

    alone = {"path": "web/base", "kustomize": {"namePrefix": "x-", "components": ["../more"]}}
    files = {
        "web/base/kustomization.yaml": overlay("all.yaml"),
        "web/base/all.yaml": CONFIG,
        "web/more/kustomization.yaml": "kind: Component\n",
        "argo/web.yaml": application("web", alone),
    }
    [web] = found(files).findings
    content = web.generated["web/base/kustomization.yaml"].decode()
    assert content.endswith("namePrefix: x-\ncomponents:\n- ../more\n")
    del files["web/more/kustomization.yaml"]
    assert "component ../more does not exist" in refusal(found(files), "web").reason


def test_kustomize_settings_of_one_environment_on_a_shared_folder_are_refused() -> None:
    files = {"web/kustomization.yaml": overlay("all.yaml"), "web/all.yaml": CONFIG}
    for each in ("qa", "prod"):
        source = {"path": "web", "kustomize": {"images": [f"web:{each}"]}}
        files[f"argo/{each}.yaml"] = application(f"web-{each}", source)
    only = refusal(found(files), "web")
    assert "kustomize.images for one environment" in only.reason
    assert "overlay for each environment" in only.advice
    settings = {"images": ["x:1"], "commonLabels": {"a": "$ARGOCD_APP_NAME"}}
    files = {
        "web/kustomization.yaml": overlay("all.yaml"),
        "web/all.yaml": CONFIG,
        "argo/web.yaml": application("web", {"path": "web", "kustomize": settings}),
    }
    assert "commonLabels to $ARGOCD_APP_NAME" in refusal(found(files), "web").reason


def test_a_single_overlay_named_default_is_used_for_every_environment() -> None:
    """Many catalogues have this layout; the parent folder is not a kustomization."""
    [web] = found(kustomized("web/base", {"": "web/overlays/default"})).findings
    assert (web.path, web.overlays, web.environments) == ("web/overlays/default", {}, ())
    declared = {"argo/web.yaml": application("web", {"path": "web/overlays/default"})}
    [web] = found({**kustomized("web/base", {"": "web/overlays/default"}), **declared}).findings
    assert (web.path, web.overlays, web.environments) == ("web/overlays/default", {}, ())
    two = kustomized("web/base", {"": "web/overlays/default", "prod": "web/overlays/prod"})
    [web] = found(two).findings
    assert (web.path, list(web.overlays)) == ("web/overlays/default", ["prod"])


def test_a_kargo_pipeline_is_not_an_app() -> None:
    stage = "apiVersion: kargo.akuity.io/v1alpha1\nkind: Stage\nmetadata: {name: test}\n"
    check = "apiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: test}\n"
    files = {"kargo/stages.yaml": stage, "kargo/check.yaml": check, "app/config.yaml": CONFIG}
    there = found(files)
    assert [each.name for each in there.findings] == ["app"]
    assert "promotesFrom" in refusal(there, "kargo").advice


def of_files(path: str, name: str, **more: Any) -> str:
    """An ApplicationSet with Go templates, over files."""
    template = {
        "metadata": {"name": name},
        "spec": {
            "source": {"repoURL": URL, "path": "{{ .path.path }}"},
            "destination": {"namespace": '{{ dig "meta" "space" "shared" . }}'},
        },
    }
    generator = {"git": {"repoURL": URL, "files": [{"path": path}]}}
    return application_set("all", generator, template, goTemplate=True, **more)


def test_nested_parameters_with_a_default_are_found() -> None:
    files = {
        "sets/all.yaml": of_files("apps/*/app.yaml", "{{ .path.basename }}"),
        "apps/web/app.yaml": "meta: {space: front}\n",
        "apps/web/config.yaml": CONFIG,
        "apps/shop/app.yaml": "size: 1\n",
        "apps/shop/config.yaml": CONFIG,
    }
    shop, web = found(files).findings
    assert (shop.namespace, web.namespace) == ("shared", "front")


def test_go_templates_with_conditions_are_filled_by_helm_if_every_parameter_is_known() -> None:
    asked: list[Any] = []

    def fill_go(texts: Any, sets: Any) -> Any:
        asked.append(texts)
        return [[f"web{text[:0]}" if "if" in text else "apps/web" for text in texts] for _ in sets]

    name = "{{ if .size }}{{ .path.basename }}{{ end }}"
    files = {
        "sets/all.yaml": of_files("apps/*/app.yaml", name),
        "apps/web/app.yaml": "size: 1\n",
        "apps/web/config.yaml": CONFIG,
    }
    assert "is not known here" in refusal(found(files), "all").reason
    [web] = found(files, fill_go=fill_go).findings
    assert (web.name, web.path) == ("web", "apps/web")
    assert asked == [[name, "{{ .path.path }}", '{{ dig "meta" "space" "shared" . }}']]
    files["sets/all.yaml"] = of_files("apps/*/app.yaml", "{{ .cluster.name }}")
    there = found(files, fill_go=fill_go)
    assert "names {{.cluster.name}}, which is not known here" in refusal(there, "all").reason

    def fails(texts: Any, sets: Any) -> Any:
        raise UcpError("helm: wrong type")

    files["sets/all.yaml"] = of_files("apps/*/app.yaml", name)
    reason = refusal(found(files, fill_go=fails), "all").reason
    assert reason == "its template can't be filled: helm: wrong type"


def test_folders_below_an_application_s_folder_are_not_apps_of_their_own() -> None:
    source = {"path": "apps/web", "directory": {"recurse": True}}
    files = {
        "argo/web.yaml": application("web", source),
        "apps/web/values.yaml": "a: 1\n",
        "apps/web/manifests/config.yaml": CONFIG,
        "apps/shop/manifests/config.yaml": CONFIG,
    }
    assert [each.name for each in found(files).findings] == ["shop", "web"]


def test_application_of_several_folders_of_applications_is_not_an_app() -> None:
    sources = [{"repoURL": URL, "path": each} for each in ("argo/sets", "argo/spaces")]
    files = {
        "root.yaml": document("Application", "root", {"sources": sources}),
        "argo/sets/web.yaml": application("web", {"path": "web"}),
        "argo/spaces/web.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n",
        "web/config.yaml": CONFIG,
    }
    there = found(files)
    assert [each.name for each in there.findings if each.where.startswith("root")] == []
    assert "contains Applications" in refusal(there, "root").reason
    files["argo/spaces/config.yaml"] = CONFIG
    assert [each.name for each in found(files).findings if each.where.startswith("root")]


def test_version_in_a_path_is_not_the_name_of_an_app() -> None:
    files = {"charts/loki/0.80.3/Chart.yaml": CHART, "tasks/dotnet/v5.0/config.yaml": CONFIG}
    assert [each.name for each in found(files).findings] == ["dotnet", "loki"]


def test_folders_of_idpbuilder_are_relative_to_the_application() -> None:
    template = {"metadata": {"name": "{{.name}}"}, "spec": {"source": source_beside("web")}}
    of_values = {**source_beside("manifests", url="cnoe://shop"), "ref": "values"}
    files = {
        "stacks/set.yaml": application_set(
            "web", {"list": {"elements": [{"name": "web"}]}}, template, goTemplate=True
        ),
        "stacks/web/config.yaml": CONFIG,
        "stacks/shop.yaml": document("Application", "shop", {"sources": [of_values]}),
        "stacks/shop/manifests/config.yaml": CONFIG,
    }
    shop, web = detect(place(files), title="shop").findings
    assert (shop.path, web.path) == ("stacks/shop/manifests", "stacks/web")


def source_beside(path: str, *, url: str = "cnoe://") -> dict[str, str]:
    return {"repoURL": url, "path": path}


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
