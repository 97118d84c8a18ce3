"""The path of a user: start, inspect, change a tag, add an environment, start again, stop."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import stat
import subprocess
import tarfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import psutil
import pytest

from k8s_ucp import plans
from k8s_ucp.clusters.existing.adoption import MARK, MARK_NAMESPACE
from k8s_ucp.kube import (
    APPLICATION,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    DEPLOYMENT,
    LOCAL_CLUSTER,
    NAMESPACE,
    SECRET,
)
from k8s_ucp.topology import load
from tests.changing_files import modes_below, paths_below
from tests.e2e.added_environment import (
    add_eu_to_apps,
    add_eu_to_core,
)
from tests.e2e.echo_app import answer, image
from tests.e2e.embedded_topology import (
    PROCESSES,
    host_placement,
    named,
    names_of_processes,
    power_cut,
    well,
)
from tests.e2e.existing_environment import (
    ENVIRONMENT,
    NAME,
    TheirEnvironment,
    everything,
    refuses_another_workspace,
    their_environment,
)
from tests.e2e.interruption_points import (
    RETURN,
    cut_at_one_of,
    cut_somewhere,
    dice_of,
    points_of_steps,
)
from tests.e2e.mirrored_secret import SYNCER, connection, password
from tests.e2e.world import Workbench, until
from tests.integration.board.sources import Client
from tests.terminal import run_in_terminal, seen

if TYPE_CHECKING:
    from k8s_ucp.context import StartContext
    from k8s_ucp.engine.pipeline import Plan
    from k8s_ucp.tools.toolbox import Toolbox


def healthy(world: Workbench, name: str, tag: str) -> bool:
    found = world.application(name)
    return (
        found is not None
        and (found["sync"], found["health"]) == ("Synced", "Healthy")
        and any(each.endswith(f":{tag}") for each in found["images"])
    )


def running(world: Workbench) -> dict[str, tuple[str, str, str | None]]:
    """State of each echo Application, and the image in its app cluster."""
    return {
        each["name"]: (each["sync"], each["health"], image(world.kube(each["environment"])))
        for each in world.status()["applications"]
        if each["app"] == "echo"
    }


def test_status_reports_what_start_created(demo: Workbench) -> None:
    status = demo.status()
    assert status["topology"] == demo.topology
    assert status["core"]["name"] == f"{demo.topology}-core"
    assert status["core"]["provider"] == demo.provider
    assert status["core"]["ready"] is True
    assert {each["name"] for each in status["components"] if each["ready"]} >= {
        "argocd",
        "crossplane",
        "reconciler",
    }
    environments = {each["name"]: each for each in status["environments"]}
    assert list(environments) == ["stage", "prod"]
    for each in environments.values():
        assert each["cluster"]["ready"] is True
        assert each["cluster"]["registered"] is True
        assert each["cluster"]["reachable"] is True
        assert each["cluster"]["simulated"] is not demo.real
    places = {each["placement"] for each in status["components"]}
    assert places == ({"pods"} if demo.real else {"host"})
    applications = {each["name"]: each for each in status["applications"] if each["app"] == "echo"}
    assert sorted(applications) == ["echo-prod", "echo-stage"]
    for each in applications.values():
        assert (each["sync"], each["health"]) == ("Synced", "Healthy")
        assert each["images"] == ["ealen/echo-server:0.9.2"]


@pytest.mark.parametrize("demo", ["embedded"], indirect=True)
def test_status_is_the_same_with_another_cache_folder(demo: Workbench, tmp_path: Path) -> None:
    """As in a cron job with another HOME: ports are found by the processes that listen."""
    mine = demo.environment.get("UCP_CACHE_DIR")
    demo.environment["UCP_CACHE_DIR"] = str(tmp_path / "cache")
    try:
        components = demo.status()["components"]
    finally:
        del demo.environment["UCP_CACHE_DIR"]
        demo.environment.update({"UCP_CACHE_DIR": mine} if mine else {})
    assert len(components) == 3
    assert all(each["ready"] for each in components), components


def test_status_fits_a_terminal_of_80_columns(demo: Workbench) -> None:
    words = [*demo.command, "--workspace", str(demo.workspace), "status"]
    lines = seen(run_in_terminal(words, demo.home, {**demo.env, "TERM": "xterm"}))
    assert lines[0] == f"topology {demo.topology}"
    heads = {
        "topology",
        "WHAT",
        "core",
        "component",
        "environment",
        "database",
        "APPLICATION",
        "MIRROR",
    }
    names = {each["name"] for each in demo.status()["applications"]}
    # Nothing wraps to a line of its own.
    firsts = {line.split()[0] for line in lines if line}
    assert {each for each in firsts - heads - names if not each.endswith("...")} == set()
    assert {"echo-prod", "echo-stage"} <= firsts


def test_graph_shows_what_runs(demo: Workbench) -> None:
    text = demo.ucp("graph").stdout
    assert text.startswith("flowchart LR\n")
    assert "class env_stage ready" in text
    assert "env_stage -->|promotion| env_prod" in text
    assert re.search(r"app_echo_prod\[.*0\.9\.2.*Synced, Healthy.*\]:::ready", text)
    drawn = ElementTree.fromstring(demo.ucp("graph", "-o", "svg").stdout)
    assert {"stage", "prod", "echo"} <= {each.text for each in drawn.iter()}


@pytest.mark.parametrize("environment", ["stage", "prod"])
def test_deployment_exists_in_the_app_cluster(demo: Workbench, environment: str) -> None:
    assert image(demo.kube(environment)) == "ealen/echo-server:0.9.2"


@pytest.mark.parametrize("environment", ["stage", "prod"])
def test_app_answers_with_its_tag(demo: Workbench, environment: str) -> None:
    if not demo.real:
        pytest.skip("simulated pods don't answer")
    until("it answers", lambda: answer(demo, environment) == "0.9.2")


def test_argocd_answers_at_the_printed_address(demo: Workbench) -> None:
    told = json.loads(demo.ucp("get", "secrets", "-o", "json").stdout)[0]
    assert told["url"].startswith("http://127.0.0.1:")
    with urllib.request.urlopen(f"{told['url']}/api/version", timeout=10) as found:
        assert json.load(found)["Version"].startswith("v3.")


def test_argocd_manages_itself_and_reports_no_drift(demo: Workbench) -> None:
    """On a host it manages its settings; in pods also its CRDs and workloads."""
    own = {each["name"]: each for each in demo.status()["applications"]}
    for name in ("root", "argocd", "crossplane", "reconciler"):
        assert (own[name]["sync"], own[name]["health"]) == ("Synced", "Healthy"), own[name]
    kinds = {
        each["kind"]
        for each in demo.kube("core").get(APPLICATION, "argocd", "argocd")["status"]["resources"]
    }
    assert "ConfigMap" in kinds
    assert ({"StatefulSet", "Deployment", "CustomResourceDefinition"} <= kinds) is demo.real


@pytest.mark.parametrize("demo", ["embedded"], indirect=True)
def test_logout_stops_nothing(demo: Workbench) -> None:
    """systemd deletes a session's folder at its end; processes started in it must keep running."""
    # The watcher asks every 5 s, and would replace supervisord after two failed answers.
    time.sleep(max(0, demo.logged_out + 14 - time.time()))
    (supervisor,) = named(demo, "supervisord", "")
    assert supervisor.create_time() < demo.logged_out, "a healthy supervisord was ended"
    until("well without the login", lambda: well(demo))
    assert demo.uids() == demo.uids_in_login


def test_doctor_finds_no_problems(demo: Workbench) -> None:
    assert json.loads(demo.ucp("doctor", "-o", "json").stdout) == {"findings": []}
    assert "no problems found" in demo.ucp("doctor").stdout


@pytest.mark.parametrize("demo", ["embedded"], indirect=True)
def test_doctor_fixes_what_it_offers_to_fix(demo: Workbench) -> None:
    key = demo.workspace / "creds/backup.key"
    assert host_placement(demo).pause(["crossplane"]) == ["crossplane"]
    key.chmod(0o644)
    offered = {each["id"]: each["fix"] for each in doctor(demo) if each["fix"]}
    assert set(offered) == {"component/crossplane", f"credential/{key}"}
    refused = demo.ucp("doctor", "--fix", expect=2).stderr
    assert "ucp doctor --fix --yes" in refused
    assert stat.S_IMODE(key.stat().st_mode) == 0o644, "nobody has said yes"
    said = demo.ucp_any("doctor", "--fix", "--yes").stderr
    assert [each for each in offered.values() if f"fixed: {each}\n" not in said] == []
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    until("crossplane runs again", lambda: len(named(demo, "crossplane", "")) == 1)
    until("nothing is wrong", lambda: doctor(demo) == [])
    assert "nothing that --fix could do" in demo.ucp("doctor", "--fix", "--yes").stderr


@pytest.mark.slow
@pytest.mark.parametrize("demo", ["embedded"], indirect=True)
def test_doctor_starts_components_without_a_supervisor_and_a_watcher(demo: Workbench) -> None:
    """supervisord and the watcher, which restart each other, are killed; their programs run on."""
    victims = [*named(demo, "supervisord", ""), *named(demo, "watcher", "")]
    assert len(victims) == 2
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for each in victims:
            each.send_signal(number)
    offered = {each["id"]: each["fix"] for each in doctor(demo) if each["fix"]}
    assert set(offered) == {f"component/{name}" for name in ("argocd", "crossplane", "reconciler")}
    said = demo.ucp_any("doctor", "--fix", "--yes").stderr
    assert [each for each in offered.values() if f"fixed: {each}\n" not in said] == []
    until("all is well again", lambda: well(demo))
    until("nothing is wrong", lambda: doctor(demo) == [])
    for program, detail in PROCESSES:
        if detail or program in ("redis-server", "crossplane", "watcher", "supervisord"):
            assert len(named(demo, program, detail)) == 1, program


def doctor(world: Workbench) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(world.run_here("doctor", "-o", "json")[1])["findings"]
    return found


def test_diff_reports_no_differences(demo: Workbench) -> None:
    assert demo.ucp("diff").stdout == "no differences\n"


def test_support_bundle_contains_states_and_logs_but_no_secret(demo: Workbench) -> None:
    canary = "canary-Qz81-sings"
    log = next((demo.workspace / f".ucp/{demo.topology}/logs").glob("reconciler*.log"))
    with log.open("a") as stream:
        stream.write(f"somebody wrote {canary} here\n")
    core = demo.kube("core")
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "canary", "namespace": "default"},
        "stringData": {"anything": canary},
    }
    core.create(secret)
    file = demo.workspace / "bundle.tar.gz"
    file.unlink(missing_ok=True)
    try:
        code, _, said = demo.run_here("doctor", "--bundle", str(file))
        # Where all are slow, it may find an API server that doesn't respond in time.
        assert code in (0, 1), said
        secrets = core.list_all(SECRET)
    finally:
        core.delete(SECRET, "canary", "default")
    assert file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as archive:
        texts = {
            each.name.partition("/")[2]: archive.extractfile(each).read().decode()  # type: ignore[union-attr]
            for each in archive
        }
    file.unlink()
    assert {"about.json", "status.json", "findings.json", "events.json", "ucp.yaml"} <= set(texts)
    assert {"objects/localclusters.json", "logs/reconciler.log"} <= set(texts)
    assert "missing.txt" not in texts
    assert "somebody wrote … here" in texts["logs/reconciler.log"]
    whole = "\n".join(texts.values())
    admin = demo.workspace / f".ucp/{demo.topology}/kubeconfigs/{demo.topology}-core.yaml"
    keys = re.findall(r"client-key-data\W+([\w+/=]+)", admin.read_text())
    assert keys
    passwords = [
        base64.b64decode(text).decode()
        for each in secrets
        for name, text in (each.get("data") or {}).items()
        if "password" in name.lower() or "token" in name.lower() or name == "config"
    ]
    assert passwords
    hidden = [each for each in (canary, *keys, *passwords) if len(each) >= 4]
    assert not [each for each in hidden if each in whole]


def test_pushed_tag_reaches_only_its_environment(demo: Workbench) -> None:
    file = "apps/echo/overlays/stage/kustomization.yaml"
    with demo.commit("apps", "echo: 0.9.3 on stage") as clone:
        path = clone / file
        path.write_text(path.read_text().replace("0.9.2", "0.9.3"))
    until("stage follows", lambda: healthy(demo, "echo-stage", "0.9.3"))
    assert image(demo.kube("stage")) == "ealen/echo-server:0.9.3"
    assert image(demo.kube("prod")) == "ealen/echo-server:0.9.2"
    if demo.real:
        until("stage answers with it", lambda: answer(demo, "stage") == "0.9.3")
        assert answer(demo, "prod") == "0.9.2"


@pytest.mark.slow
def test_board_promotes_and_rolls_back_on_a_running_topology(demo: Workbench) -> None:
    """It shows what status shows, follows Argo CD, and changes what the commands change."""
    with board(demo) as client, client.stream() as events:
        shown = Shown(events)
        stage = shown.until(
            "apps", "echo/stage", lambda row: row["health"] == "Healthy" and row["tag"]
        )
        assert (stage["tag"], stage["sync"]) == ("0.9.3", "Synced")
        prod = shown.until("apps", "echo/prod", lambda row: row["newer"] is not None)
        assert (prod["tag"], prod["newer"]["env"], prod["newer"]["tag"]) == (
            "0.9.2",
            "stage",
            "0.9.3",
        )
        assert prod["newer"]["changed"]["by"] == "Person"
        environment = shown.until("environments", "prod", lambda row: row["registered"])
        assert environment["reachable"] is True
        assert environment["tokenExpiresAt"]
        assert shown.until("components", "argocd", lambda row: row["ready"])
        shown.until("about", "", lambda row: row["asked"] and not row["lost"])
        assert b"<svg" in client.ask(f"{client.base}/map.svg").body
        echo = {"app": "echo", "env": "prod", "seen": prod["pins"]}
        images = prod["newer"]["images"]
        frozen = json.loads(client.change({**echo, "kind": "hold"}).body)
        assert frozen["message"].startswith("hold set: echo in prod: 0.9.2")
        refused = json.loads(client.change({**echo, "kind": "promote", "images": images}).body)
        assert refused["message"].startswith("held: echo in prod was held at 0.9.2")
        assert json.loads(client.change({**echo, "kind": "release-hold"}).body)["ok"]
        promoted = json.loads(client.change({**echo, "kind": "promote", "images": images}).body)
        assert promoted["ok"], promoted
        assert promoted["message"].startswith("promoted: echo in prod: 0.9.2 -> 0.9.3")
        late = json.loads(client.change({**echo, "kind": "rollback"}).body)
        assert late["message"].startswith("conflict: echo in prod changed to 0.9.3 in the meantime")
        now = shown.until("apps", "echo/prod", lambda row: row["tag"] == "0.9.3")
        echo["seen"] = now["pins"]
        with written_by_argocd(demo, "echo-prod", ":0.9.3") as told:
            shown.until("apps", "echo/prod", lambda row: row["images"][0].endswith(":0.9.3"))
            on_board = time.monotonic()
        # Read it with -s; it has no limit, since the load of machines varies.
        print(f"on the board {on_board - told[0]:.2f} s after Argo CD wrote it")
        back = json.loads(client.change({**echo, "kind": "rollback"}).body)
        assert back["message"].startswith("rolled back: echo in prod: 0.9.3 -> 0.9.2")
        now = shown.until("apps", "echo/prod", lambda row: row["held"] == ["0.9.3"])
        echo["seen"] = now["pins"]
        again = json.loads(client.change({**echo, "kind": "promote", "images": images}).body)
        assert (again["ok"], again["message"].partition(":")[0]) == (False, "held")
        released = json.loads(client.change({**echo, "kind": "release-hold"}).body)
        assert released["ok"], released
        shown.until("apps", "echo/prod", lambda row: row["held"] == [])
        history = json.loads(client.ask(f"{client.base}/history?app=echo&env=prod").body)
        kinds = [each["kind"] for each in history[:5]]
        assert kinds == ["release", "rollback", "promote", "release", "hold"]
        assert shown.sections["events"]
    until("prod is as it was", lambda: healthy(demo, "echo-prod", "0.9.2"))


@contextmanager
def written_by_argocd(world: Workbench, name: str, image: str) -> Iterator[list[float]]:
    """Yield the times at which a watch of the Application reported this image."""
    kube, told = world.kube("core"), list[float]()

    def has_it(item: Any) -> bool:
        images = (item.get("status") or {}).get("summary", {}).get("images") or []
        return item["metadata"]["name"] == name and any(each.endswith(image) for each in images)

    def follow() -> None:
        found, version = kube.list_with_version(APPLICATION, "argocd")
        if any(map(has_it, found)):
            told.append(time.monotonic())
            return
        for _, item in kube.watch(APPLICATION, "argocd", since=version, seconds=120):
            if has_it(item):
                told.append(time.monotonic())
                return

    follower = threading.Thread(target=follow)
    follower.start()
    yield told
    follower.join(130)


@contextmanager
def board(world: Workbench) -> Iterator[Client]:
    """A client of a running `ucp board --write`."""
    words = [*world.command, "--workspace", str(world.workspace), "board", "--write"]
    running = subprocess.Popen(
        [*words, "--no-browser"], env=world.env, cwd=world.home, stdout=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None
        url = running.stdout.readline().strip()
        client = Client(urlsplit(url).port or 0)
        client.enter(url)
        yield client
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 0
    finally:
        running.kill()
        running.communicate()


class Shown:
    """The board's sections as a page has them, after every event so far."""

    def __init__(self, events: Iterator[tuple[str, Any]]) -> None:
        self._events = events
        _, self.sections = next(events)

    def until(self, section: str, key: str, is_so: Callable[[dict[str, Any]], bool]) -> Any:
        deadline = time.monotonic() + 120
        while True:
            row = self.sections.get(section, {}).get(key)
            if row is not None and is_so(row):
                return row
            assert time.monotonic() < deadline, (section, key, row)
            _, changes = next(self._events)
            for name, change in changes.items():
                rows = self.sections.setdefault(name, {})
                rows.update(change["put"])
                for each in change["drop"]:
                    del rows[each]


def test_rerun_keeps_the_pushed_tag_and_writes_nothing(demo: Workbench) -> None:
    before = until("the core answers", lambda: written(demo))
    demo.ucp("start", "--yes")
    assert until("the core answers", lambda: written(demo)) == before
    assert healthy(demo, "echo-stage", "0.9.3")


def written(world: Workbench) -> dict[str, Any]:
    """State that a start could write: objects with field managers and times, and git refs.

    Fields that controllers update are left out. Argo CD writes each comparison into the
    Application, whose kind has no status subresource, so its generation is of no use.
    """
    core = world.kube("core")
    found: dict[str, Any] = {
        f"{kind.kind}/{each['metadata']['namespace']}/{each['metadata']['name']}": (
            each.get("spec"),
            each.get("data"),
            each["metadata"].get("labels"),
            hands(each),
        )
        for kind in (LOCAL_CLUSTER, APPLICATION, SECRET)
        for each in core.list_all(kind)
    }
    for repository in ("core", "apps"):
        found[repository] = world.git(world.gitops / f"{repository}.git", "show-ref")
    return found


ASKED_TO_LOOK = {"f:annotations": {"f:argocd.argoproj.io/refresh": {}}}
"""Annotation that a push sets on an Application until Argo CD has refreshed it."""


def hands(item: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Manager, time and fields of each write, without status and Argo CD's running operation."""
    found = []
    for each in item["metadata"]["managedFields"]:
        fields = {
            name: value
            for name, value in each["fieldsV1"].items()
            if name not in ("f:status", "f:operation") and value != ASKED_TO_LOOK
        }
        if fields:
            found.append((each["manager"], each["time"], json.dumps(fields, sort_keys=True)))
    return sorted(found)


def test_environment_is_created_by_two_commits_and_gets_mirrored_secrets(demo: Workbench) -> None:
    core = demo.kube("core")
    core.create(connection("first"))
    with demo.commit("core", "Add the environment eu, and a mirror to all") as clone:
        add_eu_to_core(clone)
        (clone / "mirrors/db.yaml").write_text(SYNCER)
    with demo.commit("apps", "Run echo on eu") as clone:
        add_eu_to_apps(clone)
    until("eu is up", lambda: healthy(demo, "echo-eu", "0.9.3"), seconds=240)
    until("eu has the Secret", lambda: password(demo, "eu") == "first")
    core.delete(SECRET, "quotes-conn", "crossplane-system")
    with demo.commit("core", "Stop mirroring") as clone:
        (clone / "mirrors/db.yaml").unlink()
    until("the mirror is gone", lambda: not demo.status()["mirrors"])
    environments = {each["name"]: each for each in demo.status()["environments"]}
    assert environments["eu"]["cluster"]["registered"] is True
    assert image(demo.kube("eu")) == "ealen/echo-server:0.9.3"


def test_rerun_keeps_an_environment_that_only_the_repositories_declare(demo: Workbench) -> None:
    demo.ucp("start", "--yes")
    assert {each["name"] for each in demo.status()["environments"]} == {"stage", "prod", "eu"}
    assert healthy(demo, "echo-eu", "0.9.3")
    (adopted,) = json.loads(demo.ucp("diff", "-o", "json", expect=1).stdout)["differences"]
    assert (adopted["object"], adopted["topology"]) == ("environment eu", "-")
    assert (adopted["repository"], adopted["cluster"]) == ("declared", "running")
    assert adopted["next"].startswith("ucp env add eu --cluster")


def test_environment_is_removed_by_commits(demo: Workbench) -> None:
    with demo.commit("apps", "Stop echo on eu") as clone:
        demo.git(clone, "rm", "-rq", "apps/echo/overlays/eu")
        names = clone / "environments.yaml"
        lines = names.read_text().splitlines()
        names.write_text("\n".join(each for each in lines if "name: eu," not in each) + "\n")
    until("its Application is gone", lambda: demo.application("echo-eu") is None)
    with demo.commit("core", "Remove the environment eu") as clone:
        demo.git(clone, "rm", "-rq", "clusters/overlays/eu")
        for file in (clone / "clusters").rglob("*.yaml"):
            kept = [
                line for line in file.read_text().splitlines() if not re.search(r"\beu\b", line)
            ]
            file.write_text("\n".join(kept) + "\n")
    until(
        "its control plane is gone",
        lambda: f"{demo.topology}-eu" not in demo.clusters(),
        seconds=240,
    )
    until(
        "status forgets it",
        lambda: {each["name"] for each in demo.status()["environments"]} == {"stage", "prod"},
    )
    core = demo.kube("core")
    cluster = f"{demo.topology}-eu"
    assert core.find(SECRET, f"cluster-{cluster}", "argocd") is None
    assert core.find(SECRET, f"{cluster}-kubeconfig", "ucp-clusters") is None
    assert not (demo.state / "kubeconfigs" / f"{cluster}.yaml").exists()


@pytest.mark.parametrize("demo", ["embedded"], indirect=True)
def test_single_environment_stops_and_starts_again(demo: Workbench) -> None:
    def others() -> dict[str, str]:
        """UIDs that must not change: of everything except for stage."""
        return {
            place: uid
            for place, uid in demo.uids("core", "prod").items()
            if not place.endswith("-stage")
        }

    before, old = others(), demo.uids("stage")
    demo.ucp("stop", "--env", "moon", "--yes", expect=2)
    told = demo.ucp("stop", "--env", "stage", "--yes").stderr
    assert f"lost for good: everything on {demo.topology}-stage" in told
    assert f"{demo.topology}-stage" not in demo.clusters()
    states = {each["name"]: each["state"] for each in demo.status()["environments"]}
    assert states == {"stage": "stopped", "prod": "running"}
    assert demo.application("echo-stage") is None
    words = ("recreate", "--env", "stage", "--yes")
    dice = dice_of("recreate")
    if cut_at_one_of(demo, points_of_steps(RETURN, dice), dice, *words):
        assert demo.status()["unfinished"]
        demo.ucp(*words)
    assert demo.status()["unfinished"] == []
    assert healthy(demo, "echo-stage", "0.9.3")
    assert image(demo.kube("stage")) == "ealen/echo-server:0.9.3"
    assert not set(demo.uids("stage").values()) & set(old.values())
    assert others() == before
    assert demo.ucp("diff").stdout == "no differences\n"


def test_every_listener_is_on_loopback(demo: Workbench) -> None:
    found = listening(demo)
    assert found
    assert {address for address, _ in found} <= {"127.0.0.1", "::1"}


def listening(world: Workbench) -> set[tuple[str, int]]:
    """Addresses and ports on which its processes listen."""
    of_each = world.ask_processes(lambda process: process.net_connections(kind="tcp"))
    return {
        (each.laddr.ip, each.laddr.port)
        for connections in of_each
        for each in connections
        if each.status == "LISTEN"
    }


ANOTHER_USER = """
while IFS= read -r -d '' what; do
  case $what in
    [0-9]*) kill -0 "$what" && echo "signals $what"; what=/proc/$what/environ ;;
    read:*) what=${what#read:}; test -e "$what" && echo "sees $what" ;;
    write:*) test -w "${what#write:}" && echo "writes ${what#write:}"; continue ;;
  esac
  { : <"$what"; } && echo "reads $what"
done
exit 0
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("demo", ["embedded"], indirect=True)
def test_another_user_of_the_machine_has_no_access(demo: Workbench) -> None:
    """To files, sockets and processes; docs/architecture.md says who may use the ports."""
    # pytest creates it with mode 0700; a person's home is often readable.
    demo.workspace.parent.chmod(0o755)
    processes = demo.processes()
    sockets = {
        each.laddr
        for connections in demo.ask_processes(lambda each: each.net_connections(kind="unix"))
        for each in connections
        if str(each.laddr).startswith("/")
    }
    assert len(processes) > 10
    assert sockets
    keys = demo.workspace.glob("creds/*.key")
    targets = [
        *(str(each.pid) for each in processes),
        *(f"read:{each}" for each in (*paths_below(demo.state), *keys, *sockets)),
        *(f"write:{each}" for each in (demo.workspace, *paths_below(demo.workspace))),
    ]
    tried = subprocess.run(
        ["bash", "-c", ANOTHER_USER],
        input="".join(f"{each}\0" for each in targets),
        capture_output=True,
        text=True,
        cwd="/",
        user=12345,
        group=12345,
        extra_groups=[],
        timeout=120,
        check=True,
    )
    assert tried.stdout == ""


def test_state_is_private(demo: Workbench) -> None:
    wrong = []
    # The Kubernetes client inside Argo CD sets its own modes on its cached API lists; they contain
    # no secret and are in a private folder.
    cache = demo.state / "components/argocd/.kube/cache"
    assert stat.S_IMODE(cache.parent.parent.stat().st_mode) == 0o700
    for path, mode in modes_below(demo.state).items():
        if path.is_socket() or path.is_relative_to(cache):
            continue
        if mode & 0o077:
            wrong.append((oct(mode), str(path.relative_to(demo.state))))
    assert wrong == []


SAYING: tuple[tuple[tuple[str, ...], set[int]], ...] = (
    *(
        (words, {0, 1})
        for words in (
            ("status",),
            ("status", "-o", "yaml"),
            ("diff", "-o", "json"),
            ("events",),
            ("doctor", "-o", "json"),
            ("clusters", "-o", "json"),
            ("team", "list"),
            ("claim", "list"),
            ("stop", "--plan", "-o", "json"),
            ("stop", "--env", "stage", "--plan"),
            ("recreate", "--env", "stage", "--plan"),
            ("destroy", "--plan"),
            ("env", "remove", "prod", "--plan"),
            ("app", "remove", "echo", "--plan"),
        )
    ),
    (("recreate",), {1}),
    (("cloud", "ledger"), {0, 1, 2}),
    (("stop", "--env", "moon", "--yes"), {2}),
    (("recreate", "--env", "moon", "--yes"), {2}),
    (("team", "remove", "nobody", "--yes"), {2}),
    (("promote", "moon", "--env", "stage", "--tag", "1"), {1, 2}),
)
"""Commands that print a lot, or are refused, with their exit codes."""


@pytest.mark.slow
def test_no_secret_leaves_its_place(demo: Workbench) -> None:
    core = demo.kube("core")
    canaries = set()
    for secret in core.list_all(SECRET):
        for key, value in (secret.get("data") or {}).items():
            text = base64.b64decode(value).decode("utf-8", "replace").strip()
            if key in ("auth", "password", "admin.password", "server.secretkey", "token"):
                canaries.add(text)
            if key == "config":
                canaries.add(json.loads(text)["bearerToken"])
    assert len(canaries) >= 4
    public = demo.ask_processes(lambda process: " ".join(process.cmdline()))
    for words, expected in SAYING:
        code, out, said = demo.run_here(*words)
        assert code in expected, f"{words}: {code}\n{said}"
        public += [out, said]
    bundle = demo.home / "bundle.tar.gz"
    bundle.unlink(missing_ok=True)
    demo.run_here("doctor", "--bundle", str(bundle))
    with tarfile.open(bundle) as archive:
        members = (archive.extractfile(each) for each in archive)
        public += [each.read().decode("utf-8", "replace") for each in members if each]
    public += [each.read_text("utf-8") for each in demo.state.glob("*.json")]
    public += [each.read_text("utf-8") for each in demo.state.glob("unfinished/*.json")]
    public += [path.read_text(errors="replace") for path in (demo.state / "logs").rglob("*.log*")]
    public.append((demo.workspace / "ucp.yaml").read_text())
    for repository in ("core", "apps"):
        bare = demo.gitops / f"{repository}.git"
        for commit in demo.git(bare, "rev-list", "--all").split():
            public.append(demo.git(bare, "show", "--format=%B", commit))
    found = [canary[:4] + "…" for canary in canaries for text in public if canary in text]
    assert found == []


@pytest.fixture(scope="module")
def theirs(
    demo: Workbench, toolbox: Toolbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TheirEnvironment]:
    """Add an environment on an existing cluster to the topology."""
    with their_environment(demo, tmp_path_factory.mktemp("theirs"), toolbox) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("demo", ["embedded"], indirect=True)
def test_environment_on_an_existing_cluster_is_adopted(
    demo: Workbench, theirs: TheirEnvironment
) -> None:
    environments = {each["name"]: each["cluster"] for each in demo.status()["environments"]}
    cluster = environments[ENVIRONMENT]
    assert cluster == {
        **cluster,
        "provider": "existing",
        "ready": True,
        "registered": True,
        "simulated": False,
    }
    found = theirs.kube.get(DEPLOYMENT, "echo", "echo")
    assert found["spec"]["template"]["spec"]["containers"]
    mark = theirs.kube.get(CONFIG_MAP, MARK, MARK_NAMESPACE)
    assert mark["data"]["name"] == f"demo-{ENVIRONMENT}"
    refuses_another_workspace(demo)


def test_stop_leaves_nothing_running_and_start_restores_everything(
    demo: Workbench, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The stop is killed and continued; so is the start, after whose death the power fails."""
    environments = {each["name"] for each in demo.status()["environments"]}
    theirs = request.getfixturevalue("theirs") if ENVIRONMENT in environments else None
    contexts = demo.contexts()
    ports = {port for _, port in listening(demo)}
    heads = {
        name: demo.git(demo.gitops / f"{name}.git", "rev-parse", "main")
        for name in ("core", "apps")
    }
    before = running(demo)
    uids = demo.uids()
    for name in ("core", "stage"):
        demo.ucp("kubeconfig", name, "--merge")
    merged = contexts | {f"{demo.topology}-core", f"{demo.topology}-stage"}
    assert demo.contexts() == merged
    running_before = of_the_user(demo), engine_processes(demo)
    lasting = [each for each in planned(demo, "start") if each["action"] != "keep"]
    assert demo.real or lasting == []
    announced = planned(demo, "stop")
    for command, going in (
        (("destroy",), f"registration of {demo.topology}-stage"),
        (("recreate", "--env", "stage"), f"cluster {demo.topology}-stage"),
        (("env", "remove", "prod"), f"cluster {demo.topology}-prod"),
        (("app", "remove", "echo"), "Application echo-stage"),
    ):
        goes = [each["object"] for each in planned(demo, *command) if each["action"] == "delete"]
        assert going in goes, command
    assert (of_the_user(demo), engine_processes(demo)) == running_before
    ended = {each["object"] for each in announced if each["action"] == "delete"}
    assert {f"cluster {each}" for each in demo.clusters()} == {
        each["object"]
        for each in announced
        if each["object"].startswith("cluster ") and each["action"] in ("change", "delete")
    }
    if not demo.real:
        assert {f"process {each}" for each in ("redis", "argocd-server", "reconciler")} <= ended
    names = names_of_processes(demo)
    killed_and_continued(demo, plans.stop(), "stop")
    stopped = files(demo.workspace)
    assert {each["action"] for each in planned(demo, "stop")} <= {"keep", "change"}
    coming = planned(demo, "start")
    assert files(demo.workspace) == stopped
    assert demo.processes() == []
    # Embedded clusters keep their data and their keys; those of kind are deleted.
    assert demo.contexts() == (contexts if demo.real else merged)
    assert demo.processes() == []
    if theirs:
        assert theirs.provider.state(NAME).ready
        assert theirs.kube.find(DEPLOYMENT, "echo", "echo"), "what runs there runs on"
    assert demo.clusters() == set()
    assert not ports & {
        each.laddr.port for each in psutil.net_connections("tcp") if each.status == "LISTEN"
    }
    for name, head in heads.items():
        assert demo.git(demo.gitops / f"{name}.git", "rev-parse", "main") == head
    power = nullcontext() if demo.real else power_cut(demo, tmp_path)
    killed_and_continued(demo, plans.start(load(demo.workspace / "ucp.yaml")), "start", power)
    assert running(demo) == before
    made = {each["object"] for each in coming if each["action"] in ("create", "change", "wait")}
    assert {f"cluster {each}" for each in demo.clusters()} <= made
    assert {f"component {each['name']}" for each in demo.status()["components"]} <= made
    if not demo.real:  # kind's clusters are created anew.
        assert demo.uids() == uids
        assert names_of_processes(demo) == names


def killed_and_continued(
    demo: Workbench,
    plan: Plan[StartContext],
    command: str,
    meanwhile: AbstractContextManager[None] | None = None,
) -> None:
    """Kill an embedded topology's command at a point that the seed chooses; run it again.

    meanwhile: entered before that second run.
    """
    killed = not demo.real and cut_somewhere(demo, plan, command, "--yes")
    if killed:
        (left,) = demo.status()["unfinished"]
        assert (left["state"], left["command"].split()[-2:]) == ("killed", [command, "--yes"])
    with meanwhile or nullcontext():
        told = demo.ucp(command, "--yes").stderr
    assert ("continuing from there" in told) is killed
    assert demo.status()["unfinished"] == []


@pytest.mark.slow
@pytest.mark.parametrize("demo", ["embedded"], indirect=True)
def test_existing_cluster_is_left_as_it_was_found(
    demo: Workbench, theirs: TheirEnvironment
) -> None:
    kube, core, cluster = theirs.kube, demo.kube("core"), f"demo-{ENVIRONMENT}"
    demo.ucp("env", "remove", ENVIRONMENT, "--yes", timeout=300)

    def known() -> set[str]:
        return {each["metadata"]["name"] for each in core.list_all(LOCAL_CLUSTER, "ucp-clusters")}

    until("it is let go", lambda: cluster not in known())
    secret = f"cluster-{cluster}"
    until("Argo CD forgets it", lambda: core.find(SECRET, secret, "argocd") is None)
    until("its namespaces are gone", lambda: everything(kube) == theirs.before)
    assert kube.find(CLUSTER_ROLE_BINDING, "k8s-ucp-argocd") is None
    assert kube.find(NAMESPACE, "of-theirs")
    assert theirs.provider.state(NAME).ready


def planned(demo: Workbench, *command: str) -> list[dict[str, str]]:
    """Steps that --plan announces."""
    told = json.loads(demo.ucp(*command, "--plan", "-o", "json").stdout)
    steps: list[dict[str, str]] = told["steps"]
    assert all(each.keys() == {"id", "action", "object", "reason"} for each in steps)
    return steps


def engine_processes(demo: Workbench) -> set[int]:
    """PIDs that only a start or a stop changes."""
    names = {"etcd", "kube-apiserver", "redis-server"}
    found = demo.ask_processes(lambda process: (process.pid, process.name()))
    return {pid for pid, name in found if name in names}


def of_the_user(demo: Workbench) -> dict[str, bytes]:
    """Files that running controllers don't write."""
    journal = demo.state / "journal.json"
    return {
        str(path): path.read_bytes()
        for path in (*demo.workspace.glob("*.*"), *demo.workspace.glob("creds/*"), journal)
        if path.is_file()
    }


def files(folder: Path) -> dict[str, bytes]:
    """Contents of all files in the folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
