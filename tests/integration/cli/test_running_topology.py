"""Commands on a running topology: a core cluster with its components and nothing else.

Everything that these tests need is on the core: databases have passwords generated, and no app
cluster has to be created.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from k8s_ucp import plans
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.kube import EVENT, NAMESPACE, Kube
from k8s_ucp.reconciler.backup_content import PATH
from k8s_ucp.topology import load
from k8s_ucp.workspace import write_private_file
from tests.chromium import browser
from tests.e2e.interruption_points import SEED, cut, points, small_disk
from tests.e2e.world import Workbench, until
from tests.integration.cli.conftest import CORE_ALONE, make_world
from tests.integration.cli.passwords import BY_HAND, kept, key_file, password
from tests.integration.gitops.promotion.git_servers import TOKEN, USER, http_git

pytestmark = pytest.mark.engines

WITH_A_DATABASE = CORE_ALONE.replace(
    "{environments: [], apps: []}",
    "{environments: [{name: stage, state: stopped}], apps: [], "
    "databases: [{name: orders, provider: local}]}",
)
ORDERS = "orders-stage-connection"


@pytest.fixture(scope="module")
def running() -> Iterator[Workbench]:
    with make_world() as world:
        (world.workspace / "ucp.yaml").write_text(CORE_ALONE)
        world.ucp("start", "--yes")
        yield world


def test_status_in_every_output_format(running: Workbench) -> None:
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


def test_status_of_a_topology_without_a_core_kubeconfig(running: Workbench) -> None:
    path = running.state / "kubeconfigs" / "demo-core.yaml"
    aside = path.with_suffix(".aside")
    path.rename(aside)
    try:
        data = running.status()
    finally:
        aside.rename(path)
    assert data["core"]["ready"] is False
    assert data["applications"] == []


def test_status_watch_ends_with_ctrl_c(running: Workbench) -> None:
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


def test_clusters_are_listed(running: Workbench) -> None:
    (cluster,) = json.loads(running.ucp("clusters", "-o", "json").stdout)
    assert (cluster["name"], cluster["ready"], cluster["simulated"]) == ("demo-core", True, True)
    assert "demo-core" in running.ucp("clusters").stdout


def test_kubeconfig_reaches_the_core_and_a_misspelled_name_is_corrected(
    running: Workbench, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    file.write_text(running.ucp("kubeconfig", "core").stdout)
    same = json.loads(running.ucp("kubeconfig", "core", "-o", "json").stdout)
    assert YAML(typ="safe", pure=True).load(file) == same
    authority = same["clusters"][0]["cluster"]["certificate-authority-data"]
    assert f"certificate-authority-data: {authority}\n" in file.read_text()
    assert Kube.from_file(file).get(NAMESPACE, "ucp-clusters")
    ended = running.ucp("kubeconfig", "cor", expect=2)
    assert "available: demo-core" in ended.stderr
    assert ended.stderr.rstrip().endswith(" core"), "the nearest"


def test_kubeconfig_is_merged_into_the_users_own(running: Workbench) -> None:
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


def test_logs_print_the_requested_lines_of_each_program(running: Workbench) -> None:
    assert running.ucp("logs", "redis", "-n", "1").stdout.count("\n") == 1
    several = running.ucp("logs", "argocd", "-n", "2").stdout
    assert "argocd-server: " in several
    assert "argocd-repo-server: " in several
    assert running.ucp("logs", "demo-core/etcd").stdout
    assert running.ucp("logs", "ucp").stdout
    ended = running.ucp("logs", "argo", expect=2)
    assert "available: argocd-application-controller" in ended.stderr


def test_logs_are_followed(running: Workbench) -> None:
    log = running.state / "logs" / "ucp.log"
    with subprocess.Popen(
        [*running.command, "--workspace", running.workspace, "logs", "ucp", "-f", "-n", "1"],
        env=running.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        assert following.stdout.readline(), "the last line of before: what comes now is followed"
        with log.open("a") as stream:
            stream.write("a line that ")
            stream.flush()
            time.sleep(0.5)
            stream.write("came later\n")
        assert following.stdout.readline() == "a line that came later\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(30) == 130


def test_events_are_listed_and_followed(running: Workbench) -> None:
    """With an environment that is declared but has no cluster yet."""
    started = running.state / "ucp.yaml"
    text = started.read_text()
    lab = "{name: lab, cluster: {provider: embedded}}"
    assert "environments: []" in text
    started.write_text(text.replace("environments: []", f"environments: [{lab}]"))
    try:
        ended = running.ucp("events", "--object", "Application/root", "-o", "json")
    finally:
        started.write_text(text)
    data = json.loads(ended.stdout)
    assert data["events"]
    assert {each["about"] for each in data["events"]} == {"Application argocd/root"}
    assert {each["cluster"] for each in data["events"]} == {"demo-core"}
    assert [each["last"] for each in data["events"]] == sorted(e["last"] for e in data["events"])
    assert [each["cluster"] for each in data["notAsked"]] == ["demo-lab"]
    assert "failed to list the Events of demo-lab" in ended.stderr
    assert "Application argocd/root" in running.ucp("events").stdout
    with subprocess.Popen(
        [*running.command, "--workspace", running.workspace, "events", "-f", "-n", "1"],
        env=running.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        assert following.stdout.readline()
        kube = Kube.from_file(running.state / "kubeconfigs" / "demo-core.yaml")
        about = {"kind": "Namespace", "name": "default", "namespace": "default"}
        kube.create(
            EVENT.object("tried", "default", involvedObject=about, reason="Tried", message="by us")
        )
        while "Tried" not in (line := following.stdout.readline()):
            assert line, following.stderr
        assert line.rstrip().endswith("Tried   by us")
        following.send_signal(signal.SIGINT)
        assert following.wait(30) == 130


def test_secrets_are_shown_and_not_logged(running: Workbench) -> None:
    (secret,) = json.loads(running.ucp("get", "secrets", "-o", "json").stdout)
    assert secret["user"] == "admin"
    assert len(secret["password"]) >= 16
    assert secret["password"] in running.ucp("get", "secrets").stdout
    for path in (running.state / "logs").iterdir():
        assert secret["password"] not in path.read_text(errors="replace")


def test_argocd_without_web_ui_says_what_to_use_instead(running: Workbench, tmp_path: Path) -> None:
    """Opens its address in a real browser, runs the commands on the page, and opens the board."""
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
                # Every path serves this page, as with a web UI.
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


def test_render_writes_to_the_given_folder(running: Workbench, tmp_path: Path) -> None:
    running.ucp("render", "--out", str(tmp_path))
    assert (tmp_path / "core" / "ucp.yaml").read_text() == CORE_ALONE
    assert (tmp_path / "apps" / "environments.yaml").exists()
    assert running.git(running.gitops / "core", "status", "--porcelain") == ""


@pytest.fixture(scope="module")
def started_with_a_database(running: Workbench) -> str:
    """Output of the start. No hook refreshes Argo CD after its pushes: the start must do so."""
    (running.workspace / "ucp.yaml").write_text(WITH_A_DATABASE)
    # A hook leaves this while its program waits, and that program handles later pushes, too.
    waiting = running.gitops / "core.git" / "ucp-refresh" / "waiting"
    waiting.mkdir(parents=True, exist_ok=True)
    try:
        return running.ucp("start", "--yes").stderr
    finally:
        waiting.rmdir()


def test_start_backs_up_the_passwords_that_it_generated(
    running: Workbench, started_with_a_database: str
) -> None:
    assert f"a copy of {key_file(running)}" in started_with_a_database
    assert key_file(running).stat().st_mode & 0o777 == 0o600
    made = password(running, ORDERS)
    assert len(made) == 40
    assert kept(running) == {ORDERS: made}


def test_second_command_is_refused_while_one_is_running(running: Workbench) -> None:
    lock = running.state / "lock"
    with subprocess.Popen(
        ["flock", lock, "sh", "-c", f"echo $PPID ucp stop > '{lock}'; echo; cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        for words in (["start", "--yes"], ["stop", "--yes"]):
            ended = running.ucp(*words, expect=1)
            assert (
                "another command is running on the topology demo: `ucp stop` "
                f"(PID {holder.pid})" in ended.stderr
            )
        running.status()
        assert holder.stdin is not None
        holder.stdin.close()


@pytest.mark.slow
@pytest.mark.usefixtures("started_with_a_database")
def test_interrupted_removal_of_an_app_is_continued(running: Workbench) -> None:
    """After the first of its two pushes, which equals a start with a deleted entry."""
    file = running.workspace / "ucp.yaml"
    before = file.read_text()
    running.ucp("app", "add", "web", "--image", "example.org/web", "--tag", "1.0.0")
    file.write_text(before)
    running.ucp("start", "--yes")
    project = running.gitops / "core" / "projects" / "ucp-web.yaml"
    assert project.exists()
    said = running.ucp("app", "remove", "web", "--yes").stderr
    assert "web is no longer in ucp.yaml: its removal is continued" in said
    assert not project.exists()
    assert "unknown app 'web'" in running.ucp("app", "remove", "web", "--yes", expect=2).stderr


@pytest.mark.slow
@pytest.mark.usefixtures("started_with_a_database")
def test_start_recovers_from_a_deleted_state_folder(running: Workbench) -> None:
    """The state can be rebuilt: a start ends the processes that still run.

    Passwords are restored from the backup in git with its key.
    """
    before = running.git(running.gitops / "core.git", "rev-parse", "main")
    made = kept(running)
    assert ORDERS in made
    assert {name: password(running, name) for name in made} == made
    until("nothing is written into it any more", lambda: removed(running.state))
    running.ucp("start", "--yes")
    assert running.status()["core"]["ready"] is True
    assert {name: password(running, name) for name in made} == made
    assert len(running.git(running.gitops / "core.git", "log", "--format=%h", "main", "--", PATH))
    assert kept(running) == made
    etcds = [each for each in running.processes() if each.name() == "etcd"]
    assert len(etcds) == 1
    assert running.git(running.gitops / "core.git", "rev-parse", "main") == before


def removed(folder: Path) -> bool:
    """Delete the folder; processes may still create files in it meanwhile."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def test_stop_backs_up_a_password_generated_after_the_start(running: Workbench) -> None:
    running.kube("core").apply(BY_HAND, manager="argocd-controller")
    until("a password made after the start", lambda: password(running, "byhand"))
    made = {name: password(running, name) for name in (ORDERS, "byhand")}
    shown = [" ".join(process.cmdline()) for process in running.processes()]
    running.ucp("stop", "--yes")
    assert kept(running) == made
    shown += [path.read_text(errors="replace") for path in (running.state / "logs").rglob("*.log*")]
    for text in (*made.values(), "AGE-SECRET-KEY"):
        assert not [each for each in shown if text in each]


def test_port_that_another_program_took_meanwhile_is_reported(running: Workbench) -> None:
    running.ucp("stop", "--yes")
    where = f"--workspace '{running.workspace}'"
    told = running.ucp("status").stdout
    assert told.startswith(f"topology demo is stopped; next: ucp start {where}\n")
    assert "NOT READY" not in told
    assert f"demo is stopped\n         next: ucp start {where}\n" in running.ucp("doctor").stdout
    for words in (["get", "secrets"], ["mirror", "list"]):
        said = running.ucp(*words, expect=1).stderr
        assert said == f"ucp: the core cluster demo-core is stopped\n  next: ucp start {where}\n"
    said = running.ucp("destroy", "--yes", expect=1).stderr
    assert said.startswith("ucp: the core cluster demo-core is stopped, but is needed"), said
    assert running.ucp("open", "argocd", expect=1).stderr.startswith("ucp: demo is stopped\n")
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


def starting(world: Workbench) -> subprocess.Popen[str]:
    """Begin a start."""
    return subprocess.Popen(
        [*world.command, "--workspace", world.workspace, "start", "--yes"],
        env=world.env,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupt(start: subprocess.Popen[str], moment: float, number: int) -> None:
    """Send the signal after so many seconds."""
    time.sleep(moment)
    start.send_signal(number)
    _, said = start.communicate(timeout=180)
    assert start.returncode in (130, 0, -number), said
    if start.returncode == 130 and "interrupted; " in said:
        assert "next: ucp --workspace" in said


@pytest.mark.usefixtures("started_with_a_database")
def test_start_recovers_from_an_interrupted_and_a_killed_start(running: Workbench) -> None:
    """The second is killed without any state, beside processes of the first; passwords are kept."""
    running.ucp("stop", "--yes")
    made = kept(running)
    interrupt(starting(running), 3.0, signal.SIGTERM)
    shutil.rmtree(running.state)
    journal = running.state / "journal.json"
    start = starting(running)

    def has_begun() -> bool:
        text = journal.read_text()
        return "start-core" in text and json.loads(text)["pid"] == start.pid

    until("it began", has_begun)
    os.kill(start.pid, signal.SIGKILL)
    start.communicate()
    (left,) = running.status()["unfinished"]
    assert left["state"] == "killed"
    assert left["next"].endswith("start --yes")
    assert f"{left['message']}; next: {left['next']}" in running.ucp("status").stdout
    said = running.ucp("start", "--yes").stderr
    assert f"{left['message']}; continuing from there" in said
    assert json.loads(journal.read_text())["outcome"] == "done"
    assert running.status()["unfinished"] == []
    assert running.status()["core"]["ready"] is True
    assert {name: password(running, name) for name in made} == made
    assert kept(running) == made


@pytest.mark.soak
@pytest.mark.parametrize(
    ("moment", "number"),
    [(3.0, signal.SIGTERM), *((each, signal.SIGINT) for each in (0.4, 1.5, 5.0))],
)
def test_start_recovers_from_a_signal_at_any_moment(
    running: Workbench, moment: float, number: int
) -> None:
    running.ucp("stop", "--yes")
    interrupt(starting(running), moment, number)
    running.ucp("start", "--yes")
    assert running.status()["core"]["ready"] is True


@pytest.mark.usefixtures("started_with_a_database")
def test_stop_ends_processes_whose_state_is_lost(running: Workbench) -> None:
    before = running.git(running.gitops / "core.git", "rev-parse", "main")
    assert running.processes()
    shutil.rmtree(running.state)
    running.ucp("stop", "--yes")
    assert running.processes() == []
    assert running.git(running.gitops / "core.git", "rev-parse", "main") == before


@pytest.mark.usefixtures("started_with_a_database")
def test_start_is_refused_without_the_key_of_its_backup(running: Workbench) -> None:
    """Without it, the backup could not be restored."""
    shutil.rmtree(running.workspace / ".ucp")
    away = key_file(running).rename(running.home / "my.key")
    refused = running.ucp("start", "--yes", expect=1).stderr
    assert f"its key {key_file(running)} is missing" in refused
    assert not (running.workspace / ".ucp").exists()
    assert not key_file(running).exists()
    away.rename(key_file(running))


@pytest.fixture(scope="module")
def with_own_repositories() -> Iterator[Workbench]:
    """A topology with repositories on a server that requires its credential, not on branch main.

    Nothing is started. Where a small file system can be mounted, it holds the workspace.
    """
    with make_world() as world, ExitStack() as leaving:
        if os.geteuid() == 0:
            leaving.enter_context(small_disk(world.workspace, "2g"))
        host = world.home / HOST
        for name in ("core", "apps"):
            world.git(world.home, "init", "-q", "--bare", "-b", "main", str(host / f"{name}.git"))
        served = leaving.enter_context(http_git(host, world.env))
        urls = {name: served.url(host / f"{name}.git") for name in ("core", "apps")}
        git = json.dumps({"provider": "url", "branch": "trunk", "auth": "forge", **urls})
        text = CORE_ALONE.replace("spec: {", f"spec: {{git: {git}, ")
        (world.workspace / "ucp.yaml").write_text(text)
        yield world
        if world.processes():
            world.ucp("stop", "--yes")


HOST = "git host"
"""Folder of the repositories, below HOME."""


def login(world: Workbench) -> Path:
    """Return the file with the credential; create it if it is missing."""
    file = world.workspace / "creds" / "forge.token"
    if not file.exists():
        file.parent.mkdir(0o700)
        write_private_file(file, json.dumps({"username": USER, "password": TOKEN}))
    return file


def test_start_is_refused_without_the_credential_of_its_repositories(
    with_own_repositories: Workbench,
) -> None:
    world = with_own_repositories
    refused = world.ucp("start", "--yes", expect=1).stderr
    assert "creds/forge.token: the file does not exist; expected an access token" in refused
    assert not world.gitops.exists()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
@pytest.mark.timeout(900)
def test_start_recovers_from_a_full_disk(with_own_repositories: Workbench) -> None:
    """It is full from a step of the plan on, which the seed chooses; the soak uses all steps."""
    dice, world = random.Random(SEED), with_own_repositories
    login(world)
    point = dice.choice(points(plans.start(load(world.workspace / "ucp.yaml")), dice))
    filler = world.workspace / "filler"
    done = cut(world, point, "start", "--yes", UCP_FILLS=str(filler))
    assert done.returncode in (0, 1), f"{point}: {done.stderr}"
    filler.unlink(missing_ok=True)
    world.ucp("start", "--yes")
    status = world.status()
    assert status["core"]["ready"], point
    assert status["unfinished"] == []


@pytest.mark.slow
def test_start_uses_repositories_of_the_user(with_own_repositories: Workbench) -> None:
    """Started by the test above, or here."""
    world = with_own_repositories
    own = login(world)
    if not world.processes():
        world.ucp("start", "--yes")
    assert {each["sync"] for each in world.status()["applications"]} == {"Synced"}
    host = world.home / HOST
    assert "ucp.yaml" in world.git(host / "core.git", "ls-tree", "--name-only", "trunk")
    assert not (world.gitops / "core.git").exists()
    assert "the app echo does not exist" in world.ucp("history", "echo", expect=2).stderr
    world.ucp("stop", "--yes")
    # Argo CD has the token in the core's etcd; no other stored file may contain it.
    kept = [each for each in world.workspace.rglob("*") if each.is_file()]
    found = [each for each in kept if TOKEN.encode() in each.read_bytes()]
    others = [each for each in found if "etcd" not in each.parts]
    assert others == [own]
