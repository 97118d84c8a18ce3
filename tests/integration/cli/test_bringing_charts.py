"""`ucp app add` with charts: of folders, repositories and registries."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from k8s_ucp.cli.app_sources import fetch_chart
from k8s_ucp.cli.command import Invocation
from k8s_ucp.errors import UcpError
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.promotion.targets.chart import ChartMissing
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import Chart, load
from k8s_ucp.workspace import Workspace, cache_folder
from tests.chart_servers import PASSWORD, USER, chart_servers, web_chart, web_files
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


def test_chart_at_the_top_of_a_clone_is_added(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    hidden = {".motd": "", ".other": "", ".argocd-source.yaml": "helm: {releaseName: a}\n"}
    hidden |= {"files/.rc": "", "files/in/.rc": ""}
    reading = {"templates/motd.yaml": '# {{ .Files.Get ".motd" }} {{ .Files.Glob "files/*" }}\n'}
    theirs = write(tmp_path / "theirs", {**web_files("1.2.3"), **reading, **hidden})
    commit(theirs)
    for source in (str(theirs), theirs.as_uri()):
        said = ucp(workspace, "app", "add", "web", source, "--dry-run")
        assert "left out .argocd-source.yaml, settings of Argo CD: write what it sets" in said
        assert "overlays/prod/.motd (new)" in said and "overlays/prod/.other" not in said
        assert "overlays/prod/files/.rc (new)" in said and "files/in/.rc" not in said
    assert "Helm chart web, version 1.2.3" in ucp(workspace, "app", "add", "web", str(theirs))
    assert "apps/web/overlays/prod/Chart.yaml" in rendered(workspace)


def test_links_to_folders_are_followed_in_a_chart(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    files = {f"charts/web/{path}": text for path, text in web_files("1.2.3").items()}
    files["charts/web/charts/kinds/Chart.yaml"] = "apiVersion: v2\nname: kinds\nversion: 0.1.0\n"
    files["charts/web/files/kinds/more.yaml"] = "# more\n"
    theirs = write(tmp_path / "theirs", {**files, "shared/all.yaml": "# all\n"})
    for link, target in (
        ("charts/kinds/crds", "../../files/kinds"),
        ("templates/shared", "../../../shared"),
        ("files/upwards", "../.."),
    ):
        (theirs / "charts/web" / link).symlink_to(target)
    commit(theirs)
    ucp(workspace, "app", "add", "folder", str(theirs / "charts/web"))
    ucp(workspace, "app", "add", "url", f"{theirs.as_uri()}//charts/web")
    tree = rendered(workspace)
    for app in ("folder", "url"):
        prefix = f"apps/{app}/overlays/stage/"
        assert tree[f"{prefix}charts/kinds/crds/more.yaml"] == "# more\n"
        assert tree[f"{prefix}templates/shared/all.yaml"] == "# all\n"
        assert not [each for each in tree if "upwards" in each]


def test_unknown_version_of_a_chart_in_git_or_a_folder_names_what_to_change(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    theirs = write(tmp_path / "theirs", web_files("1.2.3"))
    commit(theirs)
    ucp(workspace, "app", "add", "copied", str(theirs))
    ucp(workspace, "app", "add", "cloned", theirs.as_uri())
    for app, change in (
        ("copied", "copy that version of the chart to manifests/copied, then ucp start"),
        ("cloned", "set `revision` of cloned in ucp.yaml to a commit of "),
    ):
        missing = ChartMissing(app, "web", "9.9.9", repo="")
        with pytest.raises(UcpError, match=r"has the chart web 9\.9\.9") as caught:
            fetch_chart(Invocation(folder=workspace), missing, own=True)
        assert (caught.value.next or "").startswith(change)


@pytest.mark.parametrize(
    ("kind", "private"),
    [
        pytest.param("http", False, marks=pytest.mark.slow, id="http-public"),
        pytest.param("http", True, id="http-private"),
        pytest.param("oci", False, id="oci-public"),
        pytest.param("oci", True, marks=pytest.mark.slow, id="oci-private"),
    ],
)
def test_charts_of_repositories_and_registries_are_added(
    workspace: Path, toolbox: Toolbox, kind: str, private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (workspace / "ucp.yaml").read_text()
    (workspace / "ucp.yaml").write_text(f"{text}  credentials:\n    charts: {{env: CHARTS}}\n")
    monkeypatch.setenv("CHARTS", json.dumps({"username": USER, "password": PASSWORD}))
    versions = {("web", each): web_chart(each) for each in ("1.0.0", "1.2.0")}
    auth = ["--auth", "charts"] if private else []
    with chart_servers(versions, private=private) as served:
        where = ["--chart", "web", "--repo", served.http]
        if kind == "oci":
            where = ["--chart", f"{served.oci}/web"]
        said = ucp(workspace, "app", "add", "newest", *where, *auth)
        one = "1.0.x" if kind == "http" else "1.0.0"
        ucp(workspace, "app", "add", "older", *where, "--version", one, *auth)
        with pytest.raises(UcpError, match=r"charts/web: .*(not found|failed)"):
            ucp(workspace, "app", "add", "none", *where, "--version", "9.9.9", *auth)
        if private:
            with pytest.raises(UcpError, match=r"401|credential"):
                ucp(workspace, "app", "add", "none", *where)
        url = served.http if kind == "http" else served.oci
    assert "newest: Helm chart web, version 1.2.0" in said
    apps = {each.name: each.chart for each in load(workspace / "ucp.yaml").spec.apps}
    named = "charts" if private else None
    for app_name, version in (("newest", "1.2.0"), ("older", "1.0.0")):
        digest = f"sha256:{hashlib.sha256(versions['web', version]).hexdigest()}"
        assert apps[app_name] == Chart(
            repo=url, name="web", version=version, digest=digest, auth=named
        )
    # The servers are stopped now: a version is fetched only once.
    tree = rendered(workspace)
    assert "version: 1.0.0" in tree["apps/older/overlays/prod/Chart.yaml"]
    ucp(workspace, "check")
    assert not any(PASSWORD in text for text in tree.values())


@pytest.mark.parametrize("kind", ["http", pytest.param("oci", marks=pytest.mark.slow)])
def test_chart_version_that_is_published_again_is_refused(
    workspace: Path, tmp_path: Path, toolbox: Toolbox, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "tools").symlink_to(cache_folder() / "tools")
    monkeypatch.setenv("UCP_CACHE_DIR", str(cache))
    first = {("web", "1.0.0"): web_chart("1.0.0")}
    with chart_servers(first) as served:
        where = ["--chart", "web", "--repo", served.http, "--version", "1.0.0"]
        if kind == "oci":
            where = ["--chart", f"{served.oci}/web", "--version", "1.0.0"]
        ucp(workspace, "app", "add", "web", *where)
        ucp(workspace, "check")
        served.charts["web", "1.0.0"] = web_chart("1.0.0", more={"templates/evil.yaml": ""})
        before = everything(workspace)
        with pytest.raises(UcpError, match="published again with other content"):
            ucp(workspace, "app", "add", "other", *where)
        assert everything(workspace) == before
        # The first version is in this cache; with an empty one it must be fetched.
        ucp(workspace, "check")
        shutil.rmtree(cache / "sources")
        with pytest.raises(UcpError, match=r"expected\s+sha256:") as refused:
            ucp(workspace, "check")
        assert "set `digest` of the chart" in str(refused.value.next)
        served.charts.update(first)
        ucp(workspace, "check")


def test_values_that_set_a_version_are_reported_as_helm_renders_them(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    """`release` is no usual name of a version, and `api.image.tag` sets none."""
    files = web_files("1.0.0")
    files["values.yaml"] = (
        "replicas: 1\n"
        "image: {repo: example.org/web, version: 1.0.0}\n"
        "worker: {release: 2.0.0, from: 2.0.0}\n"
        "api: {image: {name: example.org/api, tag: 3.0.0}}\n"
    )
    side = web_files("2.0.0", name="side")
    side["templates/deployment.yaml"] = side["templates/deployment.yaml"].replace(
        "name: {{ .Release.Name }}\n", "name: {{ .Release.Name }}-side\n"
    )
    side["values.yaml"] = 'replicas: 1\nimage: {repository: example.org/side, tag: "4.0.0"}\n'
    files |= {f"charts/side/{path}": text for path, text in side.items()}
    files["Chart.yaml"] += "dependencies: [{name: side, alias: other, version: 2.0.0}]\n"
    image = 'image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"'
    assert image in files["templates/deployment.yaml"]
    files["templates/deployment.yaml"] = files["templates/deployment.yaml"].replace(
        image,
        'image: "{{ .Values.image.repo }}:{{ .Values.image.version }}"\n'
        '        - {name: worker, image: "example.org/worker:{{ .Values.worker.release }}"}\n'
        '        - {name: api, image: "example.org/api:9.9.9"}',
    )
    said = ucp(workspace, "app", "add", "web", str(write(tmp_path / "web", files)), "--dry-run")
    words = " ".join(said.split())
    assert (
        "web: `ucp promote` does not find the version of example.org/side, example.org/worker; "
        "name it in apps/web/.promotion.yaml: targets: [{image: example.org/side, path: "
        "other.image.tag}, {image: example.org/web, path: image.version}, "
        "{image: example.org/worker, path: worker.release}]"
    ) in words
    assert "can't change example.org/api: no value of the chart is its version" in words


def test_values_are_reported_although_their_schema_refuses_more_tags(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    files = web_files("1.0.0")
    files["values.yaml"] = "image: {repository: example.org/web}\nreplicas: 1\nrelease: 2.0.0\n"
    files["values.schema.json"] = json.dumps(
        {"properties": {"image": {"properties": {"repository": {}}, "additionalProperties": False}}}
    )
    files["templates/deployment.yaml"] = files["templates/deployment.yaml"].replace(
        "{{ .Values.image.tag }}", "{{ .Values.release }}"
    )
    said = ucp(workspace, "app", "add", "web", str(write(tmp_path / "web", files)), "--dry-run")
    assert "targets: [{image: example.org/web, path: release}]" in " ".join(said.split())


def test_values_files_of_environments_and_generated_passwords_are_reported(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: KIND}\nstringData: {a: {{ VALUE }}}\n"
    files = {
        **web_files("1.0.0"),
        "values-prod.yaml": "replicas: 5\n",
        "templates/fixed.yaml": secret.replace("KIND", "fixed").replace("VALUE", '"a"'),
        "templates/new.yaml": secret.replace("KIND", "new").replace("VALUE", "randAlphaNum 9"),
    }
    said = ucp(workspace, "app", "add", "web", str(write(tmp_path / "web", files)), "--dry-run")
    assert "web: values files of environments: values-prod.yaml for prod; none for stage" in said
    assert "renders its chart, Secret/new is generated anew" in said


def test_dependencies_of_a_chart_are_added_with_it(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    with chart_servers({("web", "1.0.0"): web_chart("1.0.0")}) as served:
        chart = f"""\
apiVersion: v2
name: shop
version: 0.1.0
dependencies:
  - {{name: web, version: 1.0.0, repository: "{served.http}"}}
  - {{name: side, version: 2.0.0, repository: "file://../side"}}
"""
        write(tmp_path / "theirs" / "shop", {"Chart.yaml": chart})
        side = web_files("2.0.0", name="side")
        template = "templates/deployment.yaml"
        side[template] = side[template].replace("{{ .Release.Name }}", "{{ .Release.Name }}-side")
        write(tmp_path / "theirs" / "side", side)
        commit(tmp_path / "theirs")
        ucp(workspace, "app", "add", "shop", "--repo", str(tmp_path / "theirs"), "--path", "shop")
        out = workspace / "out"
        ucp(workspace, "render", "--out", str(out))
    shop = out / "apps/apps/shop/overlays/stage"
    there = sorted(each.name for each in (shop / "charts").iterdir())
    assert there == ["side-2.0.0.tgz", "web-1.0.0.tgz"]
    # With the times that helm writes, each render would be another one.
    with tarfile.open(shop / "charts/side-2.0.0.tgz") as packed:
        members = packed.getmembers()
    assert "side/Chart.yaml" in {each.name for each in members}
    assert {each.mtime for each in members} == {0}
    assert 'generated: "1970-01-01T00:00:00Z"' in (shop / "Chart.lock").read_text()


def test_push_with_a_chart_is_checked(workspace: Path, tmp_path: Path, toolbox: Toolbox) -> None:
    gitops = Workspace.at(workspace).gitops("demo")
    gitops.core.mkdir(parents=True)
    folder = str(write(tmp_path / "chart", web_files("1.0.0")))
    ucp(workspace, "app", "add", "first", "--image", "a/b", "--tag", "1")
    ucp(workspace, "app", "add", "web", "--path", folder)
    files = Repository(gitops.apps_remote).read("main")
    assert files["apps/web/overlays/prod/Chart.yaml"] == web_files("1.0.0")["Chart.yaml"].encode()
    listed = json.loads(ucp(workspace, "app", "list", "-o", "json"))
    assert [each["name"] for each in listed] == ["echo", "first", "web"]
    assert listed[-1]["versions"] == {"stage": ["web:1.0.0"], "prod": ["web:1.0.0"]}
    ucp(workspace, "app", "remove", "web", "--yes")
    assert not any("/web/" in each for each in Repository(gitops.apps_remote).read("main"))
    assert os.listdir(workspace / "manifests") == ["web"]


@pytest.mark.slow
def test_promoted_chart_version_and_tag_survive_later_renders(
    workspace: Path, toolbox: Toolbox
) -> None:
    gitops = Workspace.at(workspace).gitops("demo")
    gitops.core.mkdir(parents=True)

    def files(env: str) -> dict[str, str]:
        folder = f"apps/web/overlays/{env}/"
        found = Repository(gitops.apps_remote).read("main")
        return {
            path.removeprefix(folder): content.decode()
            for path, content in found.items()
            if path.startswith(folder)
        }

    versions = {
        ("web", "1.0.0"): web_chart("1.0.0", more={"templates/old.yaml": "# old\n"}),
        ("web", "1.2.0"): web_chart("1.2.0", more={"templates/new.yaml": "# new\n"}),
    }
    with chart_servers(versions) as served:
        where = ["--repo", served.http, "--version", "1.0.0"]
        ucp(workspace, "app", "add", "first", "--image", "a/b", "--tag", "1")
        ucp(workspace, "app", "add", "web", "--chart", "web", *where)
        before = files("stage")
        said = ucp(workspace, "promote", "web", "--env", "stage", "--chart-version", "1.2.0")
        assert "1.0.0 -> 1.2.0" in said
    said = ucp(workspace, "promote", "web", "--env", "stage", "--tag", "2.0.0")
    assert "image.tag in values-stage.yaml" in said
    ucp(workspace, "promote", "web", "--env", "prod", "--chart-version", "1.2.0")
    said = ucp(workspace, "promote", "web", "--env", "prod", "--from", "stage")
    assert "web in prod: 1.0.0 -> 2.0.0" in said, "and nothing of the chart, which is there"
    assert "version in Chart.yaml" not in said
    # A later render and push keeps what was promoted.
    ucp(workspace, "app", "add", "second", "--image", "a/b", "--tag", "1")
    ucp(workspace, "check")
    for env in ("stage", "prod"):
        found = files(env)
        assert "version: 1.2.0" in found["Chart.yaml"]
        assert "templates/new.yaml" in found and "templates/old.yaml" not in found
        assert found[f"values-{env}.yaml"].endswith("image:\n  tag: 2.0.0\n")
    told = json.loads(ucp(workspace, "history", "web", "--env", "stage", "-o", "json"))
    assert [(each["kind"], each["to"]) for each in told] == [
        ("promote", "2.0.0"),
        ("promote", "1.2.0"),
        ("edit", "1.0.0"),
    ]
    ucp(workspace, "rollback", "web", "--env", "stage", "--to", told[-1]["commit"])
    after = files("stage")
    assert "tag: 1.0.0" in after["values-stage.yaml"]
    own = {".promotion.yaml": "", "values-stage.yaml": ""}
    assert {**after, **own} == {**before, **own}


def test_chart_dependency_of_another_version_is_corrected_in_the_chart(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    chart = "apiVersion: v2\nname: {}\nversion: 1.0.0\n"
    needs = "dependencies: [{name: web, version: 2.0.0, repository: file://../web}]\n"
    files = {"all/Chart.yaml": chart.format("all") + needs, "web/Chart.yaml": chart.format("web")}
    folder = write(tmp_path / "theirs", files) / "all"
    with pytest.raises(UcpError, match="can't get a valid version") as error:
        ucp(workspace, "app", "add", "all", str(folder))
    assert str(error.value.next).startswith("correct the versions of `dependencies`")


def test_chart_dependency_outside_of_the_folder_is_reported(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    """For a folder in no git repository, files up to its parent folder are read."""
    chart = "apiVersion: v2\nname: all\nversion: 1.0.0\n"
    needs = "dependencies: [{name: web, version: 1.0.0, repository: file://../../web/chart}]\n"
    files = {"src/all/chart/Chart.yaml": chart + needs, "src/web/chart/Chart.yaml": chart}
    folder = write(tmp_path / "theirs", files) / "src" / "all" / "chart"
    before = everything(workspace)
    with pytest.raises(UcpError, match=r"depends on file://../../web/chart") as error:
        ucp(workspace, "app", "add", "all", str(folder))
    assert "from a clone of its git repository" in str(error.value.next)
    assert everything(workspace) == before
    with pytest.raises(UcpError, match="can't be named 'traefik'") as error:
        ucp(workspace, "app", "add", "traefik", str(folder))
    assert error.value.next == "choose another name, such as my-traefik"


def test_chart_in_a_kustomization_is_reported_with_the_command_that_adds_it(
    workspace: Path, tmp_path: Path, toolbox: Toolbox
) -> None:
    chart = "name: redis, repo: 'https://charts.example.org', version: 1.2.3, releaseName: cache"
    files = {
        "kustomization.yaml": "resources: [web.yaml]\n"
        f"helmCharts: [{{{chart}, valuesFile: v.yaml}}]\n",
        "web.yaml": DEPLOYMENT,
        "v.yaml": "a: 1\n",
    }
    source = write(tmp_path / "web", files)
    with pytest.raises(UcpError, match=r"inflates the chart redis \(helmCharts\)") as failed:
        ucp(workspace, "app", "add", "web", str(source))
    command = "ucp app add cache --chart redis --repo https://charts.example.org --version 1.2.3"
    assert f"({command} --values FILE)" in str(failed.value.next)
    own = "resources: [web.yaml]\nhelmGlobals: {chartHome: ours}\nhelmCharts: [{name: redis}]\n"
    write(source, {"kustomization.yaml": own})
    with pytest.raises(UcpError, match=r"inflates the chart redis \(helmCharts\)") as failed:
        ucp(workspace, "app", "add", "web", str(source))
    assert "(ucp app add redis ours/redis; if it is a .tgz, unpack it first)" in str(
        failed.value.next
    )
    older = (
        "{chartName: redis, chartRepoUrl: 'https://charts.example.org', chartVersion: 1.2.3, "
        "releaseName: cache, values: v.yaml}"
    )
    text = f"resources: [web.yaml]\nhelmChartInflationGenerator: [{older}]\n"
    write(source, {"kustomization.yaml": text})
    with pytest.raises(UcpError, match=r"inflates the chart redis \(helmCharts\)") as failed:
        ucp(workspace, "app", "import", str(source), "--app", "web")
    assert f"({command} --values FILE)" in str(failed.value.next)
