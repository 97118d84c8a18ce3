"""The app repository for apps of every form: image, path, repo; Rollouts; databases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.render.app_manifests import read_manifests
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.gitops.render.values.connections import COPY, KEYS
from k8s_ucp.topology import App, Database
from k8s_ucp.topology.parts import Addons
from tests.unit.gitops.topologies import FACTS, demo

QUOTES = Database(name="quotes", provider="gcp")
ECHO = App(name="echo", image="reg:5000/echo", tag="1", hosts=("echo",), database="quotes")


def rendered(app: App, folder: Path = Path(), **spec: Any) -> dict[str, Any]:
    """{path below apps/<app>: document} of the app."""
    topology = demo(apps=(app,), databases=(QUOTES,), **spec)
    facts = replace(FACTS, manifests=read_manifests(topology, folder))
    files = render(topology, facts).apps
    start = f"apps/{app.name}/"
    return {
        path.removeprefix(start): list(YAML(typ="safe", pure=True).load_all(text.decode()))[-1]
        for path, text in files.items()
        if path.startswith(start) and path.endswith(".yaml")
    }


def container(workload: Any) -> Any:
    return workload["spec"]["template"]["spec"]["containers"][0]


def test_a_database_is_read_from_the_mirrored_secret() -> None:
    env = {each["name"]: each for each in container(rendered(ECHO)["base/deployment.yaml"])["env"]}
    for key in KEYS:
        reference = env[f"DATABASE_{key.upper()}"]["valueFrom"]["secretKeyRef"]
        assert reference == {"name": COPY, "key": key}


def test_the_tag_is_told_to_the_app() -> None:
    overlay = rendered(ECHO)["overlays/stage/kustomization.yaml"]
    source = overlay["replacements"][0]["source"]
    assert (
        "reg:5000/echo:1".split(source["options"]["delimiter"])[source["options"]["index"]] == "1"
    )


def test_rollouts_take_the_place_of_deployments() -> None:
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


def test_manifests_by_path_are_taken_as_they_are(tmp_path: Path) -> None:
    own = tmp_path / "services" / "own"
    (own / "more").mkdir(parents=True)
    (own / ".git").mkdir()
    (own / ".git" / "x.yaml").write_text("a: 1")
    (own / "deployment.yaml").write_text("spec: {containers: [{image: 'a/b:1'}, {image: 'c'}]}\n")
    (own / "more" / "service.yml").write_text("kind: Service\n")
    files = rendered(App(name="own", path="services/own", hosts=("own",)), tmp_path)
    assert files["base/kustomization.yaml"]["resources"] == ["deployment.yaml", "more/service.yml"]
    assert files["base/deployment.yaml"]["spec"]["containers"][1] == {"image": "c"}
    overlay = files["overlays/prod/kustomization.yaml"]
    assert overlay["resources"] == ["../../base", "hosts.yaml"]
    assert overlay["images"] == [{"name": "a/b", "newTag": "1"}]
    assert "patches" not in overlay
    assert "replicas" not in overlay


def test_a_kustomization_of_the_users_own_stays(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "kustomization.yml").write_text("resources: []\n")
    app = App(name="own", path="own", image="a/b", tag="2")
    files = rendered(app, tmp_path)
    assert "base/kustomization.yaml" not in files
    assert files["overlays/prod/kustomization.yaml"]["images"] == [{"name": "a/b", "newTag": "2"}]


@pytest.mark.parametrize("content", [None, "", "link"])
def test_folders_without_manifests(tmp_path: Path, content: str | None) -> None:
    if content == "":
        (tmp_path / "own").mkdir()
        (tmp_path / "own" / "README.md").write_text("nothing")
    if content == "link":
        (tmp_path / "own").symlink_to("/etc")
    with pytest.raises(UsageError) as caught:
        rendered(App(name="own", path="own"), tmp_path)
    assert "own" in caught.value.message
    assert "ucp.yaml" in (caught.value.next or "")


def test_manifests_that_are_no_yaml(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.yaml").write_text("a: [")
    with pytest.raises(UsageError, match=r"a\.yaml is not valid YAML"):
        rendered(App(name="own", path="own"), tmp_path)


def test_manifests_of_a_repository() -> None:
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


def test_what_ships_keeps_its_tags_in_the_overlays() -> None:
    topology = demo(apps=(App(name="quote", path="ucp:quote", database="quotes"),))
    facts = replace(FACTS, manifests=read_manifests(topology, Path()))
    base = render(topology, facts).apps["apps/quote/base/frontend.yaml"].decode()
    assert "image: nginxinc/nginx-unprivileged\n" in base
    assert base.startswith("# Generated by k8s-ucp")
