"""The commands on a running topology: a core cluster with its components and nothing else."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.kube import NAMESPACE, Kube
from k8s_ucp.workspace import write_private_file
from tests.chromium import browser
from tests.e2e.world import World, until
from tests.integration.cli.conftest import CORE_ALONE, make_world
from tests.integration.gitops.promotion.git_servers import TOKEN, USER, http_git

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def running() -> Iterator[World]:
    with make_world() as world:
        (world.workspace / "ucp.yaml").write_text(CORE_ALONE)
        world.ucp("start", "--yes")
        yield world


def test_status_in_every_notation(running: World) -> None:
    data = running.status()
    assert data["core"] == {"name": "demo-core", "provider": "embedded", "ready": True}
    assert [each["name"] for each in data["components"]] == ["argocd", "crossplane", "reconciler"]
    for each in data["components"]:
        assert each.keys() == {"name", "version", "ready", "placement"}
        assert each["ready"] is True
    assert data["environments"] == data["mirrors"] == []
    assert {each["sync"] for each in data["applications"]} == {"Synced"}
    yaml = running.ucp("status", "-o", "yaml").stdout
    assert YAML(typ="safe", pure=True).load(yaml) == data
    page = running.ucp("status").stdout
    assert "demo-core" in page
    assert "NOT READY" not in page


def test_status_of_a_topology_whose_core_is_gone(running: World) -> None:
    path = running.state / "kubeconfigs" / "demo-core.yaml"
    aside = path.with_suffix(".aside")
    path.rename(aside)
    try:
        data = running.status()
    finally:
        aside.rename(path)
    assert data["core"]["ready"] is False
    assert data["applications"] == []


def test_watching_ends_with_ctrl_c(running: World) -> None:
    with subprocess.Popen(
        [*running.command, "--workspace", running.workspace, "status", "--watch"],
        env=running.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline() == "topology demo\n"
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 130


def test_clusters(running: World) -> None:
    (cluster,) = json.loads(running.ucp("clusters", "-o", "json").stdout)
    assert (cluster["name"], cluster["ready"], cluster["simulated"]) == ("demo-core", True, True)
    assert "demo-core" in running.ucp("clusters").stdout


def test_a_kubeconfig_works(running: World, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(running.ucp("kubeconfig", "core").stdout)
    assert Kube.from_file(file).get(NAMESPACE, "ucp-clusters")
    ended = running.ucp("kubeconfig", "cor", expect=2)
    assert "available: demo-core" in ended.stderr


def test_a_kubeconfig_is_merged_into_the_users_own(running: World) -> None:
    own = running.home / ".kube" / "config"
    own.parent.mkdir(exist_ok=True)
    own.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: mine\n"
        "contexts: [{name: mine, context: {cluster: mine, user: mine}}]\n"
    )
    for _ in range(2):
        running.ucp("kubeconfig", "demo-core", "--merge")
    merged = YAML(typ="safe", pure=True).load(own.read_text())
    assert [each["name"] for each in merged["contexts"]] == ["mine", "demo-core"]
    assert merged["current-context"] == "demo-core"
    assert own.stat().st_mode & 0o777 == 0o600
    own.write_text("- no\n- kubeconfig\n")
    ended = running.ucp("kubeconfig", "demo-core", "--merge", expect=1)
    assert "not changed" in ended.stderr
    assert own.read_text() == "- no\n- kubeconfig\n"


def test_logs(running: World) -> None:
    assert running.ucp("logs", "redis", "-n", "1").stdout.count("\n") == 1
    several = running.ucp("logs", "argocd", "-n", "2").stdout
    assert "argocd-server: " in several
    assert "argocd-repo-server: " in several
    assert running.ucp("logs", "demo-core/etcd").stdout
    assert running.ucp("logs", "ucp").stdout
    ended = running.ucp("logs", "argo", expect=2)
    assert "available: argocd-application-controller" in ended.stderr


def test_following_logs(running: World) -> None:
    log = running.state / "logs" / "ucp.log"
    with subprocess.Popen(
        [*running.command, "--workspace", running.workspace, "logs", "ucp", "-f", "-n", "0"],
        env=running.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        time.sleep(2)
        with log.open("a") as stream:
            stream.write("a line that ")
            stream.flush()
            time.sleep(0.5)
            stream.write("came later\n")
        assert following.stdout.readline() == "a line that came later\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(30) == 130


def test_secrets_are_shown_and_kept_nowhere(running: World) -> None:
    (secret,) = json.loads(running.ucp("get", "secrets", "-o", "json").stdout)
    assert secret["user"] == "admin"
    assert len(secret["password"]) >= 16
    assert secret["password"] in running.ucp("get", "secrets").stdout
    for path in (running.state / "logs").iterdir():
        assert secret["password"] not in path.read_text(errors="replace")


def test_a_build_without_web_ui_tells_what_there_is_instead(running: World, tmp_path: Path) -> None:
    """Its address in a real browser, the words on it in a shell, and the board beside it."""
    with subprocess.Popen(
        [*running.command, "--workspace", running.workspace, "open", "argocd"],
        env={**running.env, "BROWSER": "true"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as opened:
        assert opened.stdout is not None
        assert opened.stderr is not None
        try:
            address, board = opened.stdout.readline().strip(), opened.stdout.readline().strip()
            assert "without its web UI" in opened.stderr.readline()
            with browser(tmp_path / "profile") as page:
                # Any path is the page's, as with a web UI.
                page.open(f"{address}/applications/echo")
                page.until("document.title.includes('Argo CD without its web UI')")
                blocks = page.run("[...document.querySelectorAll('pre')].map((e) => e.innerText)")
                assert page.complaints == []
                page.open(board)
                page.until("location.search === '' && document.title.includes('demo')")
        finally:
            opened.send_signal(signal.SIGINT)
        assert opened.wait(30) == 0
    assert blocks[0] == "ucp board"
    assert blocks[2] == "ucp tools install argocd --source releases\nucp start"
    login, look = blocks[1].split("\n")
    (secret,) = json.loads(running.ucp("get", "secrets", "-o", "json").stdout)
    for words in (f"{login} --password {secret['password']}", look):
        done = subprocess.run(
            shlex.split(words), env=running.env, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
    assert "argocd/root" in done.stdout


def test_render_writes_where_it_is_told(running: World, tmp_path: Path) -> None:
    running.ucp("render", "--out", str(tmp_path))
    assert (tmp_path / "core" / "ucp.yaml").read_text() == CORE_ALONE
    assert (tmp_path / "apps" / "environments.yaml").exists()
    assert running.git(running.gitops / "core", "status", "--porcelain") == ""


def test_a_second_run_waits_for_nobody(running: World) -> None:
    lock = running.state / "lock"
    with subprocess.Popen(
        ["flock", lock, "sh", "-c", f"echo '4711 ucp stop' > '{lock}'; echo; cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        for words in (["start", "--yes"], ["stop", "--yes"]):
            ended = running.ucp(*words, expect=1)
            assert (
                "another command is running on the topology demo: `ucp stop` (PID 4711)"
                in ended.stderr
            )
        running.status()
        assert holder.stdin is not None
        holder.stdin.close()
    running.ucp("start", "--yes")


def test_a_port_that_was_taken_meanwhile(running: World) -> None:
    running.ucp("stop", "--yes")
    for words in (["get", "secrets"], ["mirror", "list"]):
        said = running.ucp(*words, expect=1).stderr
        where = f"--workspace '{running.workspace}'"
        assert said == (
            f"ucp: the core cluster demo-core is not responding\n  next: ucp start {where}\n"
        )
    record = ClusterFolder(running.state / "clusters", "demo-core").record()
    assert record is not None
    port = record.ports["kube-apiserver"]
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", port))
        stranger.listen(1)
        ended = running.ucp("start", "--yes", expect=1)
        assert f"port {port}" in ended.stderr
        assert "is already in use by another program" in ended.stderr
        assert stranger.getsockname()[1] == port
    # The port is free again: the next start, which the next test interrupts, finds it so.


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        (3.0, signal.SIGTERM),
        pytest.param(0.4, signal.SIGINT, marks=pytest.mark.soak),
        pytest.param(1.5, signal.SIGINT, marks=pytest.mark.soak),
        pytest.param(5.0, signal.SIGINT, marks=pytest.mark.soak),
    ],
)
def test_interrupted_at_any_step(running: World, moment: float, number: int) -> None:
    running.ucp("stop", "--yes")
    starting = subprocess.Popen(
        [*running.command, "--workspace", running.workspace, "start", "--yes"],
        env=running.env,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(moment)
    starting.send_signal(number)
    _, said = starting.communicate(timeout=60)
    assert starting.returncode in (130, 0, -number), said
    if starting.returncode == 130 and "interrupted; " in said:
        assert "next: ucp --workspace" in said
    running.ucp("start", "--yes")
    assert running.status()["core"]["ready"] is True


def test_the_state_folder_is_removed_under_it(running: World) -> None:
    """It can be rebuilt: what still runs is ended, by start as by stop."""
    before = running.git(running.gitops / "core.git", "rev-parse", "main")
    running.ucp("start", "--yes")
    shutil.rmtree(running.state)
    running.ucp("start", "--yes")
    assert running.status()["core"]["ready"] is True
    etcds = [each for each in running.processes() if each.name() == "etcd"]
    assert len(etcds) == 1
    shutil.rmtree(running.state)
    running.ucp("stop", "--yes")
    assert running.processes() == []
    assert running.git(running.gitops / "core.git", "rev-parse", "main") == before


def test_killed_in_the_middle_and_healed(running: World) -> None:
    """Without any state before, where the test above has run."""
    running.ucp("stop", "--yes")
    starting = subprocess.Popen(
        [*running.command, "--workspace", running.workspace, "start", "--yes"],
        env=running.env,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    journal = running.state / "journal.json"
    until("it began", lambda: "start-core" in journal.read_text(), seconds=30)
    os.kill(starting.pid, signal.SIGKILL)
    starting.wait()
    assert json.loads(journal.read_text())["outcome"] == "running"
    running.ucp("start", "--yes")
    assert json.loads(journal.read_text())["outcome"] == "done"
    assert running.status()["core"]["ready"] is True


def test_repositories_of_the_users_own(world: World) -> None:
    """On a server that asks for the credential which the topology names."""
    host = world.home / "git host"
    for name in ("core", "apps"):
        world.git(world.home, "init", "-q", "--bare", "-b", "trunk", str(host / f"{name}.git"))
    with http_git(host, world.env) as served:
        urls = {name: served.url(host / f"{name}.git") for name in ("core", "apps")}
        git = json.dumps({"provider": "url", "branch": "trunk", "auth": "forge", **urls})
        text = CORE_ALONE.replace("spec: {", f"spec: {{git: {git}, ")
        (world.workspace / "ucp.yaml").write_text(text)
        refused = world.ucp("start", "--yes", expect=1).stderr
        assert "creds/forge.token: the file does not exist; expected an access token" in refused
        assert not world.gitops.exists()
        login = world.workspace / "creds" / "forge.token"
        login.parent.mkdir(0o700)
        write_private_file(login, json.dumps({"username": USER, "password": TOKEN}))
        world.ucp("start", "--yes")
        assert {each["sync"] for each in world.status()["applications"]} == {"Synced"}
        assert "ucp.yaml" in world.git(host / "core.git", "ls-tree", "--name-only", "trunk")
        assert not (world.gitops / "core.git").exists()
        assert "the app echo does not exist" in world.ucp("history", "echo", expect=1).stderr
        world.ucp("stop", "--yes")
    # Argo CD has it in the core's etcd; nothing else that is kept does.
    kept = [each for each in world.workspace.rglob("*") if each.is_file()]
    found = [each for each in kept if TOKEN.encode() in each.read_bytes()]
    others = [each for each in found if "etcd" not in each.parts]
    assert others == [login]
