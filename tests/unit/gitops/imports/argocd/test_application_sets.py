"""Apps that ApplicationSets generate, and the reasons of refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.imports.argocd.application_sets import SetContext, expand
from k8s_ucp.gitops.imports.findings import Discovery, NotImportable
from k8s_ucp.gitops.imports.trees import RepositoryTree, read_documents
from k8s_ucp.gitops.manifests.yaml_text import dump_all
from tests.unit.gitops.imports.repository_files import (
    CHART,
    CONFIG,
    URL,
    application_set,
    found,
    kustomized,
    overlay,
    place,
    refusal,
)


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
    api, web = there.findings
    assert (api.name, web.name) == ("api", "web")
    assert web.overlays == {each: f"apps/web/overlays/{each}" for each in ("qa", "blue")}
    assert web.where == "set.yaml:1"
    excluded = refusal(there, "old")
    assert excluded.reason == "the ApplicationSet all excludes its folder"
    assert excluded.advice == "ucp app add old apps/old"


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


def test_an_operator_that_is_no_text_is_refused() -> None:
    rule = {"key": "env", "operator": ["In"], "values": ["prod"]}
    generator = {"list": {"elements": [{}]}, "selector": {"matchExpressions": [rule]}}
    with pytest.raises(NotImportable, match="which is not supported"):
        applications_of(generator, {"spec": {}})


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


def test_a_generators_own_template_overrides_the_sets_one_where_it_sets_something() -> None:
    # argocd-autopilot writes templates of which most values are empty.
    source = {"repoURL": "", "path": None, "directory": {"recurse": True, "jsonnet": {}}}
    own = {"metadata": {}, "spec": {"destination": {}, "project": "", "source": source}}
    generator = {"git": {"repoURL": URL, "files": [{"path": "apps/**/qa.json"}], "template": own}}
    template = {"spec": {"project": "qa", "source": {"repoURL": URL, "path": "{{srcPath}}"}}}
    [found_own] = applications_of(generator, template, {"apps/a/qa.json": '{"srcPath": "web"}'})
    assert found_own == {
        "project": "qa",
        "source": {"repoURL": URL, "path": "web", "directory": {"recurse": True}},
    }


def test_hidden_folders_are_no_apps_of_an_applicationset() -> None:
    generator = {"git": {"repoURL": URL, "directories": [{"path": "*"}, {"path": "*/*"}]}}
    files = {".github/a.yaml": CONFIG, "web/.cache/a.yaml": CONFIG, "web/a.yaml": CONFIG}
    template = {"spec": {"path": "{{path}}"}}
    assert applications_of(generator, template, files) == [{"path": "web"}]


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


def test_a_matrix_of_millions_of_applications_is_refused() -> None:
    """Its text is short, and expanding it would take hours and all memory."""
    lists = [{"list": {"elements": [{each: str(n)} for n in range(3000)]}} for each in "ab"]
    template = {"metadata": {"name": "{{a}}-{{b}}"}, "spec": {"source": {"repoURL": URL}}}
    text = application_set("all", {"matrix": {"generators": lists}}, template)
    reason = refusal(found({"set.yaml": text}), "all").reason
    assert reason == "its matrix yields more than 10000 Applications"
