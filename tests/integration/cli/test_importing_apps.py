"""`ucp app import`: apps of a GitOps repository are listed, and added in one commit or none."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from k8s_ucp.cli import questions
from k8s_ucp.cli.editing.imports.choices import proposed_flags
from k8s_ucp.cli.editing.imports.source import builder, filler, renderer
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.git.objects import Author
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.imports.detection import ImportTools, detect
from k8s_ucp.gitops.imports.findings import RemoteSource
from k8s_ucp.gitops.render.app_manifests import folder_tree_of
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import load
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

__all__ = ["workspace"]

MAPS = ("--map", "staging=stage", "--env", "production=prod")


def theirs(folder: Path) -> Path:
    """A repository with a kustomization, a chart, and apps that can't be imported."""
    files = {f"charts/shop/{path}": text for path, text in web_files("1.0.0", name="shop").items()}
    files |= {
        "charts/shop/values-staging.yaml": "replicas: 1\n",
        "charts/shop/values-production.yaml": "replicas: 5\n",
        "base/web/kustomization.yaml": "resources: [web.yaml]\n",
        "base/web/web.yaml": DEPLOYMENT,
        "common/kustomization.yaml": "commonAnnotations: {team: shop}\n",
        "overlays/staging/web/kustomization.yaml": "resources: [../../../base/web]\n",
        "overlays/production/web/kustomization.yaml": (
            "resources: [../../../base/web]\nreplicas: [{name: web, count: 4}]\n"
        ),
        "argo/set.yaml": (
            "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: previews}\n"
            "spec: {generators: [{scmProvider: {}}], template: {metadata: {name: x}}}\n"
        ),
    }
    return write(folder, files)


def apps_of(workspace: Path) -> list[str]:
    return [each.name for each in load(workspace / "ucp.yaml").spec.apps]


def remote_refs(workspace: Path) -> dict[str, dict[str, str]]:

    folder = Workspace.at(workspace).gitops("demo")
    return {
        each.name: Repository(each).refs()
        for each in (folder.core_remote, folder.apps_remote, folder.core, folder.apps)
        if each.exists()
    }


def test_dry_run_lists_apps_and_changes_nothing(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    rollout = DEPLOYMENT.replace("apps/v1", "argoproj.io/v1alpha1")
    files = {
        "base/web/kustomization.yaml": "resources: [web.yaml, rollout.yaml]\n",
        "base/web/rollout.yaml": rollout.replace("kind: Deployment", "kind: Rollout"),
    }
    source = str(write(theirs(tmp_path / "theirs"), files))
    before = everything(workspace)
    with pytest.raises(UcpError, match="no environment production, staging") as failed:
        ucp(workspace, "app", "import", source, "--dry-run")
    assert failed.value.next == (
        "map them: --map production=prod --map staging=stage (or --skip-env NAME)"
    )
    said = ucp(workspace, "app", "import", source, "--dry-run", *MAPS)
    assert "web    kustomize   production, staging   -           base/web" in said
    assert "its generator queries a git host for repositories" in said
    assert "# apps: apps/shop/overlays/prod/Chart.yaml (new)" in said
    assert "web: the clusters need the CRDs of Rollout.argoproj.io" in said
    values = "values-staging.yaml for stage, values-production.yaml for prod"
    assert f"shop: values files of environments: {values}" in said
    renamed = (*MAPS, "--rename", "shop=website")
    found = json.loads(ucp(workspace, "app", "import", source, "--dry-run", *renamed, "-o", "json"))
    assert [(each["name"], each["namespace"]) for each in found["apps"]] == [
        ("web", None),
        ("website", None),
    ]
    assert [each["name"] for each in found["notAdded"]] == ["previews"]
    assert not found["refusedByCheck"]
    assert {"file": "apps: apps/web/overlays/stage/kustomization.yaml", "change": "new"} in found[
        "files"
    ]
    assert everything(workspace) == before


def test_each_environment_is_proposed_only_once() -> None:
    missing = ["prod-eu", "prod-us", "qa", "staging"]
    flags = ["--map prod-eu=prod", "--skip-env prod-us", "--skip-env qa", "--map staging=stage"]
    assert proposed_flags(missing, ["stage", "prod"], {}, {}) == flags


def test_environment_without_a_counterpart_is_proposed_to_be_skipped() -> None:
    """The source also has a prod, which is already mapped to ours."""
    beside = {name: {"dev", "staging", "prod"} for name in ("dev", "staging")}
    found = proposed_flags(["dev", "staging"], ["stage", "prod"], {}, beside)
    assert found == ["--skip-env dev", "--map staging=stage"]


def test_environment_that_is_used_by_another_app_is_proposed_too() -> None:
    ours, missing = ["stage", "prod"], ["production", "staging"]
    flags = ["--map production=prod", "--map staging=stage"]
    assert proposed_flags(missing, ours, {}, {"production": {"production"}}) == flags
    beside = {"production": {"production", "prod"}}
    assert proposed_flags(missing, ours, {}, beside)[0] != flags[0]


def test_selected_apps_of_a_folder_are_added_in_one_commit(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    source = str(theirs(tmp_path / "theirs"))
    Workspace.at(workspace).gitops("demo").core.mkdir(parents=True)
    ucp(workspace, "app", "add", "first", "--image", "a/b", "--tag", "1")

    clone = Repository(Workspace.at(workspace).gitops("demo").apps)
    before, refs, commits = everything(workspace), remote_refs(workspace), clone.history("HEAD")
    with pytest.raises(UcpError, match="no app is selected"):
        ucp(workspace, "app", "import", source)
    with pytest.raises(UcpError, match="unknown app 'api'; available: shop, web"):
        ucp(workspace, "app", "import", source, "--app", "api")
    with pytest.raises(UcpError, match="queries a git host"):
        ucp(workspace, "app", "import", source, "--app", "previews")
    one = {"kustomization.yaml": "resources: [web.yaml]\n", "web.yaml": DEPLOYMENT}
    part = write(tmp_path / "part" / "web" / "overlays" / "staging", one).parents[2]
    with pytest.raises(UcpError, match="nothing for the environment prod, only for staging"):
        ucp(workspace, "app", "import", str(part), "--app", "web", "--map", "staging=stage")
    broken = tmp_path / "theirs" / "base" / "web" / "web.yaml"
    broken.write_text(DEPLOYMENT.replace("selector", "no-such-field"))
    with pytest.raises(UcpError, match="no-such-field"):
        ucp(workspace, "app", "import", source, "--all", *MAPS)
    # The error proposes to leave out a named app that can't be built.
    broken.write_text(DEPLOYMENT)
    broken = broken.with_name("kustomization.yaml")
    sound = broken.read_text()
    broken.write_text(f"{sound}patches: [{{path: absent.yaml}}]\n")
    with pytest.raises(UcpError, match="web on stage: kustomize failed to build") as failed:
        ucp(workspace, "app", "import", source, "--app", "shop", "--app", "web", *MAPS)
    assert str(failed.value.next).endswith("or leave it out: --app shop")
    broken.write_text(sound)
    assert everything(workspace) == before
    assert remote_refs(workspace) == refs
    said = ucp(workspace, "app", "import", source, "--all", *MAPS)
    assert "added shop, web" in said
    assert len(clone.history("HEAD")) == len(commits) + 1
    assert apps_of(workspace)[-2:] == ["shop", "web"]
    tree = rendered(workspace)
    assert "replicas: 5" in tree["apps/shop/overlays/prod/values-prod.yaml"]
    overlay = tree["apps/web/overlays/prod/kustomization.yaml"]
    assert "../../base/overlays/production/web" in overlay
    assert "count: 4" in tree["apps/web/base/overlays/production/web/kustomization.yaml"]
    assert not any("common" in path or "argo" in path for path in tree if "apps/web" in path)
    ucp(workspace, "check")
    with pytest.raises(UcpError, match=r"ucp.yaml has an app of this name"):
        ucp(workspace, "app", "import", source, "--app", "web", *MAPS)


def test_imported_repository_is_pinned_to_a_commit(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    first = commit(theirs(tmp_path / "theirs"))
    url = (tmp_path / "theirs").as_uri()
    said = ucp(workspace, "app", "import", url, "--all", *MAPS)
    assert f"the default branch of {url} is commit {first}" in said
    shop, web = load(workspace / "ucp.yaml").spec.apps[-2:]
    assert (shop.repo, shop.revision, shop.path, shop.as_) == (url, first, "charts/shop", "helm")
    assert shop.values == {"stage": "values-staging.yaml", "prod": "values-production.yaml"}
    assert (web.repo, web.revision, web.path) == (url, first, None)
    assert web.overlays["prod"] == "overlays/production/web"
    ucp(workspace, "check")


def test_clone_in_a_folder_with_a_space_is_recognized_by_its_remotes(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    remote = "https://git.invalid/their-apps.git"
    application = (
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\n"
        f"spec:\n  project: default\n  source: {{repoURL: '{remote}', path: web}}\n"
        "  destination: {server: 'https://kubernetes.default.svc', namespace: web}\n"
    )
    folder = write(
        tmp_path / "their apps", {"argo/web.yaml": application, "web/web.yaml": DEPLOYMENT}
    )
    commit(folder)
    subprocess.run(["git", "-C", str(folder), "remote", "add", "origin", remote], check=True)
    assert "%20" in folder.as_uri()
    ucp(workspace, "app", "import", folder.as_uri(), "--all")
    web = load(workspace / "ucp.yaml").spec.apps[-1]
    assert (web.name, web.repo, web.path) == ("web", folder.as_uri(), "web")


def test_permission_that_an_app_needs_is_named_with_the_flag(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: web}\n"
    source = str(
        write(tmp_path / "theirs", {"web/web.yaml": f"{DEPLOYMENT}---\n{role}rules: []\n"})
    )
    with pytest.raises(UcpError, match="ClusterRole") as failed:
        ucp(workspace, "app", "import", source, "--all")
    assert "--cluster-kind web=ClusterRole" in str(failed.value.next)
    shown = ucp(workspace, "app", "import", source, "--dry-run", code=failed.value.exit_code)
    assert "would be refused: web: it creates the cluster-scoped kind ClusterRole" in shown
    ucp(workspace, "app", "import", source, "--all", "--cluster-kind", "web=ClusterRole")
    assert load(workspace / "ucp.yaml").spec.apps[-1].cluster_kinds == ("ClusterRole",)


def test_history_of_imported_files_is_merged(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    folder = tmp_path / "theirs"
    write(folder, {"secret.txt": "x", "base/web/web.yaml": "a: 1\n"})
    commit(folder)
    commit(theirs(folder))
    url = folder.as_uri()
    words = ("--app", "web", *MAPS, "--keep-history")
    with pytest.raises(UcpError, match="--keep-history needs an app repository"):
        ucp(workspace, "app", "import", url, *words)
    Workspace.at(workspace).gitops("demo").core.mkdir(parents=True)
    ucp(workspace, "app", "add", "first", "--image", "a/b", "--tag", "1")
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth=1", url, str(shallow)], check=True)
    before, refs = everything(workspace), remote_refs(workspace)
    with pytest.raises(UcpError, match="is a shallow clone"):
        ucp(workspace, "app", "import", str(shallow), *words)
    (folder / "base" / "web" / "new.yaml").write_text("")
    with pytest.raises(UcpError, match="not committed"):
        ucp(workspace, "app", "import", str(folder), *words)
    assert everything(workspace) == before
    assert remote_refs(workspace) == refs
    (folder / "base" / "web" / "new.yaml").unlink()
    ucp(workspace, "app", "import", url, *words)
    clone = Repository(Workspace.at(workspace).gitops("demo").apps)
    newest = clone.history("HEAD", limit=1)[0]
    assert len(newest.parents) == 2
    kept = clone.history(newest.parents[1])
    assert [each.author for each in kept] == [Author("Me", "me@example.org")] * 2
    assert clone.read(kept[1].id) == {"apps/web/base/base/web/web.yaml": b"a: 1\n"}
    assert "apps/web/base/overlays/production/web/kustomization.yaml" in clone.listing(kept[0].id)
    assert not any("secret" in path or "argo" in path for path in clone.listing(kept[0].id))
    assert not any(name.startswith("refs/ucp-pending") for name in clone.refs())
    lines = clone.git("blame", "--porcelain", "HEAD", "--", "apps/web/base/base/web/web.yaml")
    assert kept[0].id.encode() in lines


def test_app_that_can_not_be_fetched_is_listed_and_the_others_are_added(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    application = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: far}
spec:
  source: {repoURL: "http://127.0.0.1:9/charts", chart: far, targetRevision: 1.0.0}
  destination: {namespace: far}
"""
    files = {"argo/far.yaml": application, "web/web.yaml": DEPLOYMENT}
    files |= {"lib/main.jsonnet": "{}\n", "lib/broken.yaml": "kind: A\n  apiVersion: v1\n"}
    source = str(write(tmp_path / "theirs", files))
    with pytest.raises(UcpError, match=r"far: the chart http://127\.0\.0\.1:9/charts/far"):
        ucp(workspace, "app", "import", source, "--app", "far")
    output = ucp(workspace, "-q", "app", "import", source, "--all", "-o", "json")
    said, _ = json.JSONDecoder().raw_decode(output, output.index("{"))
    assert said["added"] == ["web"]
    far, lib = said["notAdded"]
    assert far["name"] == "far" and "127.0.0.1:9" in far["reason"]
    assert lib["name"] == "lib" and "broken.yaml is not valid YAML" in lib["reason"]
    assert apps_of(workspace)[-1] == "web"


def test_app_that_can_not_be_built_or_is_forbidden_is_listed_and_the_others_are_added(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    reserved = DEPLOYMENT.replace(
        "metadata: {name: web", "metadata: {namespace: default, name: web"
    )
    files = {
        "web/web.yaml": DEPLOYMENT,
        "old/kustomization.yaml": "resources: [web.yaml]\npatches: [{path: absent.yaml}]\n",
        "old/web.yaml": DEPLOYMENT,
        "tool/web.yaml": reserved,
        # Not a clone: all of the folder may be used, as of an unpacked archive.
        "kits/new/small/kustomization.yaml": "nameSuffix: -s\nresources: [../../../shared/base]\n",
        "shared/base/kustomization.yaml": "resources: [web.yaml]\n",
        "shared/base/web.yaml": DEPLOYMENT,
    }
    source = str(write(tmp_path / "theirs", files))
    assert reserved != DEPLOYMENT
    said = ucp(workspace, "app", "import", source, "--all", "--dry-run")
    assert "old is not added: old on stage: kustomize failed to build" in said
    output = ucp(workspace, "-q", "app", "import", source, "--all", "-o", "json")
    listed, _ = json.JSONDecoder().raw_decode(output, output.index("{"))
    assert listed["added"] == ["small", "web"] == [each["name"] for each in listed["apps"]]
    old, tool = listed["notAdded"]
    assert old["name"] == "old" and "absent.yaml" in old["reason"]
    assert tool["name"] == "tool" and "namespace default, which is reserved" in tool["reason"]
    assert apps_of(workspace)[-1] == "web"
    assert sorted(each.name for each in (workspace / "manifests").iterdir()) == ["small", "web"]
    with pytest.raises(UcpError, match="Deployment/web would go to the namespace default"):
        ucp(workspace, "app", "import", source, "--app", "tool")


def test_app_that_the_check_refuses_can_be_left_out(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: bad}\n"
    service += "spec: {selector: {app: nothing}, ports: [{port: 80}]}\n"
    role = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nrules: []\n"
    files = {
        "api/web.yaml": f"{DEPLOYMENT}{role}metadata: {{name: api}}\n",
        "bad/web.yaml": DEPLOYMENT + service,
        "web/web.yaml": DEPLOYMENT,
    }
    source = str(write(tmp_path / "theirs", files))
    with pytest.raises(UsageError) as refused:
        ucp(workspace, "app", "import", source, "--all")
    assert str(refused.value.next).endswith("; or leave it out: --skip-app api")
    words = ("app", "import", source, "--all", "--skip-app", "api")
    said = ucp(workspace, *words, "--dry-run", code=1)
    assert "next: to add the others only: --skip-app bad" in said
    before = everything(workspace)
    for started in (False, True):
        if started:
            Workspace.at(workspace).gitops("demo").core.mkdir(parents=True)
            ucp(workspace, "app", "add", "first", "--image", "a/b", "--tag", "1")
            before = everything(workspace)
        with pytest.raises(UcpError, match="labels app=nothing") as refused:
            ucp(workspace, *words)
        assert str(refused.value.next).endswith("; or leave it out: --skip-app bad")
        assert everything(workspace) == before
    with pytest.raises(UsageError, match="leaves out all"):
        ucp(workspace, *words, "--skip-app", "bad", "--skip-app", "web")
    with pytest.raises(UsageError, match="unknown app 'none'; available: bad, web"):
        ucp(workspace, *words, "--skip-app", "none")
    ucp(workspace, *words, "--skip-app", "bad")
    assert apps_of(workspace)[-1] == "web"


def test_values_files_of_another_repository_are_imported(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    other = write(tmp_path / "other", {"web.yaml": "replicas: 7\n"})
    commit(other)
    application = f"""\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: web}}
spec:
  sources:
    - {{repoURL: "https://git.example.org/x", path: chart, helm: {{valueFiles: [$other/web.yaml]}}}}
    - {{repoURL: "{other.as_uri()}", ref: other}}
  destination: {{namespace: web}}
"""
    files = {f"chart/{path}": text for path, text in web_files("1.0.0").items()}
    source = str(write(tmp_path / "theirs", {**files, "argo/web.yaml": application}))
    said = ucp(workspace, "app", "import", source, "--app", "web", "--rename", "web=site")
    assert f"the default branch of {other.as_uri()} is commit" in said
    assert (workspace / "manifests" / "site-values-prod.yaml").read_text() == "replicas: 7\n"


@pytest.mark.parametrize(
    "words",
    [
        ("import", "http://me:s3cr3t@127.0.0.1:9/r", "--all"),
        ("add", "web", "http://s3cr3t@127.0.0.1:9/r.git"),
        ("add", "web", "--chart", "oci://me:s3cr3t@127.0.0.1:9/web", "--version", "1.0.0"),
    ],
)
def test_password_in_a_url_is_given_to_no_other_program(
    workspace: Path, words: tuple[str, ...]
) -> None:
    """Every user of the machine can read the arguments of git and helm."""
    with pytest.raises(UsageError, match="contains a user or password") as caught:
        ucp(workspace, "app", *words)
    assert "s3cr3t" not in str(caught.value)


def test_chart_that_needs_values_is_reported_with_the_command_that_sets_them(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    files = {f"charts/web/{path}": text for path, text in web_files("1.0.0").items()}
    files["charts/web/templates/a.yaml"] = '{{ required "a password is needed" .Values.password }}'
    source = str(write(tmp_path / "theirs", files))
    with pytest.raises(UcpError, match="a password is needed") as failed:
        ucp(workspace, "app", "import", source, "--all")
    command = f"ucp app add web {source}/charts/web --values FILE"
    assert str(failed.value.next).startswith(command)


def test_advice_for_charts_and_single_files_names_commands(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    elsewhere = {"templates/role.yaml": "kind: Role\nmetadata: {name: a, namespace: default}\n"}
    files = {f"web/{path}": text for path, text in (web_files("1.0.0") | elsewhere).items()}
    files |= {"none/Chart.yaml": "apiVersion: v2\nname: none\nversion: 1.0.0\n"}
    files |= {"kit/web.yaml": DEPLOYMENT, "kit/other.yaml": "kind: {{ .kind }}: x\n"}
    source = write(tmp_path / "theirs", files)
    with pytest.raises(UsageError, match="namespace default") as refused:
        ucp(workspace, "app", "import", str(source / "web"), "--dry-run")
    assert f"if it has one: ucp app add web {source / 'web'}" in str(refused.value.next)
    assert " --values FILE; objects" in str(refused.value.next)
    said = ucp(workspace, "app", "add", "none", str(source / "none"), "--dry-run")
    assert "none: its chart renders no objects; if it needs values" in said
    with pytest.raises(UsageError, match="not valid YAML") as refused:
        ucp(workspace, "app", "add", "kit", str(source / "kit"))
    assert str(refused.value.next).endswith("another folder or file: ucp app add NAME FOLDER|FILE")


def test_choices_without_a_flag_are_asked_for(
    workspace: Path, tmp_path: Path, toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which apps, the mapping of environments, and what an app needs beyond its namespace."""
    folder = theirs(tmp_path / "theirs")
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: web}\n"
    write(folder, {"base/web/web.yaml": f"{DEPLOYMENT}---\n{role}rules: []\n"})
    answers = {"production": "prod", "staging": "stage"}
    asked: list[str] = []
    allowed = False

    def choose_many(question: str, choices: Mapping[str, str]) -> list[str]:
        asked.append(question)
        assert choices["web"] == "web: kustomize, base/web"
        return ["web"]

    def choose_one(question: str, choices: Mapping[str, str]) -> str:
        asked.append(question)
        theirs = next(each for each in answers if each in question)
        assert answers[theirs] in choices
        return answers[theirs]

    def confirm(question: str, *, default: bool = True) -> bool:
        asked.append(question)
        assert not default
        return allowed

    monkeypatch.setattr(questions, "can_ask", lambda: True)
    for each in (choose_many, choose_one, confirm):
        monkeypatch.setattr(questions, each.__name__, each)
    before = everything(workspace)
    with pytest.raises(UcpError, match="this was not allowed"):
        ucp(workspace, "app", "import", str(folder))
    assert everything(workspace) == before
    assert [each.partition(":")[0] for each in asked] == [
        "Apps to add",
        "Environment of ucp.yaml for 'production'",
        "Environment of ucp.yaml for 'staging'",
        "web",
    ]
    allowed = True
    answers["production"] = ""
    ucp(workspace, "app", "import", str(folder))
    web = load(workspace / "ucp.yaml").spec.apps[-1]
    assert (web.name, web.cluster_kinds) == ("web", ("ClusterRole",))
    # production is skipped, so prod uses the base.
    assert web.overlays == {"stage": "overlays/staging/web", "prod": "base/web"}


def test_skipped_environment_is_not_used_by_its_name(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    files = {
        "web/base/kustomization.yaml": "resources: [web.yaml]\n",
        "web/base/web.yaml": DEPLOYMENT,
        "web/overlays/stage/kustomization.yaml": "resources: [../../base]\nnamePrefix: s-\n",
        "web/overlays/prod/kustomization.yaml": "resources: [../../base]\nnamePrefix: p-\n",
    }
    files |= {f"shop/{path}": text for path, text in web_files("1.0.0", name="shop").items()}
    files |= {
        f"shop/values-{each}.yaml": f"replicas: {n}\n" for n, each in ((2, "stage"), (9, "prod"))
    }
    commit(write(tmp_path / "theirs", files))
    url = (tmp_path / "theirs").as_uri()
    ucp(workspace, "app", "import", url, "--all", "--skip-env", "prod")
    tree = rendered(workspace)
    assert "../../base/overlays/stage\n" in tree["apps/web/overlays/stage/kustomization.yaml"]
    assert "../../base/base\n" in tree["apps/web/overlays/prod/kustomization.yaml"]
    assert "replicas: 2" in tree["apps/shop/overlays/stage/values-stage.yaml"]
    assert "replicas" not in tree["apps/shop/overlays/prod/values-prod.yaml"]
    ucp(workspace, "check")


def test_helm_releases_of_flux_are_imported_as_kustomize_builds_them(
    tmp_path: Path, toolbox: Toolbox
) -> None:
    head = "apiVersion: {}.toolkit.fluxcd.io/v1\nkind: {}\nmetadata: {{name: {}}}\n"
    release = head.format("helm", "HelmRelease", "web")
    files = {
        "apps/base/kustomization.yaml": "resources: [source.yaml, release.yaml]\n",
        "apps/base/source.yaml": head.format("source", "HelmRepository", "charts")
        + "spec: {url: 'https://charts.example.org'}\n",
        "apps/base/release.yaml": release
        + "spec:\n  chart:\n    spec:\n      chart: web\n      version: 1.x\n"
        "      sourceRef: {kind: HelmRepository, name: charts}\n"
        "  valuesFrom: [{kind: ConfigMap, name: web-values}]\n  values: {host: '${HOST}'}\n",
        "apps/stage/kustomization.yaml": "resources: [../base]\npatches: [{path: patch.yaml}]\n"
        "configMapGenerator: [{name: web-values, files: [values.yaml]}]\n"
        "configurations: [names.yaml]\n",
        "apps/stage/patch.yaml": release + "spec: {values: {replicas: 2}}\n",
        "apps/stage/values.yaml": "more: true\n",
        "apps/stage/names.yaml": "nameReference:\n  - kind: ConfigMap\n    version: v1\n"
        "    fieldSpecs: [{path: spec/valuesFrom/name, kind: HelmRelease}]\n",
        "parts/claim/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\n"
        "kind: Component\nresources: [claim.yaml]\n",
        "parts/claim/claim.yaml": "apiVersion: v1\nkind: PersistentVolumeClaim\n"
        "metadata: {name: '${NAME}'}\nspec: {accessModes: ['${MODE:=ReadWriteOnce}']}\n",
        "flux/apps.yaml": head.format("kustomize", "Kustomization", "apps")
        + "spec:\n  path: ./apps/stage\n  targetNamespace: shop\n"
        "  components: [../../parts/claim]\n"
        "  postBuild: {substitute: {HOST: web.example.org, NAME: web}}\n",
    }
    folder_tree = folder_tree_of(write(tmp_path / "theirs", files))
    build = builder(lambda: toolbox.path("kustomize"))
    web, more = detect(folder_tree, title="theirs", tools=ImportTools(build=build)).findings
    assert web.remote == RemoteSource("https://charts.example.org", "1.x", "web")
    assert web.values == {"stage": b"more: true\nhost: web.example.org\nreplicas: 2\n"}
    assert (web.namespace, more.namespace) == ("shop", "shop")
    folder = "apps/stage/beside-releases/stage"
    assert (more.name, more.overlays) == ("web-more", {"stage": folder})
    claim = more.generated[f"{folder}/objects.yaml"].decode()
    assert "name: web\n" in claim and "- ReadWriteOnce" in claim
    assert "web-values" not in claim


def test_a_kustomization_of_flux_includes_no_folder_of_this_machine(
    tmp_path: Path, toolbox: Toolbox
) -> None:
    """Under a key whose case only kustomize ignores."""
    write(tmp_path, {"kustomization.yaml": "configMapGenerator: [{name: x, literals: [a=s3]}]"})
    build = builder(lambda: toolbox.path("kustomize"))
    entry = "/".join([*[".."] * 20, *tmp_path.parts[1:]])
    with pytest.raises(UsageError, match=r"kustomization.yaml includes .* outside"):
        build({"a/kustomization.yaml": f"Resources: ['{entry}']".encode()}, "a")


def test_go_templates_of_application_sets_are_filled_by_helm(
    tmp_path: Path, toolbox: Toolbox
) -> None:
    template = """\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: all}
spec:
  goTemplate: true
  goTemplateOptions: [missingkey=error]
  generators: [{git: {repoURL: cnoe://, files: [{path: apps/*/app.yaml}]}}]
  template:
    metadata: {name: '{{ normalize .path.basename }}'}
    spec:
      source: {repoURL: cnoe://, path: '../{{ .path.path }}'}
      destination: {namespace: '{{ if hasKey . "space" }}{{ .space }}{{ else }}all{{ end }}'}
  templatePatch: |
    {{- $differences := dig "differences" (list) . }}
    {{- if $differences }}
    spec:
      ignoreDifferences:
        {{- range $each := $differences }}
        - kind: {{ $each.kind | quote }}
        {{- end }}
    {{- end }}
"""
    files = {
        "sets/all.yaml": template,
        "apps/Web_1/app.yaml": "space: front\ndifferences: [{kind: Deployment}]\n",
        "apps/Web_1/web.yaml": DEPLOYMENT,
        "apps/shop/app.yaml": "size: 2\n",
        "apps/shop/web.yaml": DEPLOYMENT,
    }
    folder_tree = folder_tree_of(write(tmp_path / "theirs", files))
    fill_go = filler(lambda: toolbox.path("helm"))
    found = detect(folder_tree, title="theirs", tools=ImportTools(fill_go=fill_go))
    assert not found.refusals
    shop, web = found.findings
    assert (shop.name, shop.path, shop.namespace) == ("shop", "apps/shop", "all")
    assert (web.name, web.path, web.namespace) == ("web-1", "apps/Web_1", "front")
    assert "ignoreDifferences" in web.notes[0]
    assert not any("ignoreDifferences" in each for each in shop.notes)
    write(tmp_path / "theirs", {"apps/shop/app.yaml": "differences: [1]\n"})
    [refused] = detect(folder_tree, title="theirs", tools=ImportTools(fill_go=fill_go)).refusals
    assert "its template can't be filled" in refused.reason and "kind" in refused.reason


def test_chart_of_applications_is_rendered_for_the_pinned_kubernetes(
    tmp_path: Path, toolbox: Toolbox
) -> None:
    """A build of helm from its sources has no version of its own to compare with."""
    template = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source: {repoURL: cnoe://, path: apps/web}
  destination: {namespace: '{{ .Values.space }}'}
"""
    files = {
        "all/Chart.yaml": "{apiVersion: v2, name: all, version: 1.0.0, kubeVersion: '>=1.31.0'}\n",
        "all/values.yaml": "space: front\n",
        "all/templates/web.yaml": template,
        "apps/web/web.yaml": DEPLOYMENT,
    }
    folder_tree = folder_tree_of(write(tmp_path / "theirs", files))
    render = renderer(folder_tree, lambda: toolbox.path("helm"))
    assert "namespace: 'front'" in render("all", None)


def test_many_environments_are_named_by_a_few_flags(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    files = {"web/base/kustomization.yaml": "resources: [web.yaml]\n"}
    files["web/base/web.yaml"] = DEPLOYMENT
    for number in range(30):
        path = f"web/overlays/v{number:02}/kustomization.yaml"
        files[path] = "resources: [../../base]\n"
    with pytest.raises(UcpError, match="v11 and 18 more; it has stage, prod") as failed:
        ucp(workspace, "app", "import", str(write(tmp_path / "theirs", files)), "--all")
    assert "leave out all others: --map v00=stage --skip-env '*'" in str(failed.value.next)
    assert "--app NAME" in str(failed.value.next) and "v01" not in str(failed.value.next)
    source, skip = str(tmp_path / "theirs"), ("--skip-env", "*", "--map", "v11=prod")
    said = ucp(workspace, "app", "import", source, "--all", "--dry-run", *skip)
    assert "web: stage has no overlay of its own and uses the common one" in said
    assert "prod has no overlay" not in said
