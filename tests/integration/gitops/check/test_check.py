"""Checks of whole repositories, and the hook that refuses pushes to local ones."""

from __future__ import annotations

import json
import shutil
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from k8s_ucp.git.failures import GitFailed
from k8s_ucp.gitops.check.kinds import TABLE
from k8s_ucp.gitops.check.repositories import Checkout, check, check_rendered
from k8s_ucp.gitops.check_hook import already_checked, ensure_check_hook
from k8s_ucp.gitops.manifests.build_many import build_many
from k8s_ucp.gitops.publish.repositories import render_to
from k8s_ucp.gitops.render.repositories import render, templates_folder
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import App
from k8s_ucp.topology.parts import Policy
from k8s_ucp.topology.rules.apps import SHIPPED
from k8s_ucp.topology.text import topology_text
from tests.built_in_kinds import table, text
from tests.control_planes import control_planes, made
from tests.integration.gitops.conftest import Repositories
from tests.unit.gitops.topologies import FACTS, demo

HEAD = {"apiVersion": "k8s-ucp.io/v1alpha1", "kind": "Topology", "metadata": {"name": "demo"}}
OVERLAY = "apps/echo/overlays/stage/kustomization.yaml"
DEPLOYMENT = "apps/echo/base/deployment.yaml"


@pytest.fixture
def kustomize(toolbox: Toolbox) -> Path:
    return toolbox.path("kustomize")


@pytest.fixture
def checked(world: Repositories, kustomize: Path) -> Repositories:
    """Both repositories, with check hooks."""
    world.start()
    for name, bare in (("core", world.folder.core_remote), ("apps", world.folder.apps_remote)):
        note = ensure_check_hook(bare, name, python=Path(sys.executable), kustomize=kustomize)
        assert note is None
    return world


def test_push_that_breaks_a_manifest_is_refused(checked: Repositories) -> None:
    before = checked.refs()
    with pytest.raises(GitFailed) as caught:
        checked.edit("apps", DEPLOYMENT, "selector:", "selectr:")
    words = f"{caught.value.message} {caught.value.next}"
    assert "unknown field spec.selectr [field-unknown]" in words
    assert checked.refs() == before
    checked.edit("apps", OVERLAY, "0.9.2", "0.9.3")


def test_warning_refuses_a_push_only_if_warnings_are_denied(checked: Repositories) -> None:
    hook = checked.folder.apps_remote / "hooks" / "pre-receive"
    said = checked.folder.apps_remote / "said"
    hook.write_text(hook.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\nexec 2>'{said}'\n", 1))
    checked.edit("apps", OVERLAY, "0.9.2", "latest")
    assert "has the mutable tag latest [image-moving-tag]" in said.read_text()
    checked.push("apps", {"apps/echo/overlays/stage/README.md": b"hello\n"})
    assert said.read_text() == ""
    note = "apps/echo/overlays/stage/notes.yaml"
    checked.push("apps", {note: b"# ucp: ignore host-taken mine\n"})
    assert "it can be ignored in ucp.yaml only" in said.read_text()
    checked.edit("core", "ucp.yaml", '"deny": []', '"deny": ["warnings"]')
    with pytest.raises(GitFailed):
        checked.edit("apps", OVERLAY, "latest", "edge")
    checked.edit("apps", OVERLAY, '"latest"', '"edge" # ucp: ignore image-moving-tag a trial')


def test_host_of_two_apps_is_refused(checked: Repositories) -> None:
    files = checked.files("apps")
    other = {
        path.replace("apps/echo/", "apps/other/"): content.replace(b"name: echo", b"name: other")
        for path, content in files.items()
        if path.startswith("apps/echo/")
    }
    with pytest.raises(GitFailed) as caught:
        checked.push("apps", dict(other))
    assert "echo.stage.example.org is already used by apps/echo/overlays/stage" in str(
        caught.value.message
    )


def test_earlier_problems_do_not_refuse_a_push(checked: Repositories) -> None:
    hook = checked.folder.apps_remote / "hooks" / "pre-receive"
    away = hook.rename(hook.with_name("away"))
    checked.edit("apps", DEPLOYMENT, "selector:", "selectr:")
    away.rename(hook)
    checked.push("apps", {"apps/echo/overlays/stage/README.md": b"hello\n"})
    with pytest.raises(GitFailed):
        checked.edit("apps", DEPLOYMENT, "containers:", "containrs:")


def test_pushes_to_the_core_repository_are_checked(checked: Repositories) -> None:
    with pytest.raises(GitFailed) as caught:
        checked.edit("core", "bootstrap/embedded/argocd.yaml", "platform/argocd", "platform/argo")
    assert "references the path platform/argo/config, which does not exist" in str(
        caught.value.message
    )


def test_push_is_accepted_if_the_check_can_not_run(checked: Repositories, tmp_path: Path) -> None:
    ensure_check_hook(
        checked.folder.apps_remote, "apps", python=tmp_path / "gone", kustomize=tmp_path / "gone"
    )
    checked.edit("apps", DEPLOYMENT, "selector:", "selectr:")


def test_push_of_an_already_checked_edit_is_not_checked_again(
    world: Repositories, tmp_path: Path
) -> None:
    world.start()
    remotes = (world.folder.core_remote, world.folder.apps_remote)
    refusing = tmp_path / "refusing"
    refusing.write_text("#!/bin/sh\necho whatever is checked $$\nexit 10\n")
    refusing.chmod(0o755)
    for name, bare in zip(("core", "apps"), remotes, strict=True):
        ensure_check_hook(bare, name, python=refusing, kustomize=refusing)
    records = [bare / "ucp-checked" for bare in remotes]

    web, more = (App(name=each, image="a/b", tag="1") for each in ("web", "more"))
    first = demo(apps=(*demo().spec.apps, web))
    with pytest.raises(GitFailed, match="whatever is checked"):
        world.start(first)
    files = world.rendered(first)
    with already_checked(*remotes, files.core, files.apps):
        assert [stat.S_IMODE(each.stat().st_mode) for each in records] == [0o600, 0o600]
        for name in ("core", "apps"):
            with pytest.raises(GitFailed, match="whatever is checked"):
                world.push(name, {"mine.md": b"hello\n"})
        assert world.start(first).changed
    assert not any(each.exists() for each in records)

    second = demo(apps=(*first.spec.apps, more))
    files = world.rendered(second)
    # It is checked if the core files beside it were not, or if it contains other files.
    with already_checked(*remotes, {}, files.apps), pytest.raises(GitFailed, match="whatever"):
        world.start(second)
    with already_checked(*remotes, files.core, {**files.apps, "mine.md": b"hello\n"}):
        with pytest.raises(GitFailed, match="whatever is checked"):
            world.start(second)
        assert b"more" in world.files("core")["ucp.yaml"]
    assert not any(each.startswith("apps/more/") for each in world.files("apps"))


def test_hook_of_another_author_is_kept(world: Repositories, kustomize: Path) -> None:
    world.start()
    hook = world.folder.apps_remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 0\n")
    note = ensure_check_hook(
        world.folder.apps_remote, "apps", python=Path(sys.executable), kustomize=kustomize
    )
    assert note and "not created by ucp" in note
    assert "exit 0" in hook.read_text()


def test_folders_that_can_not_be_built_together_are_built_separately(
    kustomize: Path, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kustomization.yaml").write_text("resources: [x.yaml]\n")
        body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same}\n"
        (tmp_path / name / "x.yaml").write_text("a: [" if name == "b" else body)
    built = build_many(kustomize, tmp_path, [["a", "b", "c"]])
    assert sorted(built.objects) == ["a", "c"]
    assert list(built.failures) == ["b"]
    assert str(tmp_path) not in built.failures["b"]
    assert built.objects["a"][0]["metadata"]["name"] == "same"


def test_folders_outside_of_the_repository_are_not_built(kustomize: Path, tmp_path: Path) -> None:
    for name, resource in (("private", "x.yaml"), ("root/a", "../../private"), ("root/b", "../c")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "kustomization.yaml").write_text(f"resources: [{resource}]\n")
    (tmp_path / "root/c").symlink_to(tmp_path / "private")
    built = build_many(kustomize, tmp_path / "root", [["a", "b"]])
    assert not built.objects
    assert built.failures == {
        "a": "a/kustomization.yaml includes ../../private, which is outside of the repository",
        "b": "b/kustomization.yaml includes ../c, which is outside of the repository",
    }


def test_render_is_checked_with_files_that_people_added(kustomize: Path, tmp_path: Path) -> None:
    rendered = render(demo(apps=(App(name="web", image="a/b", tag="latest"),)), FACTS)
    found = [e for e in check_rendered(kustomize, rendered).findings if e.repository == "apps"]
    assert {(each.path, each.rule, each.severity, each.file) for each in found} == {
        (
            f"apps/web/overlays/{env}",
            "image-moving-tag",
            "warning",
            f"apps/web/overlays/{env}/kustomization.yaml",
        )
        for env in ("prod", "stage")
    }
    render_to(tmp_path, rendered)
    (tmp_path / "apps/apps/web/overlays/qa").mkdir()
    (tmp_path / "apps/apps/web/overlays/qa/kustomization.yaml").write_text("resources: [no]\n")
    found = check(kustomize, Checkout(apps=tmp_path / "apps"), only={"other"}).findings
    assert [each.message for each in found] == ["environments.yaml has no environment qa"]
    whole = check(kustomize, Checkout(apps=tmp_path / "apps"))
    messages = [each.message for each in whole.errors]
    assert any("kustomize failed to build" in each for each in messages)


def test_secret_that_another_app_of_the_namespace_creates_is_not_missing(
    kustomize: Path, tmp_path: Path
) -> None:
    web = App(name="web", image="a/b", tag="1.0", namespace="shop")
    other = App(name="keys", image="a/b", tag="1.0", namespace="shop")
    secret = b"apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {a: b}\n"
    reads = (
        b"patches: [{patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, "
        b"spec: {template: {spec: {imagePullSecrets: [{name: login}]}}}}'}]\n"
    )
    topology = demo(apps=(web, other))
    text = topology_text(topology).replace('"1.0"', '"1.0"\n      namespace: shop')
    rendered = render(topology, replace(FACTS, topology_file=text.encode()))
    files = dict(rendered.apps)
    for env in ("prod", "stage"):
        files[f"apps/web/overlays/{env}/kustomization.yaml"] += reads
    files["apps/keys/overlays/prod/login.yaml"] = secret
    overlay = "apps/keys/overlays/prod/kustomization.yaml"
    files[overlay] = files[overlay].replace(b"resources:\n", b"resources:\n  - login.yaml\n")
    render_to(tmp_path, replace(rendered, apps=files))
    for only in (None, {"web"}):
        checkout = Checkout(tmp_path / "core", tmp_path / "apps")
        found = check(kustomize, checkout, only=only).errors
        assert [(each.path, each.rule) for each in found] == [
            ("apps/web/overlays/stage", "reference-missing-object")
        ]


def test_charts_that_are_rendered_already_are_checked_without_helm(kustomize: Path) -> None:
    rendered = render(demo(apps=(App(name="web", image="a/b", tag="1.0"),)), FACTS)
    folders = [f"apps/web/overlays/{each}" for each in ("prod", "stage")]
    files = {path: text for path, text in rendered.apps.items() if "/web/overlays/" not in path}
    files |= {f"{each}/Chart.yaml": b"name: web\nversion: 1.0.0\n" for each in folders}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"pods": 1}}
    known = {(folders[0], "web"): [pod], (folders[1], "elsewhere"): [pod]}
    found = check_rendered(kustomize, replace(rendered, apps=files), charts=known).errors
    assert {(each.path, each.rule) for each in found if each.repository == "apps"} >= {
        (folders[0], "field-unknown"),
        (folders[1], "build-failed"),
    }
    assert (folders[0], "build-failed") not in {(each.path, each.rule) for each in found}


def test_overlays_that_are_built_already_are_not_built_again(tmp_path: Path) -> None:
    rendered = render(demo(apps=(App(name="web", image="a/b", tag="1.0"),)), FACTS)
    folders = [f"apps/web/overlays/{each}" for each in ("prod", "stage")]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"pods": 1}}
    known = {folders[0]: [{"kind": "List", "items": [pod]}], folders[1]: [pod]}
    found = check_rendered(tmp_path / "absent", replace(rendered, core={}), overlays=known).errors
    assert {each.path for each in found if each.rule == "field-unknown"} == {*folders}
    assert "build-failed" not in {each.rule for each in found}


def test_a_failed_build_of_equal_overlays_is_reported_for_each_environment(
    kustomize: Path,
) -> None:
    rendered = render(demo(apps=(App(name="web", image="a/b", tag="1.0"),)), FACTS)
    folders = [f"apps/web/overlays/{each}" for each in ("prod", "stage")]
    broken = {f"{each}/kustomization.yaml": b"resources: [absent.yaml]\n" for each in folders}
    changed = replace(rendered, apps={**rendered.apps, **broken})
    found = [each for each in check_rendered(kustomize, changed).findings if each.path in folders]
    assert [(each.path, each.rule) for each in found] == [
        (each, "build-failed") for each in folders
    ]
    assert "prod" not in found[1].message


def test_guard_rails_are_checked_in_the_mode_of_each_environment(
    kustomize: Path, tmp_path: Path
) -> None:
    rails = {"stage": "warn", "prod": "deny"}
    render_to(tmp_path, render(demo(guardRails=rails), FACTS))
    environments = [{"name": "stage"}, {"name": "prod", "promotesFrom": "stage"}]
    text = {**HEAD, "spec": {"environments": environments, "guardRails": rails}}
    (tmp_path / "core/ucp.yaml").write_text(json.dumps(text))
    for shipped in SHIPPED:
        app = tmp_path / "apps/apps" / shipped
        shutil.copytree(templates_folder() / "shipped" / shipped, app / "base")
        (app / "overlays/prod").mkdir(parents=True)
        overlay = app / "overlays/prod/kustomization.yaml"
        overlay.write_text("resources: [../../base]\n")
    both = Checkout(tmp_path / "core", tmp_path / "apps")
    rules = {each.rule for each in check(kustomize, both).findings}
    assert not rules & {*get_args(Policy)}
    for environment in ("stage", "prod"):
        folder = tmp_path / f"apps/apps/raw/overlays/{environment}"
        folder.mkdir(parents=True)
        (folder / "pod.yaml").write_text(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: raw}\n"
            "spec:\n  containers: [{name: main, image: 'a:1'}]\n"
        )
    assert {
        (each.path, each.rule, each.severity, each.line)
        for each in check(kustomize, both).findings
        if each.rule in get_args(Policy)
    } == {
        ("apps/raw/overlays/stage/pod.yaml", "required-requests", "warning", 5),
        ("apps/raw/overlays/prod/pod.yaml", "required-requests", "error", 5),
    }


@pytest.mark.engines
def test_table_of_kinds_matches_the_pinned_api_server(toolbox: Toolbox, tmp_path: Path) -> None:
    with control_planes(tmp_path, toolbox) as planes:
        kube = made(planes.provider(), "kinds")
        assert TABLE.read_text("utf-8") == text(table(kube)), "make kinds"
