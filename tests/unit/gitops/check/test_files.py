"""Faults of the files of a repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.check_rules import RULES
from k8s_ucp.gitops.check.files import (
    find_core_faults,
    find_environment_faults,
    find_file_faults,
    find_topology_faults,
    find_unlisted_clusters,
)
from k8s_ucp.gitops.check.tree import Tree
from k8s_ucp.topology import parse
from tests.unit.gitops.check.examples import OVERLAY, tree


def test_an_overlay_whose_kustomization_was_deleted_is_a_fault() -> None:
    files = {
        "apps/web/base/kustomization.yaml": "resources: [deployment.yaml]",
        "apps/web/overlays/stage/replicas.yaml": "kind: Deployment",
        "apps/web/overlays/prod/kustomization.yaml": "resources: [../../base]",
        "apps/plain/overlays/stage/deployment.yaml": "kind: Deployment",
        "apps/chart/base/kustomization.yaml": "resources: [deployment.yaml]",
        "apps/chart/overlays/stage/Chart.yaml": "name: chart",
    }
    (found,) = find_environment_faults(tree(files))
    assert found.rule == "overlay-without-kustomization"
    assert found.path == "apps/web/overlays/stage"
    assert found.message == "it has no kustomization.yaml, so it does not include apps/web/base out"


@pytest.mark.parametrize("app", ["My_App", "x y", "a{{ .name }}b", "-a", "a" * 64, "a\n"])
def test_an_app_whose_application_has_an_invalid_name_is_a_fault(app: str) -> None:
    (found,) = find_environment_faults(tree({f"apps/{app}/overlays/stage/a.yaml": "kind: A"}))
    assert found.rule == "application-name-invalid"


def test_apps_may_have_dots_and_digits_in_their_names() -> None:
    files = {
        f"apps/{each}/overlays/stage/a.yaml": "kind: A" for each in ("a.b-c", "2048", "a" * 63)
    }
    assert list(find_environment_faults(tree(files))) == []


@pytest.mark.parametrize(
    ("target", "is_rejected"),
    [
        ("/etc/hostname", True),
        ("/", True),
        ("../../../gone", True),
        ("../../../../checkout/apps/web", True),
        ("x/../../../../y", True),
        ("../../README.md", False),
        ("gone", False),
        (".", False),
    ],
)
def test_links_that_leave_the_repository_are_a_fault(
    tmp_path: Path, target: str, is_rejected: bool
) -> None:
    """The cases are those of Argo CD's CheckOutOfBoundsSymlinks."""
    folder = tmp_path / "checkout" / "apps" / "web"
    folder.mkdir(parents=True)
    (folder / "link").symlink_to(target)
    hidden = tmp_path / "checkout" / ".git"
    hidden.mkdir()
    (hidden / "link").symlink_to("/")
    found = list(find_file_faults(Tree.of(tmp_path / "checkout")))
    assert [(each.rule, each.path) for each in found] == (
        [("symlink-out-of-bounds", "apps/web/link")] if is_rejected else []
    )


def test_data_of_generators_need_not_be_yaml() -> None:
    generators = "configMapGenerator: [{name: c, files: [a.yaml, k=../more/b.yaml]}]\n"
    files = {
        "apps/web/base/kustomization.yaml": generators,
        **{
            f"apps/web/{each}": "a: {{ b }}: c" for each in ("base/a.yaml", "more/b.yaml", "c.yaml")
        },
    }
    tree = Tree({path: text.encode() for path, text in files.items()})
    found = [each.path for each in find_file_faults(tree) if each.rule == "yaml-invalid"]
    assert found == ["apps/web/c.yaml"]


FILES: dict[str, tuple[dict[str, str], str]] = {
    "no YAML": ({"a.yaml": "a: ["}, "not valid YAML"),
    "a base that moves": (
        {OVERLAY: "resources: ['https://g/x//y?ref=main']"},
        "main is a branch",
    ),
    "a base of no version": ({OVERLAY: "resources: ['git@g:x.git//y']"}, "add ?ref="),
    "a chart that moves": (
        {"a.yaml": "kind: Application\nspec: {source: {chart: c, targetRevision: 1.x}}"},
        "the chart c has no exact version: 1.x",
    ),
    "a helm chart that moves": (
        {OVERLAY: "helmCharts: [{name: c}]"},
        "the chart c has no exact version: none",
    ),
    "a package that moves": (
        {"a.yaml": "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nspec: {package: x/y}"},
        "the package x/y has no tag",
    ),
    "a list that is none": ({OVERLAY: "resources: 5"}, "resources is not a list"),
    "charts that are no list": ({OVERLAY: "helmCharts: 5"}, "helmCharts is not a list"),
    "an action by tag": (
        {".github/workflows/a.yml": "steps:\n  - uses: actions/checkout@v4\n"},
        "actions/checkout@v4 is not pinned",
    ),
    "a GitHub pipeline for a local repository": (
        {".github/workflows/a.yml": "UCP_PROMOTE_REPO: file:///w/gitops/demo/apps.git\n"},
        "the pipeline promotes to file:///w/gitops/demo/apps.git",
    ),
    "a GitLab pipeline for a local repository": (
        {"ci/release.yml": 'p:\n  variables:\n    UCP_PROMOTE_REPO: "file:///w/apps.git"\n'},
        "the pipeline promotes to file:///w/apps.git",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_faults_of_files_are_found(case: str) -> None:
    files, words = FILES[case]
    found = list(find_file_faults(tree(files)))
    assert len(found) == 1
    assert words in found[0].message


def test_valid_files_have_no_faults() -> None:
    good = {
        OVERLAY: "resources: [../../base, 'https://g/x//y?ref=v1.0']\nhelmCharts: "
        "[{name: c, version: 1.2.3}]",
        "a.yaml": "kind: Application\nspec: {source: {chart: c, targetRevision: 1.2.3}}",
        ".github/workflows/a.yml": f"- uses: actions/checkout@{'a' * 40} # v4\n- uses: ./mine\n",
        ".github/workflows/b.yml": "UCP_PROMOTE_REPO: https://g/apps.git\n",
        "platform/argocd/engine/crds.yaml": "a: [",
    }
    assert list(find_file_faults(tree(good))) == []


def test_a_pipeline_of_blank_lines_does_not_take_minutes() -> None:
    blank = 150_000 * "\n"
    pipeline = f"{blank}UCP_PROMOTE_REPO: file:///w/apps.git\n- uses: a/b@v4\n\t  -  uses: c/d@v1\n"
    faults = find_file_faults(tree({".github/workflows/a.yml": f"a: |\n{pipeline}"}))
    assert {each.value for each in faults if each.rule != "yaml-invalid"} == {
        "a/b@v4",
        "c/d@v1",
        "file:///w/apps.git",
    }


def test_templates_of_a_chart_are_not_parsed_as_yaml() -> None:
    chart = {
        "apps/web/overlays/stage/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        "apps/web/overlays/stage/values.yaml": "kind: nothing\n",
        "apps/web/overlays/stage/templates/a.yaml": "a: {{ .Values.a }}\n{{- end }}\n",
    }
    assert list(find_file_faults(tree(chart))) == []
    assert list(tree(chart).plain()) == []
    read = {"apps/web/overlays/stage/rules/a.yaml": "a: {{ .Values.a }}\n{{- end }}\n"}
    assert list(find_file_faults(tree(chart | read))) == [], "templates read it as text"
    for name in ("values.yaml", "crds/a.yaml"):
        broken = {f"apps/web/overlays/stage/{name}": "a: ["}
        assert [each.path for each in find_file_faults(tree(chart | broken))] == list(broken)
    beside = {"apps/web/templates/a.yaml": "a: {{ .Values.a }}\n{{- end }}\n"}
    assert [each.path for each in find_file_faults(tree(chart | beside))] == list(beside)


@pytest.mark.parametrize("text", ["environments: 5", "environments: {a: b}"])
def test_environments_that_are_not_a_list_are_found(text: str) -> None:
    found = [each.message for each in find_environment_faults(tree({"environments.yaml": text}))]
    assert found == ["environments is not a list"]


def test_a_cluster_whose_environment_is_not_in_the_list_is_a_fault() -> None:
    overlay = "labels: [{pairs: {k8s-ucp.io/environment: %s}}]"
    listing = "resources: [overlays/a, overlays/b]\nconfigMapGenerator: [{name: %s, %s}]"
    files = {
        "clusters/overlays/a/kustomization.yaml": overlay % "a",
        "clusters/overlays/b/kustomization.yaml": overlay % "b",
    }

    def found(name: str, content: str) -> list[str]:
        text = listing % (name, content)
        faults = find_unlisted_clusters(tree({**files, "clusters/kustomization.yaml": text}))
        return [f"{each.rule} {each.path} {each.value}" for each in faults]

    unlisted = ["environment-unknown clusters overlays/b"]
    assert found("k8s-ucp-environments", 'literals: ["a="]') == unlisted
    assert found("k8s-ucp-environments", 'literals: ["a=", "b="]') == []
    assert found("k8s-ucp-environments", "envs: [list.env]") == []
    assert found("other", 'literals: ["a="]') == []


def test_a_cluster_that_is_in_no_list_is_a_warning() -> None:
    """Of a stopped environment, only the resource is missing."""
    listing = "resources: [overlays/a]\nconfigMapGenerator: [{name: %s, literals: [a=, stopped=]}]"
    files = {"clusters/kustomization.yaml": listing % "k8s-ucp-environments"}
    for name in ("a", "b", "stopped"):
        overlay = f"labels: [{{pairs: {{k8s-ucp.io/environment: {name}}}}}]"
        files[f"clusters/overlays/{name}/kustomization.yaml"] = overlay
    (fault,) = find_unlisted_clusters(tree(files))
    assert (fault.rule, fault.path) == ("environment-unlisted", "clusters/overlays/b")
    assert RULES[fault.rule].severity == "warning"
    assert "add overlays/b to `resources` in clusters/kustomization.yaml" in fault.message


def test_faults_of_environments_are_found() -> None:
    text = "environments: [{name: a}, {name: a}, {name: b, promotesFrom: c}]"
    system = "apps/kube-system/overlays/a/kustomization.yaml"
    files = {"environments.yaml": text, OVERLAY: "{}", system: "{}"}
    found = [each.message for each in find_environment_faults(tree(files))]
    assert sorted(found) == [
        "an app can't be named 'kube-system': its namespace is reserved for Kubernetes",
        "b promotes from c, which is not an environment",
        "duplicate environment a",
        "environments.yaml has no environment stage",
    ]


def test_overlays_with_the_same_application_name_are_found() -> None:
    """Argo CD drops both Applications, although each overlay is valid on its own."""
    paths = ("web/overlays/eu-stage", "web-eu/overlays/stage", "web/overlays/stage")
    files = {f"apps/{each}/kustomization.yaml": "{}" for each in paths}
    (found,) = find_environment_faults(tree(files))
    assert found.path == "apps/web-eu/overlays/stage"
    assert found.message.startswith(
        "the Application name 'web-eu-stage' is also used for apps/web/overlays/eu-stage,"
    )


def application(name: str, url: str, path: str, project: str = "infrastructure") -> str:
    return (
        f"kind: Application\nmetadata: {{name: {name}}}\n"
        f"spec: {{project: {project}, source: {{repoURL: {url}, path: {path}}}}}\n"
    )


def test_applications_with_missing_paths_or_projects_are_found() -> None:
    files: dict[str, str] = {
        "projects/infrastructure.yaml": "kind: AppProject\nmetadata: {name: infrastructure}\n",
        "bootstrap/root.yaml": application("root", "core", "bootstrap"),
        "projects/apps.yaml": "kind: AppProject\nmetadata: {name: applications}\n"
        "spec: {sourceRepos: [apps]}\n",
        "bootstrap/apps.yaml": application("one-more", "apps", "apps/one", "applications"),
        "bootstrap/a.yaml": application("a", "core", "platform/a"),
        "bootstrap/b.yaml": application("b", "elsewhere", "b", "infrastrcture"),
    }
    found = [each.message for each in find_core_faults(tree(files), tree({"x": ""}))]
    assert found == [
        "the Application one-more references the path apps/one, which does not exist",
        "the Application a references the path platform/a, which does not exist",
        "the Application b references the project infrastrcture, which does not exist",
    ]


def test_faults_of_ucp_yaml_in_the_core_repository_are_found() -> None:
    def faults_of(text: str) -> list[Any]:
        from pathlib import Path

        found = find_topology_faults(tree({"ucp.yaml": text}), lambda t: parse(t, Path("ucp.yaml")))
        return [(each.path, each.message) for each in found]

    assert faults_of("kind: Topology\n") == [
        ("ucp.yaml", "1: the file requires the key 'metadata'")
    ]
    assert faults_of("kind: Topology\nmetadata: {name: a}\n") == []
