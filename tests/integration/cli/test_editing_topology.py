"""`ucp env` and `ucp app`: the file, the repositories, and what people added there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from k8s_ucp.cli.main import app
from k8s_ucp.engine import journal
from k8s_ucp.errors import UcpError
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.publish.merge import Scope
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import App, Environment, default, load
from k8s_ucp.topology.text import topology_text
from k8s_ucp.workspace import GitopsFolder, Workspace, write_private_file
from tests.integration.gitops.conftest import World, world  # noqa: F401 (a fixture)
from tests.unit.gitops.topologies import demo


@pytest.fixture
def workspace(tmp_path: Path, home: Path) -> Path:
    (tmp_path / "ucp.yaml").write_text(topology_text(default()))
    return tmp_path


def ucp(workspace: Path, *words: str) -> str:
    """What a command says; it must succeed."""
    result = CliRunner().invoke(app, ["--workspace", str(workspace), *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_an_environment_comes_and_goes(workspace: Path) -> None:
    ucp(workspace, "env", "add", "eu", "--scoped")
    eu = load(workspace / "ucp.yaml").spec.environments[-1]
    assert (eu.name, eu.promotes_from, eu.access) == ("eu", "prod", "scoped")
    assert "# What you want" in (workspace / "ucp.yaml").read_text()
    listed = json.loads(ucp(workspace, "env", "list", "-o", "json"))
    assert [each["name"] for each in listed] == ["stage", "prod", "eu"]
    ucp(workspace, "env", "remove", "eu")
    assert load(workspace / "ucp.yaml") == default()


def test_environments_that_must_stay(workspace: Path) -> None:
    with pytest.raises(Exception, match="prod promotes from stage"):
        ucp(workspace, "env", "remove", "stage")
    ucp(workspace, "env", "add", "eu", "--protected")
    with pytest.raises(Exception, match="eu is protected"):
        ucp(workspace, "env", "remove", "eu")
    with pytest.raises(Exception, match="already exists"):
        ucp(workspace, "env", "add", "eu")


def test_apps_come_and_go(workspace: Path) -> None:
    ucp(workspace, "app", "add", "web", "--image", "a/b", "--tag", "1", "--host", "www")
    ucp(workspace, "app", "add", "quote")
    spec = load(workspace / "ucp.yaml").spec
    assert spec.apps[1] == App(name="web", image="a/b", tag="1", hosts=("www",))
    assert spec.apps[2].database == spec.databases[0].name == "quotes"
    listed = json.loads(ucp(workspace, "app", "list", "-o", "json"))
    assert [each["name"] for each in listed] == ["echo", "web", "quote"]
    ucp(workspace, "app", "remove", "web")
    assert [each.name for each in load(workspace / "ucp.yaml").spec.apps] == ["echo", "quote"]
    with pytest.raises(Exception, match="unknown app 'wbe'"):
        ucp(workspace, "app", "add", "wbe")


@pytest.mark.parametrize("committed", [False, True], ids=["in-the-topology", "by-a-commit"])
def test_an_app_that_would_stay_on_a_protected_environment_is_not_removed(
    workspace: Path, committed: bool
) -> None:
    """No commit deletes its Application there, and the core does not answer."""
    core = Workspace.at(workspace).gitops("demo").core
    if committed:
        overlay = core / "clusters" / "overlays" / "eu" / "kustomization.yaml"
        overlay.parent.mkdir(parents=True)
        overlay.write_text('labels: [{pairs: {k8s-ucp.io/protected: "true"}}]\n')
    else:
        ucp(workspace, "env", "add", "eu", "--protected")
        core.mkdir(parents=True)
    before = (workspace / "ucp.yaml").read_text()
    with pytest.raises(UcpError, match=r"delete echo from protected environments \(eu\)") as caught:
        ucp(workspace, "app", "remove", "echo")
    assert caught.value.next == "ucp start, then: ucp app remove echo"
    assert (workspace / "ucp.yaml").read_text() == before


def test_an_edit_beside_another_command_changes_nothing(workspace: Path) -> None:
    Workspace.at(workspace).gitops("demo").core.mkdir(parents=True)
    state = Workspace.at(workspace).state("demo")
    state.make()
    write_private_file(state.root / "ucp.yaml", "as it was started\n")
    before = (workspace / "ucp.yaml").read_text()
    with (
        journal.held(state.lock, "demo", "ucp start"),
        pytest.raises(UcpError, match="another command is running"),
    ):
        ucp(workspace, "env", "add", "eu")
    assert (workspace / "ucp.yaml").read_text() == before
    assert (state.root / "ucp.yaml").read_text() == "as it was started\n"


def test_edits_at_once_all_land(workspace: Path) -> None:
    names = [f"env-{number}" for number in range(3)]
    program = "import sys; from k8s_ucp.cli.main import run; sys.exit(run(sys.argv[1:]))"
    edits = [
        subprocess.Popen(
            [sys.executable, "-c", program, "--workspace", str(workspace), "env", "add", each],
            stderr=subprocess.PIPE,
        )
        for each in names
    ]
    for each in edits:
        _, said = each.communicate(timeout=120)
        assert each.returncode == 0, said
    found = {each.name for each in load(workspace / "ucp.yaml").spec.environments}
    assert found == {"stage", "prod", *names}
    assert not (workspace / ".ucp").exists()


def test_a_refused_edit_leaves_nothing(workspace: Path, toolbox: Toolbox) -> None:
    place = Workspace.at(workspace)
    gitops, started = place.gitops("demo"), place.state("demo").root / "ucp.yaml"
    gitops.core.mkdir(parents=True)
    ucp(workspace, "app", "add", "web", "--image", "a/b", "--tag", "1")
    before = (workspace / "ucp.yaml").read_text()
    assert started.read_text() == before
    trees = {each: Repository(each).tree_of("main") for each in _remotes(gitops)}
    hook = gitops.apps_remote / "hooks" / "pre-receive"
    ours = hook.read_text()
    hook.write_text("#!/bin/sh\necho no such app here >&2\nexit 1\n")
    with pytest.raises(UcpError, match="no such app here") as refused:
        ucp(workspace, "app", "add", "shop", "--image", "a/c", "--tag", "1")
    assert "completed steps are kept" not in str(refused.value)
    assert (workspace / "ucp.yaml").read_text() == started.read_text() == before
    assert {each: Repository(each).tree_of("main") for each in _remotes(gitops)} == trees
    hook.write_text(ours)
    ucp(workspace, "app", "add", "mail", "--image", "a/d", "--tag", "1")
    assert [each.name for each in load(workspace / "ucp.yaml").spec.apps] == ["echo", "web", "mail"]


def _remotes(gitops: GitopsFolder) -> tuple[Path, Path]:
    return gitops.core_remote, gitops.apps_remote


def test_what_leaves_takes_what_people_added_along(world: World) -> None:  # noqa: F811
    three = (*demo().spec.environments, Environment.model_validate({"name": "eu"}))
    two_apps = (*demo().spec.apps, App(name="web", image="a/b", tag="1"))
    world.start(environments=three, apps=two_apps)
    overlay = "apps/echo/overlays/eu/kustomization.yaml"
    world.edit("apps", overlay, "0.9.2", "0.9.3")
    world.push("apps", {"apps/echo/overlays/eu/mine.yaml": b"a: 1\n"})
    removed = Scope(frozenset(["eu"]), frozenset(["web"]))
    world.start(removed=removed)
    for name in ("core", "apps"):
        files = world.files(name)
        assert not [path for path in files if "/eu/" in path or "/web/" in path]
    assert b"eu" not in world.files("apps")["environments.yaml"]
    assert b"overlays/eu" not in world.files("core")["clusters/kustomization.yaml"]
    assert "apps/echo/overlays/stage/kustomization.yaml" in world.files("apps")
