"""`ucp env` and `ucp app`: ucp.yaml, the repositories, and what people added to them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from k8s_ucp import locks
from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.editing import topology_edit
from k8s_ucp.cli.editing.environments import and_rollouts
from k8s_ucp.cli.editing.topology_edit import edit_topology
from k8s_ucp.cli.main import app
from k8s_ucp.cli.topology_selection import STARTED
from k8s_ucp.engine import journal
from k8s_ucp.errors import UcpError
from k8s_ucp.git.failures import Declined
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.publish.merge import Scope
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import App, Environment, Topology, default, load
from k8s_ucp.topology.edit import with_item, without_item
from k8s_ucp.topology.text import topology_text
from k8s_ucp.workspace import GitopsFolder, Workspace, write_private_file
from tests.integration.gitops.conftest import Repositories, world  # noqa: F401 (a fixture)
from tests.unit.gitops.topologies import demo


@pytest.fixture
def workspace(tmp_path: Path, home: Path) -> Path:
    (tmp_path / "ucp.yaml").write_text(topology_text(default()))
    return tmp_path


def ucp(workspace: Path, *words: str) -> str:
    """Run a command, which must succeed, and return its output."""
    result = CliRunner().invoke(app, ["--workspace", str(workspace), *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_environment_is_added_and_removed(workspace: Path) -> None:
    ucp(workspace, "env", "add", "eu", "--scoped")
    eu = load(workspace / "ucp.yaml").spec.environments[-1]
    assert (eu.name, eu.promotes_from, eu.access) == ("eu", "prod", "scoped")
    assert "# What you want" in (workspace / "ucp.yaml").read_text()
    listed = json.loads(ucp(workspace, "env", "list", "-o", "json"))
    assert [each["name"] for each in listed] == ["stage", "prod", "eu"]
    assert ucp(workspace, "env", "list", "-o", "name") == "stage\nprod\neu\n"
    # Of a `ucp recreate` that was interrupted: it doesn't concern a later environment of this name.
    note = Workspace.at(workspace).state("demo").return_note("eu")
    note.parent.mkdir(parents=True)
    note.touch()
    ucp(workspace, "env", "remove", "eu")
    assert load(workspace / "ucp.yaml") == default()
    assert not note.exists()


def test_dry_run_of_a_new_environment_lists_files_and_changes_nothing(
    workspace: Path, toolbox: Toolbox
) -> None:
    before = sorted(workspace.rglob("*")), (workspace / "ucp.yaml").read_bytes()
    data = json.loads(ucp(workspace, "env", "add", "eu", "--dry-run", "-o", "json"))
    changes = {each["path"]: each["change"] for each in data["files"]}
    assert changes["core: clusters/overlays/eu/kustomization.yaml"] == "new"
    assert changes["core: clusters/kustomization.yaml"] == "changed"
    assert changes["apps: apps/echo/overlays/eu/kustomization.yaml"] == "new"
    assert data["refused"] == []
    assert (sorted(workspace.rglob("*")), (workspace / "ucp.yaml").read_bytes()) == before


def test_removing_an_app_says_that_its_database_stays(workspace: Path) -> None:
    for name in ("orders", "shop"):
        ucp(workspace, "app", "add", name, "--image", "a/b", "--tag", "1", "--database", "orders")
    assert "database" not in ucp(workspace, "app", "remove", "orders")
    assert "its database orders stays in ucp.yaml" in ucp(workspace, "app", "remove", "shop")


def test_env_add_says_that_a_start_is_needed_for_argo_rollouts(workspace: Path) -> None:
    plain = load(workspace / "ucp.yaml")
    assert and_rollouts("look", "prod", plain) == "look"
    file = workspace / "ucp.yaml"
    file.write_text(file.read_text().replace("spec:", "spec:\n  addons: {argo-rollouts: true}", 1))
    topology = load(file)
    assert and_rollouts("look", "prod", topology) == (
        "look; `ucp start` starts Argo Rollouts on it"
    )
    assert and_rollouts("run `ucp start`", "prod", topology) == "run `ucp start`"


def test_protected_or_required_environment_is_not_removed(workspace: Path) -> None:
    with pytest.raises(Exception, match="prod promotes from stage"):
        ucp(workspace, "env", "remove", "stage")
    ucp(workspace, "env", "add", "eu", "--protected")
    with pytest.raises(Exception, match="eu is protected"):
        ucp(workspace, "env", "remove", "eu")
    with pytest.raises(Exception, match="already exists"):
        ucp(workspace, "env", "add", "eu")


def test_apps_are_added_and_removed(workspace: Path) -> None:
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


def test_database_without_a_provider_uses_the_simulated_cloud(workspace: Path) -> None:
    file = workspace / "ucp.yaml"
    file.write_text(file.read_text() + "  clouds: {aws: {simulated: true}}\n")
    ucp(workspace, "app", "add", "quote")
    image = ("--image", "a/b", "--tag", "1")
    ucp(workspace, "app", "add", "web", *image, "--database", "web")
    ucp(workspace, "app", "add", "old", *image, "--database", "old", "--database-provider", "local")
    found = {each.name: each.provider for each in load(file).spec.databases}
    assert found == {"quotes": "aws", "web": "aws", "old": "local"}


@pytest.mark.parametrize("committed", [False, True], ids=["in-the-topology", "by-a-commit"])
def test_app_in_a_protected_environment_is_not_removed(workspace: Path, committed: bool) -> None:
    """No commit can delete its Application there, and the core doesn't answer."""
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


def test_edit_during_another_command_is_refused(workspace: Path) -> None:
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


@pytest.mark.parametrize(
    ("flags", "how"),
    [
        ([], "the core cluster is not running: its copies are deleted at the next start"),
        (["--retain"], "its copies are kept"),
    ],
)
def test_mirror_remove_says_what_becomes_of_the_copies(
    workspace: Path, flags: list[str], how: str
) -> None:
    ucp(workspace, "mirror", "add", "login", "--from", "a/b", "--to", "c", *flags)
    assert f"mirror login removed; {how}" in ucp(workspace, "mirror", "remove", "login")


def test_plan_for_a_stopped_environment_does_not_change_ucp_yaml(workspace: Path) -> None:
    plan = ("stop", "--env", "stage", "--plan", "-o", "json")
    actions = []
    for _ in range(2):
        actions.append(json.loads(ucp(workspace, *plan))["steps"][0]["action"])
        ucp(workspace, "stop", "--env", "stage", "--yes")
    assert actions == ["change", "keep"]


def test_mirror_into_a_namespace_of_no_app_is_noted(workspace: Path) -> None:
    add = ("mirror", "add", "login", "--from", "a/b", "--to")
    assert "the namespace ecko is of no app or team" in ucp(workspace, *add, "ecko")
    ucp(workspace, "mirror", "remove", "login")
    assert "note:" not in ucp(workspace, *add, "echo")


def test_edit_that_waits_for_another_one_claims_nothing_of_earlier_commits(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ucp app remove` edits twice, and pushes in between."""
    monkeypatch.setattr(topology_edit, "PATIENCE", 0.0)
    words = ["--workspace", str(workspace), "app", "remove", "echo"]
    with locks.folder_locked_within(workspace, 0):
        ended = CliRunner().invoke(app, words)
    assert isinstance(ended.exception, UcpError)
    # Not every file system reports the holder of a lock.
    who = "another command" if "another command" in ended.stderr else f"process {os.getpid()}"
    assert ended.stderr == f"waiting for {who}, which has locked {workspace}\n"
    assert ended.exception.message == f"{who} has kept {workspace} locked for 0 s"


def test_what_a_person_saves_during_an_edit_is_kept(workspace: Path) -> None:
    file = workspace / "ucp.yaml"

    def edit(text: str, path: Path) -> tuple[str, Topology]:
        path.write_text(f"{text}# saved by an editor\n")
        return with_item(text, "apps", {"name": "web", "image": "a/b", "tag": "1"}, path)

    before = file.read_text()
    with pytest.raises(UcpError, match="was changed while this command edited it"):
        edit_topology(Invocation(workspace), edit)
    assert file.read_text() == f"{before}# saved by an editor\n"


def test_edit_that_start_would_refuse_is_not_pushed(workspace: Path) -> None:
    """Before its first start, ucp.yaml may declare what only another machine can run."""
    ucp(workspace, "env", "add", "elsewhere", "--cluster", "eks")
    gitops = Workspace.at(workspace).gitops("demo")
    gitops.core.mkdir(parents=True)
    before = (workspace / "ucp.yaml").read_text()
    with pytest.raises(UcpError, match="the environment eu on eks needs") as refused:
        ucp(workspace, "env", "add", "eu", "--cluster", "eks")
    assert "elsewhere" not in str(refused.value), "what was wrong before is not the edit's"
    assert (workspace / "ucp.yaml").read_text() == before
    assert not gitops.core_remote.exists()


def test_environment_whose_cluster_cannot_be_created_here_is_refused_before_programs_are_installed(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gitops = Workspace.at(workspace).gitops("demo")
    gitops.core.mkdir(parents=True)
    before = (workspace / "ucp.yaml").read_text()
    docker = workspace / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2\nexit 1\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{docker.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("KIND_EXPERIMENTAL_PROVIDER", "docker")
    monkeypatch.setenv("UCP_CACHE_DIR", str(workspace / "cache"))
    with pytest.raises(UcpError, match="docker"):
        ucp(workspace, "env", "add", "eu", "--cluster", "kind")
    assert (workspace / "ucp.yaml").read_text() == before
    assert not gitops.core_remote.exists()
    assert not (workspace / "cache" / "tools").exists()


def test_concurrent_edits_are_all_applied(workspace: Path) -> None:
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


def test_dry_runs_of_one_workspace_take_turns(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source elsewhere is copied into the workspace: the first to end would delete it."""
    monkeypatch.setattr(topology_edit, "PATIENCE", 0.1)
    with (
        locks.folder_locked(workspace),
        pytest.raises(UcpError, match=r"has kept .* locked"),
    ):
        ucp(workspace, "app", "add", "web", "--image", "a/b", "--tag", "1", "--dry-run")


def test_refused_edit_leaves_nothing_behind(workspace: Path, toolbox: Toolbox) -> None:
    place = Workspace.at(workspace)
    gitops, started = place.gitops("demo"), place.state("demo").root / "ucp.yaml"
    gitops.core.mkdir(parents=True)
    ucp(workspace, "app", "add", "web", "--image", "a/b", "--tag", "1")
    before = (workspace / "ucp.yaml").read_text()
    assert started.read_text() == before
    refs = _refs(gitops)
    hook = gitops.apps_remote / "hooks" / "pre-receive"
    ours = hook.read_text()
    hook.write_text("#!/bin/sh\necho no such app here >&2\nexit 1\n")
    with pytest.raises(UcpError, match="no such app here") as refused:
        ucp(workspace, "app", "add", "shop", "--image", "a/c", "--tag", "1")
    assert "completed steps are kept" not in str(refused.value)
    assert (workspace / "ucp.yaml").read_text() == started.read_text() == before
    assert _refs(gitops) == refs
    hook.write_text(ours)
    ucp(workspace, "app", "add", "mail", "--image", "a/d", "--tag", "1")
    assert [each.name for each in load(workspace / "ucp.yaml").spec.apps] == ["echo", "web", "mail"]
    for each in (gitops.core_remote, gitops.apps_remote):
        log = Repository(each).git("log", "--first-parent", "--format=%s", "-2", "main").decode()
        assert log.splitlines() == ["Add the app mail", "Add the app web"]


INTERRUPT = 'pid=../../../pid; test -e $pid && kill -INT "$(cat $pid)" && rm $pid; exit 0'
"""Sends one Ctrl-C: the hook runs for each ref, and a second Ctrl-C would end the wait for it."""
HOOKS = {
    "refused": ("apps", "exit 1"),
    "gone": ("core", "mv ../apps.git ../gone 2>/dev/null; exit 0"),
    "interrupted": ("core", INTERRUPT),
}
"""The fault, with the repository whose hook causes it: the core is pushed first."""


@pytest.fixture(scope="module")
def with_apps(tmp_path_factory: pytest.TempPathFactory, toolbox: Toolbox) -> Path:
    """A workspace with an app, and folders of another app next to it."""
    root = tmp_path_factory.mktemp("edits")
    place = root / "workspace"
    place.mkdir()
    (place / "ucp.yaml").write_text(topology_text(default()))
    Workspace.at(place).gitops("demo").core.mkdir(parents=True)
    ucp(place, "app", "add", "web", "--image", "a/b", "--tag", "1")
    shop = root / "theirs" / "shop" / "shop.yaml"
    shop.parent.mkdir(parents=True)
    shop.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\n")
    return place


@pytest.fixture
def place(tmp_path: Path, with_apps: Path) -> Path:
    """A copy of the workspace for one attempt, so that its leftovers affect no other."""
    found = tmp_path / "workspace"
    shutil.copytree(with_apps, found, symlinks=True)
    gitops = Workspace.at(found).gitops("demo")
    for each in (gitops.core, gitops.apps):
        url = (gitops.root / f"{each.name}.git").as_uri()
        Repository(each).git("config", "remote.origin.url", url)
    identity = gitops.root.parent / ".workspace.json"
    identity.write_text(identity.read_text().replace(str(with_apps), str(found)))
    return found


def test_an_app_deleted_from_the_topology_by_hand_is_reported_and_removed(place: Path) -> None:
    file = place / "ucp.yaml"
    with_web = file.read_text()
    file.write_text(without_item(with_web, "apps", "web", file)[0])
    said = ucp(place, "-v", "app", "add", "mail", "--image", "a/d", "--tag", "1")
    assert "web is no longer in ucp.yaml, but still deployed" in said
    assert "ucp app remove web" in said
    # The next push deletes its project.
    again = ucp(place, "-v", "app", "add", "shop", "--image", "a/e", "--tag", "1")
    assert "no longer in ucp.yaml" not in again
    apps = Workspace.at(place).gitops("demo").apps
    assert (apps / "apps/web").is_dir()
    ucp(place, "app", "remove", "web", "--yes")
    assert not (apps / "apps/web").exists()
    assert [each.name for each in load(file).spec.apps] == ["echo", "mail", "shop"]


def test_an_environment_that_a_commit_added_keeps_what_it_promotes_from(place: Path) -> None:
    apps = Workspace.at(place).gitops("demo").apps
    with (apps / "environments.yaml").open("a") as file:
        file.write("  - {name: qa, promotesFrom: stage}\n")
    clone = Repository(apps)
    person = ("-c", "user.name=Me", "-c", "user.email=me@example.org")
    clone.git(*person, "commit", "--quiet", "--all", "--message", "Add qa")
    clone.git("push", "--quiet", "origin", "HEAD:main")
    ucp(place, "env", "add", "qa")
    assert load(place / "ucp.yaml").spec.environments[-1].promotes_from == "stage"
    ucp(place, "env", "remove", "qa", "--yes")
    assert "qa" not in (apps / "environments.yaml").read_text()


def test_lists_read_the_local_repositories_if_their_clones_were_deleted(place: Path) -> None:
    gitops = Workspace.at(place).gitops("demo")
    shutil.rmtree(gitops.apps)
    shutil.rmtree(gitops.core)
    apps = json.loads(ucp(place, "app", "list", "-o", "json"))
    assert apps[1]["versions"] == {"stage": ["a/b:1"], "prod": ["a/b:1"]}
    file = place / "ucp.yaml"
    file.write_text(file.read_text().replace("name: prod", "name: live"))
    environments = json.loads(ucp(place, "env", "list", "-o", "json"))
    assert [(each["name"], each["provider"], each["declared"]) for each in environments] == [
        ("stage", "embedded", True),
        ("live", "embedded", True),
        ("prod", "embedded", False),
    ]


@pytest.mark.parametrize(
    ("edit", "wrong"),
    [
        ("add", "gone"),
        pytest.param("add", "interrupted", marks=pytest.mark.slow),
        ("import", "refused"),
        pytest.param("import", "interrupted", marks=pytest.mark.slow),
        pytest.param("remove", "refused", marks=pytest.mark.slow),
        ("remove", "interrupted"),
    ],
)
def test_edit_that_is_not_pushed_leaves_nothing_behind(
    place: Path, with_apps: Path, edit: str, wrong: str
) -> None:
    gitops = Workspace.at(place).gitops("demo")
    theirs = with_apps.parent / "theirs"
    words = {
        "add": ("add", "shop", "--path", str(theirs / "shop")),
        "import": ("import", str(theirs), "--all"),
        "remove": ("remove", "web", "--yes"),
    }[edit]
    (gitops.core / "mine.txt").write_text("not committed")
    before, refs = _files(place), _refs(gitops)
    repository, script = HOOKS[wrong]
    hook = gitops.root / f"{repository}.git" / "hooks" / "update"
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)
    try:
        ended = _in_process(place, "app", *words)
    finally:
        hook.unlink()
        if wrong == "gone":
            (gitops.root / "gone").rename(gitops.apps_remote)
    assert ended.returncode == (130 if wrong == "interrupted" else 1), ended.stderr
    assert "ucp.yaml is as it was before" in ended.stderr
    assert _refs(gitops) == refs
    assert _files(place) == before


def test_edit_whose_copy_cannot_be_written_leaves_ucp_yaml_as_it_was(place: Path) -> None:
    """As on a full disk: ucp.yaml is written before the topology's own copy of it."""
    gitops = Workspace.at(place).gitops("demo")
    before, refs = (place / "ucp.yaml").read_text(), _refs(gitops)
    state = Workspace.at(place).state("demo").root
    (state / f".{STARTED}.{os.getpid()}.tmp").mkdir()
    words = ("--workspace", str(place), "env", "add", "eu")
    result = CliRunner().invoke(app, list(words))
    assert isinstance(result.exception, UcpError)
    assert f"failed to write {state / STARTED}" in result.exception.message
    assert "ucp.yaml is as it was before" in result.exception.message
    assert (place / "ucp.yaml").read_text() == before
    assert _refs(gitops) == refs


def test_what_a_person_saves_during_a_push_is_kept_if_that_is_refused(place: Path) -> None:
    hook = Workspace.at(place).gitops("demo").apps_remote / "hooks" / "update"
    hook.write_text("#!/bin/sh\necho '# saved by an editor' >>../../../ucp.yaml\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(UcpError, match=r"ucp\.yaml keeps the edit: .* was changed") as refused:
        ucp(place, "env", "add", "eu")
    text = (place / "ucp.yaml").read_text()
    assert text.endswith("# saved by an editor\n")
    assert "name: eu" in text
    assert "undo it in" in str(refused.value.next)


def test_interrupted_edit_that_was_pushed_is_kept(place: Path, with_apps: Path) -> None:
    gitops = Workspace.at(place).gitops("demo")
    hook = gitops.apps_remote / "hooks" / "update"
    hook.write_text(f"#!/bin/sh\n{INTERRUPT}\n")
    hook.chmod(0o755)
    shop = with_apps.parent / "theirs" / "shop"
    ended = _in_process(place, "app", "add", "shop", "--path", str(shop))
    assert ended.returncode == 130
    assert "the edit of ucp.yaml was pushed" in ended.stderr
    assert [each.name for each in load(place / "ucp.yaml").spec.apps][-1] == "shop"
    assert (place / "manifests" / "shop" / "shop.yaml").exists()
    assert "apps/shop/base/shop.yaml" in Repository(gitops.apps_remote).listing("main")


def test_failed_edit_is_reverted_by_a_commit_if_force_pushes_are_denied(
    world: Repositories,  # noqa: F811
) -> None:
    world.start()
    before, tip = world.files("core"), world.refs()["core.git/refs/heads/main"]
    core = Repository(world.folder.core_remote)
    core.git("config", "receive.denyNonFastForwards", "true")
    hook = world.folder.apps_remote / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    three = (*demo().spec.environments, Environment.model_validate({"name": "eu"}))
    with pytest.raises(Declined):
        world.start(environments=three, whole=True)
    assert world.files("core") == before
    assert core.history("main", limit=1)[0].message.startswith("Revert: ")
    assert tip in [each.id for each in core.history("main")]
    assert not (world.folder.core / "clusters" / "overlays" / "eu").exists()


def _in_process(workspace: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in its own process, whose id is in the file `pid`."""
    # A shell makes its background jobs, and their children, ignore Ctrl-C.
    program = (
        "import os, sys, pathlib, signal; from k8s_ucp.cli.main import run; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "
        "pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); sys.exit(run(sys.argv[2:]))"
    )
    pid = workspace / "pid"
    started = [sys.executable, "-c", program, str(pid), "--workspace", str(workspace), *words]
    try:
        return subprocess.run(started, capture_output=True, text=True, timeout=120, check=False)
    finally:
        pid.unlink(missing_ok=True)


def _refs(gitops: GitopsFolder) -> dict[Path, dict[str, str]]:
    folders = (gitops.core_remote, gitops.apps_remote, gitops.core, gitops.apps)
    return {each: Repository(each).refs() for each in folders}


def _files(workspace: Path) -> dict[str, bytes]:
    """The files that a person sees: without git's own files, logs and the journal."""
    hidden = ("core.git", "apps.git", ".git", "logs", "journal.json", "lock")
    return {
        str(each.relative_to(workspace)): each.read_bytes()
        for each in workspace.rglob("*")
        if each.is_file() and not set(hidden) & set(each.parts)
    }


def test_removal_includes_files_that_people_added(world: Repositories) -> None:  # noqa: F811
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


def test_removal_with_plan_changes_nothing(with_apps: Path) -> None:
    place = with_apps / "ucp.yaml"
    gitops = Workspace.at(with_apps).gitops("demo")
    before = place.read_text(), _refs(gitops)
    for words, folder in ((("app", "web"), "apps/web/"), (("env", "prod"), "overlays/prod/")):
        data = json.loads(ucp(with_apps, words[0], "remove", words[1], "--plan", "-o", "json"))
        assert (data["steps"][0]["action"], data["steps"][0]["object"]) == ("change", "ucp.yaml")
        deleted = [each["object"] for each in data["steps"] if each["action"] == "delete"]
        assert any(folder in each for each in deleted), words
        # The core is not running, so the plan doesn't claim that anything is kept.
        assert any("the core cluster is not running" in each["reason"] for each in data["steps"])
    assert data["lost"] == ["everything on demo-prod that is not in a repository"]
    assert (place.read_text(), _refs(gitops)) == before
