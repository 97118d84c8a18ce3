"""`ucp app add` with users' folders and commits; refused ones leave nothing behind."""

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.git.repository import Repository
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import default, load
from k8s_ucp.workspace import Workspace
from tests.chart_servers import web_files
from tests.integration.cli.app_workspaces import (
    DEPLOYMENT,
    commit,
    everything,
    rendered,
    ucp,
    workspace,
    write,
)
from tests.integration.gitops.promotion.git_servers import TOKEN, http_git
from tests.integration.gitops.promotion.git_servers import USER as GIT_USER

__all__ = ["workspace"]

INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules:
    - host: web.example.org
      http:
        paths:
          - path: /
            pathType: Prefix
            backend: {service: {name: web, port: {number: 80}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
"""


def test_branch_of_a_repository_is_pinned_to_its_commit(workspace: Path, tmp_path: Path) -> None:
    files = {"deploy/kustomization.yml": "resources: [web.yaml]\n", "deploy/web.yaml": DEPLOYMENT}
    first = commit(write(tmp_path / "theirs", files), "tag", "-m", "one", "v1.0")
    url = (tmp_path / "theirs").as_uri()
    said = ucp(workspace, "app", "add", "web", "--repo", url, "--path", "deploy", "--ref", "main")
    assert first in said
    assert "web: kustomization" in said
    [found] = [each for each in load(workspace / "ucp.yaml").spec.apps if each.name == "web"]
    assert (found.repo, found.revision, found.as_) == (url, first, "kustomize")
    (tmp_path / "theirs" / "deploy" / "web.yaml").write_text(DEPLOYMENT.replace("1.0.0", "2.0.0"))
    commit(tmp_path / "theirs")
    tree = rendered(workspace)
    assert tree["apps/web/base/web.yaml"] == DEPLOYMENT
    assert 'newTag: "1.0.0"' in tree["apps/web/overlays/stage/kustomization.yaml"]
    tagged = ucp(
        workspace, "app", "add", "tagged", "--repo", url, "--path", "deploy", "--ref", "v1.0"
    )
    assert first in tagged
    with pytest.raises(UcpError, match=r"no branch and no tag nowhere; its branches: main"):
        ucp(workspace, "app", "add", "x", "--repo", url, "--ref", "nowhere")


def test_dry_run_announces_a_conflict_with_commits(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    source = str(write(tmp_path / "theirs", {"web.yaml": DEPLOYMENT}))
    gitops = Workspace.at(workspace).gitops("demo")
    gitops.core.mkdir(parents=True)
    ucp(workspace, "app", "add", "first", "--image", "a/b", "--tag", "1")
    ucp(workspace, "app", "add", "web", source, "--dry-run")
    other = tmp_path / "other"
    subprocess.run(["git", "clone", "-q", str(gitops.apps_remote), str(other)], check=True)
    commit(
        write(other, {"apps/web/base/web.yaml": DEPLOYMENT.replace("1.0.0", "0.9.0")}), "push", "-q"
    )
    before, refs = everything(workspace), Repository(gitops.apps_remote).refs()
    said = ucp(workspace, "app", "add", "web", source, "--dry-run", code=1)
    assert "would be refused: conflict: the repository and the new render changed" in said
    assert "next: move or delete by a commit: apps:apps/web/base/web.yaml" in said
    said = ucp(workspace, "app", "import", source, "--rename", "theirs=web", "--dry-run", code=1)
    assert "would be refused: conflict: the repository" in said
    assert everything(workspace) == before
    assert Repository(gitops.apps_remote).refs() == refs
    with pytest.raises(UcpError, match="conflict: the repository and the new render changed"):
        ucp(workspace, "app", "add", "web", source)


def test_commit_is_fetched_only_once(workspace: Path, tmp_path: Path) -> None:
    commit(write(tmp_path / "theirs", {"web.yaml": DEPLOYMENT}))
    ucp(workspace, "app", "add", "web", "--repo", str(tmp_path / "theirs"))
    (tmp_path / "theirs").rename(tmp_path / "gone")
    assert "apps/web/base/web.yaml" in rendered(workspace)


def test_folder_elsewhere_is_copied_with_what_it_loads(workspace: Path, tmp_path: Path) -> None:
    files = {
        "theirs/web/kustomization.yaml": "resources: [../parts/web.yaml]\n",
        "theirs/parts/kustomization.yaml": "resources: [web.yaml]\n",
        "theirs/parts/web.yaml": DEPLOYMENT,
        "theirs/web/.secret": "x",
        "theirs/other.yaml": "kind: Other\n",
    }
    files["theirs/web/kustomization.yaml"] = "resources: [../parts]\n"
    write(tmp_path, files)
    ucp(workspace, "app", "add", "web", "--path", str(tmp_path / "theirs" / "web"))
    there = sorted(each for each in everything(workspace) if each.startswith("manifests"))
    assert there == [
        "manifests/web/parts/kustomization.yaml",
        "manifests/web/parts/web.yaml",
        "manifests/web/web/kustomization.yaml",
    ]
    ucp(workspace, "check")


def test_links_to_files_of_the_same_repository_are_followed(
    workspace: Path, tmp_path: Path
) -> None:
    theirs = write(tmp_path / "theirs", {"web/web.yaml": DEPLOYMENT, "common/route.yaml": INGRESS})
    (theirs / "web/route.yaml").symlink_to("../common/route.yaml")
    (theirs / "web/away.yaml").symlink_to("/etc/hostname")
    (theirs / "web/circle.yaml").symlink_to("circle.yaml")
    commit(theirs)
    ucp(workspace, "app", "add", "web", "--path", str(theirs / "web"))
    assert rendered(workspace)["apps/web/base/route.yaml"] == INGRESS
    assert not list(workspace.rglob("away.yaml"))
    ucp(workspace, "app", "remove", "web", "--yes")
    ucp(workspace, "app", "add", "far", "--repo", str(theirs), "--path", "web")
    assert rendered(workspace)["apps/far/base/route.yaml"] == INGRESS


def test_kustomization_may_list_a_link_to_a_folder(workspace: Path, tmp_path: Path) -> None:
    files = {"web/kustomization.yaml": "resources: [parts]\n", "parts/web.yaml": DEPLOYMENT}
    theirs = write(tmp_path / "theirs", files)
    write(theirs, {"parts/kustomization.yaml": "resources: [web.yaml]\n"})
    (theirs / "web/parts").symlink_to("../parts")
    commit(theirs)
    ucp(workspace, "app", "add", "folder", str(theirs / "web"))
    ucp(workspace, "app", "add", "url", f"{theirs.as_uri()}//web")
    tree = rendered(workspace)
    assert tree["apps/folder/base/parts/web.yaml"] == DEPLOYMENT
    assert tree["apps/url/base/parts/web.yaml"] == DEPLOYMENT


def test_single_file_of_a_folder_is_added_as_an_app(workspace: Path, tmp_path: Path) -> None:
    files = {"web.yaml": DEPLOYMENT, "web-v2.yaml": DEPLOYMENT.replace("1.0.0", "2.0.0")}
    theirs = write(tmp_path / "theirs", {f"k8s/{path}": text for path, text in files.items()})
    commit(theirs)
    ucp(workspace, "app", "add", "web", str(theirs / "k8s/web.yaml"))
    assert (workspace / "manifests/web/web.yaml").read_text() == DEPLOYMENT
    said = ucp(workspace, "app", "add", "shop", f"{theirs.as_uri()}//k8s/web-v2.yaml")
    assert "shop: plain manifests in 1 file" in said
    write(workspace, {"own.yaml": DEPLOYMENT})
    ucp(workspace, "app", "add", "own", str(workspace / "own.yaml"))

    tree = rendered(workspace)
    bases = sorted(each for each in tree if "/base/" in each and "echo" not in each)
    brought = [f"apps/{each}.yaml" for each in ("own/base/own", "shop/base/web-v2", "web/base/web")]
    assert [each for each in bases if "kustomization" not in each] == brought
    assert tree["apps/shop/base/web-v2.yaml"] == files["web-v2.yaml"]
    ucp(workspace, "check")
    with pytest.raises(UcpError, match=r"has no folder or file k8s/no\.yaml"):
        ucp(workspace, "app", "add", "no", f"{theirs.as_uri()}//k8s/no.yaml")


ROLLOUT = """\
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web}
spec: {}
"""
ROOT = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: all, namespace: argocd}
"""


def test_missing_parts_of_an_app_are_reported_with_a_command(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    def refused(*words: str) -> UcpError:
        with pytest.raises(UcpError) as error:
            ucp(workspace, "app", "add", "web", *words)
        return error.value

    folders = ("a é (1)", "b")
    theirs = write(tmp_path / "theirs", {f"{each}/web.yaml": DEPLOYMENT for each in folders})
    write(theirs, {f"{each}/kustomization.yaml": "resources: [web.yaml]\n" for each in folders})
    assert f"ucp app add web '{theirs}/a é (1)' (or another" in str(refused(str(theirs)).next)
    commit(theirs)
    url = theirs.as_uri()
    command = f"web {url} --path 'a é (1)' --ref main"
    assert f"{command} (or" in str(refused(url, "--ref", "main").next)
    ucp(workspace, "app", "add", *shlex.split(command), "--dry-run")

    rollout = write(tmp_path / "rollout", {"web.yaml": ROLLOUT})
    said = ucp(workspace, "app", "add", "rolled", str(rollout))
    assert "need the CRDs of Rollout.argoproj.io" in said
    assert "addons: {argo-rollouts: true}" in said
    flow = write(tmp_path / "flow", {"web.yaml": ROLLOUT.replace("Rollout", "Workflow")})
    said = ucp(workspace, "app", "add", "flow", str(flow), "--dry-run")
    assert "need the CRDs of Workflow.argoproj.io" in said and "argo-rollouts" not in said
    root = write(tmp_path / "root", {"all.yaml": ROOT})
    said = ucp(workspace, "app", "add", "root", str(root), "--dry-run", code=2)
    assert "would be refused: root declares Argo CD Applications" in said
    assert "ucp app import" in said

    broken = write(tmp_path / "broken", {"kustomization.yaml": "resources: [none.yaml]\n"})
    error = refused(str(broken), "--dry-run")
    assert error.message.startswith("web on stage: kustomize failed to build apps/web/overlays/")
    assert "/tmp" not in f"{error.message}{error.next}".replace(str(tmp_path), "")
    chart = {
        "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        "templates/a.yaml": '{{ required "image must be set" .Values.image }}\n',
    }
    error = refused(str(write(tmp_path / "chart", chart)), "--dry-run")
    assert "image must be set" in error.message
    assert "--values FILE" in str(error.next)


KIND = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names:
    kind: Widget
    plural: widgets
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
WIDGET = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: web}\n"


def test_kinds_that_another_app_has_are_not_missing(workspace: Path, tmp_path: Path) -> None:
    widgets = str(write(tmp_path / "widgets", {"widget.yaml": WIDGET}))
    said = ucp(workspace, "app", "add", "widgets", widgets, "--dry-run")
    assert "need the CRDs of Widget.example.org" in said
    kinds = str(write(tmp_path / "kinds", {"kind.yaml": KIND}))
    ucp(workspace, "app", "add", "kinds", kinds, "--cluster-kind", "CustomResourceDefinition")
    assert "CRDs" not in ucp(workspace, "app", "add", "widgets", widgets)


def test_invalid_name_is_refused_in_plain_words(workspace: Path, tmp_path: Path) -> None:
    theirs = write(tmp_path / "Web_Shop", {"web.yaml": DEPLOYMENT})
    with pytest.raises(UcpError, match="name: 'Web_Shop' is not a name: lower-case letters"):
        ucp(workspace, "app", "add", "Web_Shop", str(theirs))


def test_removed_app_can_be_added_again_from_the_same_folder(
    workspace: Path, tmp_path: Path
) -> None:
    folder = write(tmp_path / "mine", {"web.yaml": DEPLOYMENT})
    copy = workspace / "manifests/web"
    ucp(workspace, "app", "add", "web", "--path", str(folder))
    said = ucp(workspace, "app", "remove", "web", "--yes")
    assert "app web removed; its files stay in manifests/web" in said

    ucp(workspace, "app", "add", "web", "--path", str(folder))
    ucp(workspace, "app", "remove", "web", "--yes")
    write(folder, {"web.yaml": DEPLOYMENT + "# newer\n"})
    with pytest.raises(UcpError, match="already exists, with other contents"):
        ucp(workspace, "app", "add", "web", "--path", str(folder))

    assert (copy / "web.yaml").read_text() == DEPLOYMENT
    assert [each.name for each in copy.parent.iterdir()] == ["web"]


def test_host_of_another_app_is_refused_before_the_first_start(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    folders = [write(tmp_path / name, {"web.yaml": f"{DEPLOYMENT}---\n{INGRESS}"}) for name in "ab"]
    ucp(workspace, "app", "add", "a", str(folders[0]))
    before = everything(workspace)
    with pytest.raises(UcpError) as refused:
        ucp(workspace, "app", "add", "b", str(folders[1]))
    taken = "the host web.example.org is already used by apps/a/overlays/{prod,stage}"
    assert taken in str(refused.value)
    assert "host-path-duplicate" not in str(refused.value), "it would be the same fault again"
    assert everything(workspace) == before
    # The user may declare that it is shared on purpose.
    topology = workspace / "ucp.yaml"
    shared = "".join(
        f"{{rule: {rule}, app: b, reason: two paths}}, "
        for rule in ("host-taken", "host-path-duplicate")
    )
    topology.write_text(topology.read_text() + f"  checks: {{ignore: [{shared}]}}\n")
    ucp(workspace, "app", "add", "b", str(folders[1]))


def test_host_of_an_added_app_is_refused_to_an_image_too(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    ingress = INGRESS.replace("web.example.org", f"shop.stage.{default().spec.domain}")
    folder = write(tmp_path / "a", {"web.yaml": f"{DEPLOYMENT}---\n{ingress}"})
    ucp(workspace, "app", "add", "a", str(folder))
    before = everything(workspace)
    image = ("app", "add", "b", "--image", "reg.example.org/b", "--tag", "1.0.0")
    with pytest.raises(UcpError, match="host-taken"):
        ucp(workspace, *image, "--host", "shop")
    assert everything(workspace) == before
    ucp(workspace, *image, "--host", "other")


def test_refused_app_leaves_nothing_behind(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    Workspace.at(workspace).gitops("demo").core.mkdir(parents=True)
    ucp(workspace, "app", "add", "first", "--image", "a/b", "--tag", "1")
    before = everything(workspace)
    moving = DEPLOYMENT.replace("1.0.0", "latest").replace("selector", "no-such-field")
    write(tmp_path / "theirs", {"web.yaml": moving})
    with pytest.raises(UcpError, match="no-such-field"):
        ucp(workspace, "app", "add", "web", "--path", str(tmp_path / "theirs"))
    with pytest.raises(UcpError, match="no manifests"):
        ucp(workspace, "app", "add", "web", "--path", str(write(tmp_path / "x", {"a.md": ""})))
    with pytest.raises(UcpError, match="unknown environment 'qa'"):
        ucp(workspace, "app", "add", "web", "--path", str(tmp_path / "theirs"), "--values", "qa=x")
    values = str(write(tmp_path / "y", {"v.yaml": "a: 1\n"}) / "v.yaml")
    with pytest.raises(UcpError, match="--values is only for Helm charts"):
        ucp(workspace, "app", "add", "web", str(tmp_path / "theirs"), "--values", values)
    chart = {"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "templates/w.yaml": ""}
    with pytest.raises(UcpError, match="--host is not for Helm charts"):
        ucp(workspace, "app", "add", "web", str(write(tmp_path / "c", chart)), "--host", "web")
    assert everything(workspace) == before
    # A warning doesn't refuse it unless warnings are denied.
    write(tmp_path / "theirs", {"web.yaml": DEPLOYMENT.replace("1.0.0", "latest")})
    ucp(workspace, "app", "add", "web", "--path", str(tmp_path / "theirs"))
    assert "[image-moving-tag]" in ucp(workspace, "check")
    runs = json.loads(ucp(workspace, "-q", "check", "-o", "sarif"))["runs"]
    assert {(each["ruleId"], each["level"]) for run in runs for each in run["results"]} == {
        ("image-moving-tag", "warning")
    }
    file = workspace / "ucp.yaml"
    text = file.read_text()
    entry = "{rule: image-moving-tag, app: web, file: apps/web/*, reason: a trial}"
    for checks, words in (("deny: [warnings]", "2 errors"), (f"ignore: [{entry}]", "2 ignored")):
        file.write_text(text.replace("spec:\n", f"spec:\n  checks: {{{checks}}}\n", 1))
        # A pipeline of the app repository has only these files, and applies the same settings.
        ucp(workspace, "render", "--out", str(tmp_path / words[2:5]))
        for alone in ([], ["--apps", str(tmp_path / words[2:5] / "apps")]):
            if "errors" in words:
                with pytest.raises(UcpError, match=words):
                    ucp(workspace, "check", *alone)
            else:
                said = ucp(workspace, "check", "--show-ignored", *alone)
                assert "a trial (ucp.yaml)" in said and words in said
    (tmp_path / "ign" / "apps" / "checks.yaml").write_text("ignore: [{rule: yaml-invalid}]\n")
    with pytest.raises(UcpError, match="not valid as `checks`"):
        ucp(workspace, "check", "--apps", str(tmp_path / "ign" / "apps"))


def test_dry_run_shows_everything_and_changes_nothing(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    before = everything(workspace)
    folder = str(write(tmp_path / "chart", web_files("1.0.0")))
    values = str(write(tmp_path, {"prod.yaml": "replicas: 3\n"}) / "prod.yaml")
    said = ucp(
        workspace, "app", "add", "web", "--path", folder, "--values", f"prod={values}", "--dry-run"
    )
    assert "web: Helm chart web, version 1.0.0" in said
    assert "# apps: apps/web/overlays/prod/templates/deployment.yaml (new)" in said
    assert "replicas: 3" in said.partition("# web on prod")[2]
    assert "image: example.org/web:1.0.0" in said
    assert everything(workspace) == before


def test_terminated_dry_run_leaves_no_copy_behind(workspace: Path, tmp_path: Path) -> None:
    """A canceled CI job, or `timeout`, ends a command by SIGTERM."""
    theirs = write(tmp_path / "theirs", {"web.yaml": DEPLOYMENT})
    words = ["--workspace", str(workspace), "app", "add", "web", str(theirs), "--dry-run"]
    program = "import sys; from k8s_ucp.cli.main import run; sys.exit(run(sys.argv[1:]))"
    started = [sys.executable, "-c", program, *words]
    with subprocess.Popen(started, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as adding:
        while not (workspace / "manifests" / "web").exists() and adding.poll() is None:
            time.sleep(0.005)
        adding.terminate()
        assert adding.wait(timeout=120) in (0, 130)
    assert not (workspace / "manifests").exists()


def test_overlays_in_a_folder_of_another_name_are_used(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    def overlay(replicas: int) -> str:
        return f"resources: [../../base]\nreplicas: [{{name: web, count: {replicas}}}]\n"

    base = {"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": DEPLOYMENT}
    theirs = write(
        tmp_path / "theirs",
        {
            **base,
            "envs/staging/kustomization.yaml": overlay(2),
            "envs/production/kustomization.yaml": overlay(3),
        },
    )
    commit(theirs)
    with pytest.raises(UcpError, match="staging, but not for stage, prod") as refused:
        ucp(workspace, "app", "add", "web", theirs.as_uri())
    flags = "--overlay stage=envs/staging --overlay prod=envs/production"
    assert str(refused.value.next).endswith(flags)
    ucp(workspace, "app", "add", "web", theirs.as_uri(), *flags.split())
    ours = {f"stages/{each}/kustomization.yaml": overlay(2) for each in ("stage", "prod", "dev")}
    ucp(workspace, "app", "add", "shop", str(write(tmp_path / "ours", {**base, **ours})))
    found = {each.name: each.overlays for each in load(workspace / "ucp.yaml").spec.apps}
    assert found["web"] == {"stage": "envs/staging", "prod": "envs/production"}
    assert found["shop"] == {"stage": "stages/stage", "prod": "stages/prod"}
    ucp(workspace, "check")


def test_overlays_of_other_names_must_be_mapped(workspace: Path, tmp_path: Path) -> None:
    files = {"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": DEPLOYMENT}
    names = ("staging", "production", "eu")
    files |= {f"overlays/{each}/kustomization.yaml": "resources: [../../base]\n" for each in names}
    theirs = write(tmp_path / "theirs", files)
    before = everything(workspace)
    with pytest.raises(UcpError, match="eu, production, staging, but not for stage, prod") as no:
        ucp(workspace, "app", "add", "web", str(theirs))
    flags = "--overlay stage=overlays/staging --overlay prod=overlays/production"
    assert str(no.value.next).endswith(flags)
    assert everything(workspace) == before

    ucp(workspace, "app", "add", "web", str(theirs), *flags.split())
    [web] = [each for each in load(workspace / "ucp.yaml").spec.apps if each.name == "web"]
    assert web.overlays == {"stage": "overlays/staging", "prod": "overlays/production"}
    for each in names[:2]:
        shutil.rmtree(theirs / "overlays" / each)
    said = ucp(workspace, "app", "add", "shop", str(theirs))
    assert "shop: no overlay for stage, prod, only for eu" in said


def test_new_environment_uses_the_named_overlay(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    missing = DEPLOYMENT.replace('web:1.0.0"', 'web:1.0.0", envFrom: [{configMapRef: {name: c}}]')
    maps = "resources: [../../base]\nconfigMapGenerator: [{name: c, literals: [a=b]}]\n"
    files = {"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": missing}
    files |= {f"stages/{each}/kustomization.yaml": maps for each in ("uat", "live")}
    theirs = str(write(tmp_path / "theirs", files))
    Workspace.at(workspace).gitops("demo").core.mkdir(parents=True)
    flags = ["--overlay", "stage=stages/uat", "--overlay", "prod=stages/live"]
    ucp(workspace, "app", "add", "web", theirs, *flags)
    before = everything(workspace)
    with pytest.raises(UcpError, match="references the ConfigMap c") as refused:
        ucp(workspace, "env", "add", "eu")
    assert str(refused.value.next).endswith("run the command again with --overlay web=stages/live")
    assert everything(workspace) == before
    ucp(workspace, "env", "add", "eu", "--overlay", "web=stages/live")
    ucp(workspace, "check")
    [web] = [each for each in load(workspace / "ucp.yaml").spec.apps if each.name == "web"]
    assert web.overlays["eu"] == "stages/live"


@pytest.mark.parametrize("cloned", [True, False], ids=["cloned", "unpacked"])
def test_single_overlay_is_added_with_its_base(
    workspace: Path, tmp_path: Path, toolbox: Toolbox, cloned: bool
) -> None:
    overlay = {"overlays/production/kustomization.yaml": "resources: [../../base]\n"}
    base = {"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": DEPLOYMENT}
    theirs = write(tmp_path / "theirs", {**base, **overlay})
    if cloned:
        commit(theirs)
    said = ucp(workspace, "app", "add", "web", str(theirs / "overlays" / "production"))
    assert "web: kustomization" in said
    assert "overlay" not in said
    ucp(workspace, "check")
    assert rendered(workspace)["apps/web/base/base/web.yaml"] == DEPLOYMENT


def test_version_set_by_a_patch_is_promotable_or_reported_as_not(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    patch = (
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: "
        '{containers: [{name: web, image: "example.org/web:2.0.0"}]}}}}\n'
    )
    files = {
        "base/kustomization.yaml": "resources: [web.yaml]\n",
        "base/web.yaml": DEPLOYMENT.replace("name: web}", "name: web, labels: {app: web}}", 1),
        "overlays/stage/kustomization.yaml": "resources: [../../base]\n",
        "overlays/prod/kustomization.yaml": (
            "resources: [../../base]\npatches: [{path: newer.yaml}]\n"
        ),
        "overlays/prod/newer.yaml": patch,
    }
    said = ucp(workspace, "app", "add", "web", str(write(tmp_path / "web", files)), "--dry-run")
    assert "image: example.org/web:2.0.0" in said and "can't change" not in said
    files["overlays/prod/kustomization.yaml"] = (
        "resources: [../../base]\npatches: [{path: newer.yaml, target: {labelSelector: app=web}}]\n"
    )
    said = ucp(workspace, "app", "add", "web", str(write(tmp_path / "web", files)), "--dry-run")
    assert "image: example.org/web:2.0.0" in said
    assert "web: `ucp promote` can't change example.org/web in prod, whose version a patch" in said


def test_objects_of_other_controllers_are_reported_with_the_way_to_add_them(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\n"
    application = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\n"
    source = str(write(tmp_path / "web", {"a.yaml": release, "b.yaml": application}))
    said = ucp(workspace, "app", "add", "web", source, "--dry-run", code=2)
    words = " ".join(said.split())
    assert "`ucp app import` with the folder adds the charts of HelmReleases" in words
    assert "Argo Rollouts" not in words


def test_file_above_a_kustomization_is_reported_with_the_way_to_add_it(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    files = {
        "web/kustomization.yaml": "configMapGenerator: [{name: a, files: [../more/a.conf]}]\n",
        "more/a.conf": "a\n",
    }
    with pytest.raises(UcpError, match=r"in web loads more/a.conf, which is outside") as refused:
        ucp(workspace, "app", "add", "web", str(write(tmp_path, files) / "web"))
    assert "copy a.conf into that folder" in str(refused.value.next)


def test_plain_manifests_are_promoted(workspace: Path, tmp_path: Path, toolbox: Toolbox) -> None:
    gitops = Workspace.at(workspace).gitops("demo")
    gitops.core.mkdir(parents=True)
    folder = str(write(tmp_path / "theirs", {"web.yaml": DEPLOYMENT}))
    ucp(workspace, "app", "add", "first", "--image", "a/b", "--tag", "1")
    ucp(workspace, "app", "add", "web", "--path", folder, "--as", "directory")
    words = ["--env", "stage", "--tag", "2.0.0", "--sequence", "3"]
    assert "containers.0.image in web.yaml" in ucp(workspace, "promote", "web", *words)
    found = Repository(gitops.apps_remote).read("main")
    new = DEPLOYMENT.replace("1.0.0", "2.0.0").encode()
    assert found["apps/web/overlays/stage/web.yaml"] == new
    assert "apps/web/overlays/stage/.promotion.yaml" in found
    # Promotion's record is a file among the manifests, but not one itself: the next push is
    # accepted.
    ucp(workspace, "app", "add", "second", "--image", "a/b", "--tag", "1")
    later = Repository(gitops.apps_remote).read("main")
    assert all(later[path] == content for path, content in found.items() if "/web/" in path)
    # A new environment begins with the versions in the files, and nothing is promoted
    # automatically.
    said = " ".join(ucp(workspace, "env", "add", "eu", "--promotes-from", "stage").split())
    assert "web starts on eu with example.org/web 1.0.0 (not 2.0.0); to use" in said
    assert "first starts" not in said
    ucp(workspace, "promote", "web", "--env", "eu", "--from", "stage")
    promoted = Repository(gitops.apps_remote).read("main")
    assert promoted["apps/web/overlays/eu/web.yaml"] == new


def test_no_permission_is_granted_silently(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: web}\n"
    far = DEPLOYMENT.replace("{name: web}\n", "{name: web, namespace: far}\n", 1)
    folder = str(write(tmp_path / "theirs", {"role.yaml": role, "web.yaml": far}))
    before = everything(workspace)
    with pytest.raises(UcpError, match="it creates the cluster-scoped kind ClusterRole") as refused:
        ucp(workspace, "app", "add", "web", "--path", folder)
    flags = "--cluster-kind ClusterRole --namespace far"
    shown = ucp(workspace, "app", "add", "web", folder, "--dry-run", code=2)
    assert shown.count("would be refused") == 1
    assert shown.rstrip().endswith(f"allow it with {flags}")
    assert str(refused.value.next).endswith(flags)
    assert everything(workspace) == before
    set_ = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all}\n"
    more = str(write(tmp_path / "more", {"set.yaml": set_}))
    with pytest.raises(UcpError, match="declares Argo CD Applications") as refused:
        ucp(workspace, "app", "add", "all", "--path", more)
    assert "ucp app import" in str(refused.value.next)
    assert everything(workspace) == before
    ucp(workspace, "app", "add", "web", "--path", folder, *flags.split())
    [added] = [each for each in load(workspace / "ucp.yaml").spec.apps if each.name == "web"]
    assert (added.home, added.cluster_kinds) == ("far", ("ClusterRole",))
    ucp(workspace, "check")
    text = (workspace / "ucp.yaml").read_text()
    (workspace / "ucp.yaml").write_text(
        text.replace("      clusterKinds:\n", "      hosts: []\n      clusterKinds: []\n").replace(
            "        - ClusterRole\n", ""
        )
    )
    with pytest.raises(UcpError, match=r"ClusterRole web is cluster-scoped"):
        ucp(workspace, "check")


@pytest.mark.slow
def test_private_repository_is_accessed_with_the_named_credential(
    workspace: Path, tmp_path: Path, toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For both add and import; the secret is in no argument, file or commit."""
    gitops = Workspace.at(workspace).gitops("demo")
    gitops.core.mkdir(parents=True)
    called = tmp_path / "called"
    script = f'#!/bin/sh\necho "$@" >>{called}\nexec {shutil.which("git")} "$@"\n'
    wrapper = write(tmp_path / "bin", {"git": script}) / "git"
    wrapper.chmod(0o755)
    monkeypatch.setenv("GIT_PYTHON_GIT_EXECUTABLE", str(wrapper))
    theirs = tmp_path / "served" / "theirs"
    first = commit(write(theirs, {"web.yaml": DEPLOYMENT}))
    text = (workspace / "ucp.yaml").read_text()
    (workspace / "ucp.yaml").write_text(f"{text}  credentials:\n    theirs: {{env: THEIRS}}\n")
    monkeypatch.setenv("THEIRS", json.dumps({"username": GIT_USER, "password": TOKEN}))
    with http_git(tmp_path / "served", {**os.environ}) as server:
        url = server.url(theirs / ".git")
        with pytest.raises(UcpError):
            ucp(workspace, "app", "add", "web", "--repo", url)
            ucp(workspace, "app", "import", url, "--all")
        words = [["add", "web", "--repo", url], ["import", url, "--app", "theirs"]]
        said = [_apart(workspace, wrapper, "app", *each, "--auth", "theirs") for each in words]
    assert all(first in each for each in said)
    for path in ("web", "theirs"):
        found = Repository(gitops.apps_remote).read("main")[f"apps/{path}/base/web.yaml"]
        assert found == DEPLOYMENT.encode()
    assert [each.auth for each in load(workspace / "ucp.yaml").spec.apps[-2:]] == ["theirs"] * 2
    assert url in called.read_text()
    commits = [
        Repository(each).git("log", "-p", "--all").decode()
        for each in (gitops.core_remote, gitops.apps_remote)
    ]
    files = [each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()]
    for secret in (TOKEN, base64.b64encode(f"{GIT_USER}:{TOKEN}".encode()).decode()):
        assert not any(secret in text for text in (*said, *commits, called.read_text()))
        assert not any(secret.encode() in content for content in files)


def _apart(workspace: Path, git: Path, *words: str) -> str:
    """Run a command in its own process, which calls that git; return its output."""
    program = "import sys; from k8s_ucp.cli.main import run; sys.exit(run(sys.argv[1:]))"
    called = [sys.executable, "-c", program, "--workspace", str(workspace), *words]
    path = f"{git.parent}:{os.environ['PATH']}"
    ended = subprocess.run(
        called, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout + ended.stderr


def test_objects_that_something_else_creates_are_declared_once(
    workspace: Path, tmp_path: Path
) -> None:
    """One declaration covers all workloads of an app in all of its environments."""
    reads = 'image: "example.org/web:1.0.0", envFrom: [{secretRef: {name: key}}]}'
    text = DEPLOYMENT.replace('image: "example.org/web:1.0.0"}', reads)
    folder = write(tmp_path / "theirs", {"a.yaml": text, "b.yaml": text.replace("web}", "job}")})
    flag = "--from-outside Secret/key"
    with pytest.raises(UcpError, match="it needs Secret/key, which something else") as error:
        ucp(workspace, "app", "add", "web", str(folder))
    assert str(error.value.next).endswith(f"run the command again with {flag}")
    said = ucp(workspace, "app", "add", "web", str(folder), "--dry-run", code=2)
    assert said.rstrip().endswith(flag)
    ucp(workspace, "app", "add", "web", str(folder), *flag.split())
    assert load(workspace / "ucp.yaml").spec.apps[-1].from_outside == ("Secret/key",)
    ucp(workspace, "check")
    told = (workspace / "ucp.yaml").read_text()
    (workspace / "ucp.yaml").write_text(told.replace("Secret/key", "Secret/other"))
    with pytest.raises(UcpError, match="add Secret/key to `fromOutside` of the app") as refused:
        ucp(workspace, "check")
    assert refused.value.message.count("references the Secret key") == 2, "one line a Deployment"


def test_what_an_app_of_ucp_yaml_creates_in_the_namespace_is_not_missing(
    workspace: Path, tmp_path: Path
) -> None:
    settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
    reader = DEPLOYMENT.replace("image:", "envFrom: [{configMapRef: {name: settings}}], image:")
    for name, content in {"web": settings, "reader": reader}.items():
        write(tmp_path / name, {"all.yaml": content})
    ucp(workspace, "app", "add", "web", str(tmp_path / "web"))

    add = ("app", "add", "reader", str(tmp_path / "reader"))
    assert "--from-outside ConfigMap/settings" in ucp(workspace, *add, "--dry-run", code=2)
    assert "would be refused" not in ucp(workspace, *add, "--namespace", "web", "--dry-run")
    ucp(workspace, *add, "--namespace", "web")


def test_manifests_of_several_environments_are_not_merged_into_one_app(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    """`ucp app import` creates an overlay from each folder instead."""
    folder = write(tmp_path / "theirs", {"stage/web.yaml": DEPLOYMENT, "prod/web.yaml": DEPLOYMENT})
    before = everything(workspace)
    with pytest.raises(UcpError, match="manifests of its own for prod, stage") as error:
        ucp(workspace, "app", "add", "web", str(folder))
    assert everything(workspace) == before
    command = str(error.value.next).partition(" makes ")[0]
    assert command == f"ucp app import {folder}"
    said = ucp(workspace, *command.split()[1:], "--dry-run")
    assert "apps/theirs/base/prod/kustomization.yaml (new)" in said


def test_namespaces_of_the_platform_are_refused_immediately(
    workspace: Path, tmp_path: Path
) -> None:
    """The error proposes no flag that the next run would refuse."""
    head = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n"
    for namespace in ("kube-system", "default"):
        text = f"{head}metadata: {{name: lease, namespace: {namespace}}}\n"
        folder = write(tmp_path / namespace, {"role.yaml": text, "web.yaml": DEPLOYMENT})
        words = f"web: Role/lease would go to the namespace {namespace}, which is reserved"
        with pytest.raises(UcpError, match=words) as error:
            ucp(workspace, "app", "add", "web", str(folder))
        assert "remove metadata.namespace there" in str(error.value.next)
        assert words in ucp(workspace, "app", "add", "web", str(folder), "--dry-run", code=2)


PATCH = '[{"op": "remove", "path": "/spec/a"}]'


def test_files_that_a_kustomization_loads_as_text_need_not_be_yaml(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    files = {
        "kustomization.yaml": "resources: [web.yaml]\nconfigMapGenerator:\n"
        "  - {name: env, envs: [.env]}\n"
        "  - name: web\n    files: [config/app.yaml, b.yaml=config/tags.yaml]\n"
        f"patches: [{{target: {{kind: None, name: ^({'a|' * 200}b)$}}, patch: '{PATCH}'}}]\n",
        "web.yaml": DEPLOYMENT,
        "config/app.yaml": "a: {{ .x }}\nb: {{ y }}: z\n",
        "config/tags.yaml": "password: !secret web\n",
        ".env": "HIDDEN=1\n",
        ".other": "",
    }
    source = write(tmp_path / "web", files)
    said = ucp(workspace, "app", "add", "web", str(source), "--dry-run")
    assert "b: {{ y }}: z" in said and "would be refused" not in said
    assert "HIDDEN: " in said and "base/.other" not in said
    said = ucp(workspace, "app", "import", str(source), "--all", "--dry-run")
    assert "apps/web/base/config/app.yaml (new)" in said and "would be refused" not in said
