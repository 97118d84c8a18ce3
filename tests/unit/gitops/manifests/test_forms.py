"""Detection of the form of an app: kustomization, chart, manifests or jsonnet."""

from __future__ import annotations

import pytest

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.forms import (
    chart_file,
    find_form,
    left_out,
    manifest_files,
    unkustomizable,
)
from k8s_ucp.gitops.manifests.yaml_text import repeated_key

SERVICE = b"apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
JOB = b"apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: migrate-}\n"
CHART = b"apiVersion: v2\nname: podinfo\nversion: 1.2.3\n"


def test_overlays_that_stand_for_an_environment_are_listed_under_its_name() -> None:
    folders = ("base", "overlays/dev", "overlays/other")
    files = {f"{each}/kustomization.yaml": b"" for each in folders}
    found = find_form(files, named={"stage": "overlays/dev", "prod": "base"})
    assert found.words == "kustomization with overlays for other, prod, stage"


@pytest.mark.parametrize(
    ("files", "form", "words"),
    [
        ({"kustomization.yaml": b""}, "kustomize", "kustomization"),
        ({"kustomization.yml": b""}, "kustomize", "kustomization"),
        ({"kustomization.yaml": b"resources: 5"}, "kustomize", "kustomization"),
        ({"Kustomization": b"", "web.yaml": SERVICE}, "kustomize", "kustomization"),
        (
            {"base/kustomization.yaml": b"", "overlays/prod/kustomization.yml": b""},
            "kustomize",
            "kustomization with overlays for prod",
        ),
        (
            {"Chart.yaml": CHART, "templates/a.yaml": b"{{ x }}"},
            "helm",
            "Helm chart podinfo, version 1.2.3",
        ),
        (
            {"web.yaml": SERVICE, "more/job.yml": SERVICE.replace(b"web", b"x")},
            "kustomize",
            "plain manifests in 2 files",
        ),
        (
            {"web.json": b'{"kind": "Service", "metadata": {"name": "x"}}'},
            "kustomize",
            "plain manifests in 1 file",
        ),
        ({"web.jsonnet": b"{}", "p.libsonnet": b"{}"}, "jsonnet", "jsonnet, rendered by Argo CD"),
    ],
)
def test_the_form_of_a_folder_is_detected(files: dict[str, bytes], form: str, words: str) -> None:
    found = find_form(files)
    assert (found.form, found.words) == (form, words)


def test_what_of_a_folder_is_not_deployed_is_named() -> None:
    files = {
        "web.yaml": SERVICE,
        "mixed.yaml": SERVICE + b"---\na: 1\n",
        "notes.yml": b"# only a comment\n",
        "README.md": b"",
    }
    assert left_out({"web.yaml": SERVICE}) == []
    assert left_out(files) == [
        "left out mixed.yaml, notes.yml: not, or not only, Kubernetes objects"
    ]
    variants = {f"{each}/web.yaml": SERVICE for each in ("small", "large")}
    assert left_out({"web.yaml": SERVICE, "small/values.yaml": b"a: 1", **variants}) == [
        "left out the folders large, small: their manifests repeat objects; choose one of them as "
        "SOURCE to deploy it"
    ]


def test_manifests_that_kustomize_cannot_load_make_a_directory() -> None:
    assert unkustomizable({"web.yaml": SERVICE}) is None
    found = find_form({"a.yaml": SERVICE + b"---\n" + JOB})
    assert found.form == "directory"
    assert "generateName (a.yaml)" in found.words
    twice = find_form({"a.yaml": SERVICE + b"---\n" + SERVICE})
    assert twice.form == "directory"
    assert "duplicate object Service web" in twice.words


def test_a_duplicate_key_makes_a_directory() -> None:
    """kustomize refuses it without naming the file; kubectl and Argo CD use the last value."""
    twice = SERVICE + b"data: {a: 1}\ndata: {b: 1}\n"
    found = find_form({"a.yaml": SERVICE, "b/c.yaml": twice.replace(b"web", b"api")})
    assert found.form == "directory"
    assert "twice (b/c.yaml: `data` in line" in found.words
    once = b"apiVersion: v1\nkind: List\nitems: [{a: 1}, {a: 2}]\nmore: &m {c: *n}\nn: &n {m: 1}\n"
    assert repeated_key(once.replace(b"*n", b"1"), "a.yaml") is None
    assert repeated_key(b"a: &a\n  b: *a\n  c: 1\n", "a.yaml") is None


def test_a_requested_form_takes_precedence() -> None:
    both = {"Chart.yaml": CHART, "kustomization.yaml": b"", "web.yaml": SERVICE}
    assert find_form(both).form == "kustomize"
    assert find_form(both, "helm").words == "Helm chart podinfo, version 1.2.3"
    assert find_form(both, "directory").form == "directory"


def test_variants_in_subfolders_are_left_out() -> None:
    files = {"web.yaml": SERVICE, "all-in-one/web.yaml": SERVICE, "values.yaml": b"replicas: 1\n"}
    assert manifest_files(files) == ["web.yaml"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"README.md": b""}, "no manifests: README.md"),
        ({"a/Chart.yaml": CHART, "b/kustomization.yaml": b""}, "in folders below: a, b"),
        ({"Chart.yaml": b"version: 1\n"}, "is not valid"),
        ({"Chart.yaml": CHART + b"type: library\n"}, "library"),
        ({"web.yaml": b"kind: {"}, "web.yaml is not valid YAML"),
    ],
)
def test_folders_without_a_supported_form_are_refused(files: dict[str, bytes], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        find_form(files)


@pytest.mark.parametrize("name", ["compose.yaml", "docker-compose.yml", "x/compose.prod.yaml"])
def test_docker_compose_files_are_refused_with_the_command_that_converts_them(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        find_form({name: b"services: {web: {image: nginx}}\n", "Dockerfile": b""})
    assert f"{name} of Docker Compose is not read" in refused.value.message
    assert "kompose convert" in str(refused.value.next)


REPOSITORIES = b"repositories: [{name: far, url: 'https://charts.example.org'}]\n"


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        (
            "fleet.yaml",
            b"helm: {chart: web, repo: 'https://charts.example.org', version: 1.0.0}\n",
            "ucp app add NAME --chart web --repo https://charts.example.org --version 1.0.0",
        ),
        (
            "fleet.yaml",
            b"helm: {chart: 'oci://reg.example.org/web', values: {a: b}}\n",
            "ucp app add NAME --chart oci://reg.example.org/web --values FILE (with its",
        ),
        ("fleet.yaml", b"defaultNamespace: web\n", "ucp app add NAME FOLDER of the manifests"),
        (
            "helmfile.yaml",
            REPOSITORIES + b"releases: [{name: db, chart: far/redis, version: '1; rm x'}]\n",
            "ucp app add db --chart redis --repo https://charts.example.org --version '1; rm",
        ),
        ("helmfile.yaml.gotmpl", b"{{ range . }}\n", "helmfile template > FILE.yaml; then: ucp"),
        ("helmfile.d/a.yaml", b"releases: [{chart: ./web}]\n", "helmfile template > FILE.yaml"),
        (
            ".kluctl.yaml",
            b"discriminator: web-{{ target.name }}\n",
            "kluctl render -t TARGET --print-all > FILE.yaml; then: ucp app add NAME FILE.yaml",
        ),
        ("module/timoni.cue", b"package main\n", "timoni build NAME FOLDER > FILE.yaml; then: "),
        ("cue.mod/module.cue", b"module: a\n", "write its objects to a file (`cue export"),
        ("cdk8s.yaml", b"app: node main.js\n", "cdk8s synth; then: ucp app add NAME dist"),
        ("k8s/web.dhall", b"{ a = 1 }\n", "dhall-to-yaml --file FILE.dhall > FILE.yaml; then: ucp"),
        ("Tiltfile", b"k8s_yaml('a')\n", "ucp app add NAME FOLDER of the manifests"),
        (
            "skaffold.yaml",
            b"apiVersion: skaffold/v4\nkind: Config\n",
            "ucp app add NAME FOLDER of the manifests",
        ),
    ],
)
def test_files_of_other_tools_are_refused_with_the_next_command(
    name: str, content: bytes, advice: str
) -> None:
    with pytest.raises(UsageError, match="is not read") as refused:
        find_form({name: content, "README.md": b""})
    assert str(refused.value.next).startswith(advice)


def test_a_folder_with_a_packaged_chart_only_is_refused_with_the_next_command() -> None:
    with pytest.raises(
        UsageError, match=r"no manifests, and a/web-1\.2\.0\.tgz is not unpacked"
    ) as no:
        find_form({"a/web-1.2.0.tgz": b"", "README.md": b""})
    assert "tar -xzf a/web-1.2.0.tgz; then: ucp app add NAME FOLDER" in str(no.value.next)
    web = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
    assert find_form({"web-1.2.0.tgz": b"", "web.yaml": web}).form == "kustomize"


def test_a_template_of_another_tool_is_refused_as_that() -> None:
    files = {"a/helmfile.yaml": b"a: {{ .b }}\n"}
    with pytest.raises(UsageError, match=r"^a/helmfile\.yaml of helmfile is not read") as refused:
        find_form(files)
    assert str(refused.value.next).startswith("helmfile template")
    words = r"^a\.yaml is not valid YAML: .*, and a/helmfile\.yaml of helmfile is not read"
    with pytest.raises(UsageError, match=words):
        find_form({**files, "a.yaml": b"a: {{ .b }}\n", "web.yaml": SERVICE})


def test_subfolders_with_apps_are_named_in_the_refusal() -> None:
    kustomized = ("k8s/base", "k8s/overlays/dev", "k8s/components/tls", "tools/x")
    files = {f"{each}/kustomization.yaml": b"" for each in kustomized}
    files |= {"plain/web.yaml": SERVICE, "chart/Chart.yaml": CHART, "docs/list.yaml": b"- a\n"}
    with pytest.raises(UsageError) as refused:
        find_form(files)
    assert refused.value.message.endswith("in folders below: chart, k8s, plain, tools/x")
    many = {f"{letter}/Chart.yaml": CHART for letter in "abcdefghij"}
    with pytest.raises(UsageError, match=r"g, h and 2 more\n"):
        find_form(many)


def test_the_most_likely_folder_is_named_first() -> None:
    folders = ("extras/apigee", "hack", "cmd/kubernetes", "kubernetes-manifests", "src/web")
    with pytest.raises(UsageError) as refused:
        find_form({f"{each}/Chart.yaml": CHART for each in folders})
    assert refused.value.message.endswith(
        "below: kubernetes-manifests, cmd/kubernetes, src/web, hack, extras/apigee"
    )


def test_data_beside_manifests_need_not_be_yaml() -> None:
    files = {"web.yaml": SERVICE, "src/lines.json": b'{"rating": 4}\n{"rating": 5}\n'}
    assert manifest_files(files) == ["web.yaml"]


@pytest.mark.parametrize(
    "version",
    [
        "skaffold/v4beta6",
        "kind.x-k8s.io/v1alpha4",
        "backstage.io/v1alpha1",
        "scaffolder.backstage.io/v1beta3",
        "k3d.io/v1",
        "tanka.dev/v1alpha1",
        "v1",
        "v1alpha1",
        "audit.k8s.io/v1",
        "apiserver.config.k8s.io/v1",
        "kops.k8s.io/v1alpha2",
        "deploy.cloud.google.com/v1",
    ],
)
def test_configuration_files_of_tools_are_not_manifests(version: str) -> None:
    files = {"web.yaml": SERVICE, "tool.yaml": f"apiVersion: {version}\nkind: Config\n".encode()}
    assert manifest_files(files) == ["web.yaml"]
    assert find_form(files).form == "kustomize"


def test_invalid_yaml_that_is_a_template_is_reported_as_one() -> None:
    ingress = b"kind: Ingress\napiVersion: v1\nspec:\n  host: {{ .host }}\n"
    with pytest.raises(UsageError, match=r"key of a template, such as .* \(line 4\)"):
        manifest_files({"web.yaml": ingress})


@pytest.mark.parametrize("name", ["config", "kubeconfig.yaml"])
def test_a_kubeconfig_is_no_app_but_the_cluster_of_an_environment(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is a kubeconfig") as caught:
        find_form({name: b"apiVersion: v1\nclusters: []\nkind: Config\nusers: []\n"})
    assert caught.value.next
    assert "ucp env add NAME --cluster existing" in caught.value.next


@pytest.mark.parametrize("name", ["web.yaml", "web.json"])
def test_a_file_that_git_crypt_encrypts_is_reported_as_that(name: str) -> None:
    with pytest.raises(UsageError, match="git-crypt encrypts it") as caught:
        manifest_files({name: b"\0GITCRYPT\0\xf9\xad"})
    assert caught.value.next
    assert caught.value.next.startswith("git-crypt unlock")


def test_local_dependencies_of_a_chart_are_resolved_as_helm_does() -> None:
    chart = """
name: web
version: 1.0.0
dependencies:
  - {name: a, version: 1.0.0, repository: "file://../my charts/a"}
  - {name: b, version: 1.0.0, repository: "file://../my%20charts/b"}
  - {name: c, version: 1.0.0, repository: "https://charts.example.org"}
  - {name: d, version: 1.0.0}
"""
    assert chart_file({"Chart.yaml": chart.encode()}).neighbors == {
        "file://../my charts/a": "../my charts/a",
        "file://../my%20charts/b": "../my%20charts/b",
    }


def test_manifest_whose_name_is_not_utf_8_is_reported() -> None:
    name = b"caf\xe9.yaml".decode("utf-8", "surrogateescape")
    with pytest.raises(UsageError, match=r"the file caf\\xe9\.yaml is not UTF-8") as failed:
        manifest_files({name: b"kind: A\n"})
    assert failed.value.next == "rename it"
    assert manifest_files({name: b"a: 1\n"}) == []


def test_a_folder_of_ytt_is_refused_with_the_command_that_fills_it() -> None:
    files = {
        "all.yml": b"apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: #@ spec()\n",
        "build.yml": b"apiVersion: kbld.k14s.io/v1alpha1\nkind: Sources\n",
    }
    with pytest.raises(UsageError, match="is a template of ytt") as failed:
        find_form(files)
    assert failed.value.next == "ytt -f FOLDER > FILE.yaml; then: ucp app add NAME FILE.yaml"


def test_a_template_of_ytt_in_a_text_is_data() -> None:
    secret = (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: values}\nstringData:\n  values.yml: |\n"
        "    #@data/values\n    ---\n    message: hello\n    more: #@ data.more\n"
    )
    assert find_form({"values.yaml": secret.encode()}).form == "kustomize"
    with pytest.raises(UsageError, match="is a template of ytt"):
        find_form({"values.yaml": f"{secret}#@data/values\n---\na: 1\n".encode()})
