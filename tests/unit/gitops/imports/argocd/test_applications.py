"""Apps that Applications of Argo CD declare, and the reasons of refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.imports.detection import detect
from k8s_ucp.gitops.imports.findings import RemoteSource
from k8s_ucp.gitops.manifests import yaml_text
from k8s_ucp.gitops.manifests.yaml_text import dump_all
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
    refusal,
)


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


def test_the_location_of_a_finding_has_a_line() -> None:
    files = {
        "a.yaml": "# x\n---\n# y\n" + application("web", {"chart": "web", "repoURL": "https://c"})
    }
    assert found(files).findings[0].where == "a.yaml:4"


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
    assert "each source of the Application becomes an app: web, web-extra, web-db" in web.notes


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
    away = {"repoURL": "https://other.example.org", "path": "x", "targetRevision": "v-qa"}
    files["prod.yaml"] = application("web-prod", away)
    assert "different repositories" in refusal(found(files), "web").reason


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
        "git.example.org/others/platform is taken for this repository: what deploys its folders "
        "names it",
    )
    # If one names this repository, another one with the same name is meant as such.
    files["c.yaml"] = application("own", {"path": "web"})
    there = found(files)
    assert [each.name for each in there.findings if each.remote] == ["api", "web-a"]
    assert not there.notes


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


def test_a_source_whose_folder_has_only_values_is_no_app() -> None:
    chart = {"repoURL": "https://charts.example.org", "chart": "db", "targetRevision": "1.0.0"}
    directory = {"recurse": True, "include": "manifests/*.yaml"}
    sources = [chart, {"repoURL": URL, "path": "apps/db", "directory": directory}]
    files = {
        "argo/db.yaml": document("Application", "db", {"sources": sources}),
        "apps/db/values.yaml": "a: b\n",
    }
    there = found(files)
    assert [each.name for each in there.findings] == ["db"] and not there.refusals


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


def test_ignored_differences_of_an_application_are_reported() -> None:
    spec = {
        "source": {"repoURL": URL, "path": "web"},
        "ignoreDifferences": [{"kind": "ConfigMap", "jsonPointers": ["/data"]}],
    }
    files = {"argo/web.yaml": document("Application", "web", spec), "web/all.yaml": CONFIG}
    [web] = found(files).findings
    assert any("ignoreDifferences" in each for each in web.notes)


@pytest.mark.parametrize(
    ("policy", "is_told"),
    [
        ({}, True),
        ({"automated": None}, True),
        ({"automated": {"enabled": False}}, True),
        ({"automated": {}}, False),
        ({"automated": {"prune": True}}, False),
    ],
)
def test_applications_that_people_synced_are_reported(policy: object, is_told: bool) -> None:
    spec = {"source": {"repoURL": URL, "path": "web"}, "syncPolicy": policy}
    files = {"argo/web.yaml": document("Application", "web", spec), "web/all.yaml": CONFIG}
    [web] = found(files).findings
    assert any("it was synced manually" in each for each in web.notes) is is_told


def test_labels_that_argo_cd_gives_a_namespace_are_reported() -> None:
    labels = {"istio-injection": "enabled"}
    policy = {"automated": {}, "managedNamespaceMetadata": {"labels": labels}}
    spec = {"source": {"repoURL": URL, "path": "web"}, "syncPolicy": policy}
    files = {"argo/web.yaml": document("Application", "web", spec), "web/all.yaml": CONFIG}
    [web] = found(files).findings
    assert "managedNamespaceMetadata is not imported" in web.notes[-1]


def test_applications_in_json_and_in_lists_are_read() -> None:
    [declared] = yaml_text.documents(application("web", {"path": "deploy"}).encode(), "")
    head = {key: declared.pop(key) for key in ("kind", "apiVersion")}
    several = {"apiVersion": "v1", "kind": "List", "items": [{**head, **declared}]}
    for path, text in (
        ("argo/web.json", json.dumps(several)),
        ("argo/web.json", json.dumps({**declared, **head}, indent=2)),
        ("argo/web.yaml", dump_all([several])),
    ):
        [web] = found({path: text, "deploy/all.yaml": CONFIG}).findings
        assert (web.name, web.where) == ("web", f"{path}:1")


def test_image_updates_by_argo_cd_are_reported() -> None:
    lists = "  annotations: {argocd-image-updater.argoproj.io/image-list: a=web}\n"
    text = application("web", {"path": "web"}).replace("spec:\n", f"{lists}spec:\n", 1)
    files = {"argo/web.yaml": text, "web/all.yaml": CONFIG}
    [web] = found(files).findings
    assert any("Image Updater" in each for each in web.notes)


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


def test_a_folder_in_a_git_submodule_is_refused_with_the_way_to_read_it() -> None:
    modules = {".gitmodules": "[submodule 'lib']\npath = lib\nurl = ../lib\n"}
    files = {**modules, "web.yaml": application("web", {"path": "lib/web"})}
    only = refusal(found(files), "web")
    assert only.reason == "its folder lib/web is in the git submodule lib"
    assert "--recurse-submodules" in only.advice
    assert found({**files, "lib/web/Chart.yaml": CHART}).findings[0].path == "lib/web"
