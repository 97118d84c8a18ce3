"""The rendered app repository: apps by image, path and repo; Rollouts; databases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.render.app_manifests import read_manifests
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.gitops.render.values.databases import COPY, KEYS
from k8s_ucp.topology import App, Database
from k8s_ucp.topology.parts import Addons
from tests.unit.gitops.topologies import FACTS, demo

QUOTES = Database(name="quotes", provider="gcp")
ECHO = App(name="echo", image="reg:5000/echo", tag="1", hosts=("echo",), database="quotes")


def rendered(app: App, folder: Path = Path(), **spec: Any) -> dict[str, Any]:
    """{path below apps/<app>: document} of the app."""
    topology = demo(apps=(app,), databases=(QUOTES,), **spec)
    inputs = replace(FACTS, manifests=read_manifests(topology, folder))
    files = render(topology, inputs).apps
    start = f"apps/{app.name}/"
    return {
        path.removeprefix(start): list(YAML(typ="safe", pure=True).load_all(text.decode()))[-1]
        for path, text in files.items()
        if path.startswith(start) and path.endswith(".yaml")
    }


def container(workload: Any) -> Any:
    return workload["spec"]["template"]["spec"]["containers"][0]


def test_database_variables_refer_to_the_mirrored_secret() -> None:
    env = {each["name"]: each for each in container(rendered(ECHO)["base/deployment.yaml"])["env"]}
    for key in KEYS:
        reference = env[f"DATABASE_{key.upper()}"]["valueFrom"]["secretKeyRef"]
        assert reference == {"name": COPY, "key": key}


def test_the_overlay_passes_the_tag_to_the_app() -> None:
    overlay = rendered(ECHO)["overlays/stage/kustomization.yaml"]
    source = overlay["replacements"][0]["source"]
    assert (
        "reg:5000/echo:1".split(source["options"]["delimiter"])[source["options"]["index"]] == "1"
    )


def test_a_chart_is_copied_without_the_kustomization_in_its_folder(tmp_path: Path) -> None:
    """What the check and promotions would read is not what Argo CD renders."""
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 1.0.0\n")
    (tmp_path / "kustomization.yaml").write_text("resources: [extra.yaml]\n")
    (tmp_path / "extra.yaml").write_text("kind: ConfigMap\n")
    app = App.model_validate({"name": "web", "path": ".", "as": "helm"})
    files = rendered(app, tmp_path)
    assert "overlays/stage/Chart.yaml" in files and "overlays/stage/extra.yaml" in files
    assert "overlays/stage/kustomization.yaml" not in files


def test_rollouts_replace_deployments() -> None:
    files = rendered(ECHO, addons=Addons(argo_rollouts=True))
    assert "base/deployment.yaml" not in files
    assert files["base/kustomization.yaml"]["resources"][0] == "rollout.yaml"
    rollout = files["base/rollout.yaml"]
    assert rollout["kind"] == "Rollout"
    assert rollout["spec"]["strategy"]["canary"]["steps"][0] == {"setWeight": 20}
    assert container(rollout)["image"] == "reg:5000/echo"
    overlay = files["overlays/stage/kustomization.yaml"]
    assert "replicas" not in overlay
    assert overlay["patches"][1]["target"] == {"kind": "Rollout", "name": "echo"}


def test_manifests_of_a_path_are_copied_unchanged(tmp_path: Path) -> None:
    own = tmp_path / "services" / "own"
    (own / "more").mkdir(parents=True)
    (own / ".git").mkdir()
    (own / ".git" / "x.yaml").write_text("a: 1")
    (own / "deployment.yaml").write_text(
        "kind: Deployment\nmetadata: {name: own}\n"
        "spec: {containers: [{image: 'a/b:1'}, {image: 'c'}]}\n"
    )
    (own / "more" / "service.yml").write_text("kind: Service\nmetadata: {name: own}\n")
    files = rendered(App(name="own", path="services/own", hosts=("own",)), tmp_path)
    assert files["base/kustomization.yaml"]["resources"] == ["deployment.yaml", "more/service.yml"]
    assert files["base/deployment.yaml"]["spec"]["containers"][1] == {"image": "c"}
    overlay = files["overlays/prod/kustomization.yaml"]
    assert overlay["resources"] == ["../../base", "hosts.yaml"]
    assert overlay["images"] == [{"name": "a/b", "newTag": "1"}, {"name": "c"}]
    assert "patches" not in overlay
    assert "replicas" not in overlay


def test_an_existing_kustomization_is_kept(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "kustomization.yml").write_text("resources: []\n")
    app = App(name="own", path="own", image="a/b", tag="2")
    files = rendered(app, tmp_path)
    assert "base/kustomization.yaml" not in files
    assert files["overlays/prod/kustomization.yaml"]["images"] == [{"name": "a/b", "newTag": "2"}]


@pytest.mark.parametrize("content", [None, "", "link"])
def test_folders_without_manifests_are_refused(tmp_path: Path, content: str | None) -> None:
    if content == "":
        (tmp_path / "own").mkdir()
        (tmp_path / "own" / "README.md").write_text("nothing")
    if content == "link":
        (tmp_path / "own").symlink_to("/etc")
    with pytest.raises(UsageError) as caught:
        rendered(App(name="own", path="own"), tmp_path)
    assert "own" in caught.value.message
    assert "ucp.yaml" in (caught.value.next or "")


def test_a_link_to_a_file_beside_the_app_is_followed(tmp_path: Path) -> None:
    service = "{apiVersion: v1, kind: Service, metadata: {name: NAME}}"
    for path in ("own/a.yaml", "common/b.yaml", ".git/c.yaml"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(service.replace("NAME", path[-6]))
    (tmp_path / "own/b.yaml").symlink_to("../common/b.yaml")
    (tmp_path / "own/c.yaml").symlink_to("../.git/c.yaml")
    (tmp_path / "own/d.yaml").symlink_to("/etc/hostname")
    (tmp_path / "own/circle.yaml").symlink_to("circle.yaml")
    files = rendered(App(name="own", path="own"), tmp_path)
    assert files["base/kustomization.yaml"]["resources"] == ["a.yaml", "b.yaml"]
    assert files["base/b.yaml"]["metadata"] == {"name": "b"}


def test_manifests_that_are_not_valid_yaml_are_refused(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.yaml").write_text("a: [")
    with pytest.raises(UsageError, match=r"a\.yaml is not valid YAML"):
        rendered(App(name="own", path="own"), tmp_path)


def test_a_git_lfs_pointer_among_the_manifests_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/web.yaml").write_text("{apiVersion: v1, kind: Service, metadata: {name: w}}")
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 9\n"
    (tmp_path / "own/dashboard.json").write_text(pointer)
    with pytest.raises(UsageError, match=r"dashboard\.json is a Git LFS pointer") as caught:
        rendered(App(name="own", path="own"), tmp_path)
    assert "git lfs pull" in str(caught.value.next)


def test_a_file_with_all_the_crds_of_a_product_is_not_too_large(tmp_path: Path) -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: w}\n"
    (tmp_path / "own").mkdir()
    (tmp_path / "own/install.yaml").write_text(service + f"# {'x' * 97}\n" * 50_000)
    topology = demo(apps=(App(name="own", path="own"),))
    assert len(read_manifests(topology, tmp_path)["own"]["install.yaml"]) > 5_000_000


@pytest.mark.parametrize(
    ("path", "more"),
    [
        (
            "model.bin",
            {"kustomization.yaml": "configMapGenerator: [{name: m, files: [model.bin]}]"},
        ),
        ("charts/a-1.tgz", {"Chart.yaml": "{apiVersion: v2, name: own, version: 1.0.0}"}),
    ],
)
def test_a_git_lfs_pointer_in_a_kustomization_or_chart_is_refused(
    tmp_path: Path, path: str, more: dict[str, str]
) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 9\n"
    for name, text in {path: pointer, "logo.png": pointer, **more}.items():
        (tmp_path / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / name).write_text(text)
    with pytest.raises(UsageError, match=f"{path} is a Git LFS pointer"):
        rendered(App(name="own", path="own"), tmp_path)


def test_manifests_of_a_repository_become_a_remote_base() -> None:
    app = App(name="far", repo="https://g/far.git", path="deploy/base", revision="v1.0")
    files = rendered(app)
    assert files["base/kustomization.yaml"]["resources"] == [
        "https://g/far.git//deploy/base?ref=v1.0"
    ]
    assert "images" not in files["overlays/prod/kustomization.yaml"]


def test_the_quote_app_reads_the_mirrored_secret() -> None:
    files = rendered(App(name="quote", path="ucp:quote", hosts=("quote",), database="quotes"))
    overlay = files["overlays/stage/kustomization.yaml"]
    assert sorted(each["name"] for each in overlay["images"]) == [
        "nginxinc/nginx-unprivileged",
        "postgres",
        "postgrest/postgrest",
    ]
    topology = demo(apps=(App(name="quote", path="ucp:quote", database="quotes"),))
    text = read_manifests(topology, Path())["quote"]["backend.yaml"].decode()
    for key in KEYS:
        assert f"name: {COPY}\n                  key: {key}\n" in text


def test_built_in_apps_have_their_tags_only_in_overlays() -> None:
    topology = demo(apps=(App(name="quote", path="ucp:quote", database="quotes"),))
    inputs = replace(FACTS, manifests=read_manifests(topology, Path()))
    base = render(topology, inputs).apps["apps/quote/base/frontend.yaml"].decode()
    assert "image: nginxinc/nginx-unprivileged\n" in base
    assert base.startswith("# Generated by k8s-ucp")


def test_existing_overlays_are_used_unchanged(tmp_path: Path) -> None:
    own = tmp_path / "web"
    for folder, text in {
        "base": "resources: [web.yaml]",
        "overlays/stage": "resources: [../../base]\nimages: [{name: a/b, newTag: '2'}]",
        "overlays/production": "resources: [../../base]",
    }.items():
        (own / folder).mkdir(parents=True)
        (own / folder / "kustomization.yaml").write_text(text)
    (own / "base" / "web.yaml").write_text(
        "kind: Pod\nmetadata: {name: web}\nspec: {containers: [{image: 'a/b:1'}]}\n"
    )
    app = App(name="web", path="web", overlays={"prod": "overlays/production"})
    files = rendered(app, tmp_path)
    stage = files["overlays/stage/kustomization.yaml"]
    assert stage["resources"] == ["../../base/overlays/stage"]
    assert stage["images"] == [{"name": "a/b", "newTag": "2"}]
    prod = files["overlays/prod/kustomization.yaml"]
    assert prod["resources"] == ["../../base/overlays/production"]
    assert prod["images"] == [{"name": "a/b", "newTag": "1"}]
    assert "base/kustomization.yaml" not in files
    # If no overlay has the environment's name, the base is used.
    other = rendered(App(name="web", path="web"), tmp_path)
    assert other["overlays/prod/kustomization.yaml"]["resources"] == ["../../base/base"]


def test_an_environment_without_an_overlay_is_refused_with_a_fix(tmp_path: Path) -> None:
    own = tmp_path / "web" / "overlays" / "stage"
    own.mkdir(parents=True)
    (own / "kustomization.yaml").write_text("resources: []\n")
    with pytest.raises(UsageError, match="no overlay for prod, only for stage") as caught:
        rendered(App(name="web", path="web"), tmp_path)
    assert "--overlay prod=overlays/stage" in str(caught.value.next)
    with pytest.raises(UsageError, match="no overlay for prod, only for stage") as caught:
        rendered(App(name="web", path="web", overlays={"stage": "overlays/stage"}), tmp_path)
    assert "--overlay web=overlays/stage of ucp env add" in str(caught.value.next)


def test_an_environment_without_a_named_overlay_uses_the_base(tmp_path: Path) -> None:
    for name in ("base", "stages/uat"):
        folder = tmp_path / "web" / name
        folder.mkdir(parents=True)
        (folder / "kustomization.yaml").write_text("resources: []\n")
    files = rendered(App(name="web", path="web", overlays={"stage": "stages/uat"}), tmp_path)
    assert files["overlays/stage/kustomization.yaml"]["resources"] == ["../../base/stages/uat"]
    assert files["overlays/prod/kustomization.yaml"]["resources"] == ["../../base/base"]


CHART = "apiVersion: v2\nname: podinfo\nversion: 1.2.3\n"


def test_a_chart_is_copied_to_the_folder_of_each_environment(tmp_path: Path) -> None:
    own = tmp_path / "charts" / "podinfo"
    (own / "templates").mkdir(parents=True)
    (own / "Chart.yaml").write_text(CHART)
    (own / "values-prod.yaml").write_text("replicas: 2\n")
    (own / "templates" / "web.yaml").write_text("{{ .Values.x }}")
    (tmp_path / "stage.yaml").write_text("replicas: 1\n")
    topology = demo(apps=(App(name="web", path="charts/podinfo", values={"stage": "stage.yaml"}),))
    inputs = replace(FACTS, manifests=read_manifests(topology, tmp_path))
    files = render(topology, inputs).apps
    stage = "apps/web/overlays/stage"
    assert files[f"{stage}/Chart.yaml"].decode() == CHART
    assert files[f"{stage}/templates/web.yaml"] == b"{{ .Values.x }}"
    assert files[f"{stage}/values-stage.yaml"] == b"replicas: 1\n"
    settings = YAML(typ="safe", pure=True).load(files[f"{stage}/.argocd-source.yaml"].decode())
    assert settings == {"helm": {"releaseName": "web", "valueFiles": ["values-stage.yaml"]}}
    assert files["apps/web/overlays/prod/values-prod.yaml"] == b"replicas: 2\n"
    assert not any(path.startswith("apps/web/base") for path in files)


def test_a_chart_without_values_for_an_environment_gets_an_empty_values_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "Chart.yaml").write_text(CHART)
    files = rendered(App(name="web", path="web"), tmp_path)
    assert files["overlays/prod/values-prod.yaml"] == {}


def test_a_directory_is_copied_to_the_folder_of_each_environment(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "job.yaml").write_text(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: x-}\n"
    )
    (tmp_path / "web" / "compose.yaml").write_text("services: {}\n")
    files = rendered(App(name="web", path="web", hosts=("www",)), tmp_path)
    assert sorted(files) == [
        "overlays/prod/.argocd-source.yaml",
        "overlays/prod/hosts.yaml",
        "overlays/prod/job.yaml",
        "overlays/stage/.argocd-source.yaml",
        "overlays/stage/hosts.yaml",
        "overlays/stage/job.yaml",
    ]
    assert files["overlays/prod/.argocd-source.yaml"]["directory"]["recurse"] is True


def test_a_kustomization_is_copied_with_the_folders_that_it_loads(tmp_path: Path) -> None:
    for folder, text in {"shared": "resources: []", "web": "resources: [../shared]"}.items():
        (tmp_path / "apps" / folder).mkdir(parents=True)
        (tmp_path / "apps" / folder / "kustomization.yaml").write_text(text)
    (tmp_path / "apps" / "other.yaml").write_text("kind: Other\nmetadata: {name: x}\n")
    files = rendered(App(name="web", path="apps/web"), tmp_path)
    assert files["base/kustomization.yaml"]["resources"] == ["web"]
    assert files["base/web/kustomization.yaml"]["resources"] == ["../shared"]
    assert files["base/shared/kustomization.yaml"]["resources"] == []
    assert "base/other.yaml" not in files
