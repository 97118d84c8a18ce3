"""SIGKILL before, inside and after every step of every command; a full disk; an unreachable remote.

The points are those of the plans. A command is killed at one, rerun and killed at the next, through
its whole plan; then it runs to its end. The final state must equal the state before, or that of an
uninterrupted command. One topology is used for all commands, and another one in the simulated
cloud, whose ledger shows duplicated and leaked resources.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import shutil
import socket
import subprocess
import tarfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from k8s_ucp import plans
from k8s_ucp.cloud.ledger import CloudLedgerEntry, remaining
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Plan
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.topology import load
from k8s_ucp.workspace import Workspace
from tests.changing_files import paths_below
from tests.conftest import CACHE
from tests.e2e.canaries import leaks, learn
from tests.e2e.conftest import make_world
from tests.e2e.embedded_topology import names_of_processes
from tests.e2e.interruption_points import (
    KILLED,
    MOMENTS,
    RETURN,
    SEED,
    TEARDOWN,
    cut,
    points,
    points_of_steps,
    repeatedly,
    small_disk,
)
from tests.e2e.newer_ucp import installed, newer
from tests.e2e.running_versions import kubernetes_of, pods, versions
from tests.e2e.world import Workbench, until
from tests.evidence import table
from tests.integration.gitops.promotion.git_servers import (
    GitHandler,
    GitServer,
    HttpGit,
    serving,
)
from tests.integration.gitops.promotion.soak import Cases, SoakRecord

CODE = (
    "src/k8s_ucp/plans.py",
    "src/k8s_ucp/engine",
    "tests/e2e/test_interruptions.py",
    "tests/e2e/interrupted_command.py",
    "tests/e2e/interruption_points.py",
)
TOPOLOGY = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  environments: [{name: stage}]
  apps: [{name: echo, image: ealen/echo-server, tag: 0.9.2}]
"""
IN_A_CLOUD = TOPOLOGY.replace(
    "[{name: stage}]", "[{name: stage}, {name: eu, cluster: {provider: eks}, promotesFrom: stage}]"
).replace("spec:", "spec:\n  clouds: {aws: {simulated: true}}")
REMOTE = TOPOLOGY.replace("spec:", "spec:\n  git: {provider: url, core: CORE, apps: APPS}")
PINS = {
    "argocd": "96.0.0",
    "crossplane": "96.0.0",
    "kubernetes": f"{CATALOGUE['kubernetes'].version}6",
}
"""Versions that `make test` doesn't use, which may run at the same time with the same cache."""
FAULT_SECONDS = 15.0
"""Maximum duration of a full disk or an unreachable remote: a start would wait for minutes."""

pytestmark = [
    pytest.mark.soak,
    pytest.mark.usefixtures("toolbox"),
    pytest.mark.timeout(7200),
]


class Interruptions:
    """Records the outcome of all points, command by command."""

    def __init__(self) -> None:
        self.record = SoakRecord("interruptions", "Cut off at every step", CODE, told=_page)
        self.dice = random.Random(SEED)

    def points(self, plan: Plan[StartContext]) -> list[str]:
        return points(plan, self.dice)

    def skip_recorded(self, *cases: str) -> None:
        if all(self.record.has(each) for each in cases):
            pytest.skip("the record has it")

    def add(self, world: Workbench, case: str, facts: dict[str, object]) -> None:
        """Record the outcome of a case, after a check that its commands revealed no secret."""
        assert leaks(world) == []
        secrets = f"0 of {len(world.secrets)}"
        self.record.add(case, {**facts, "secrets": secrets})

    def kill_through(
        self, world: Workbench, chosen: Sequence[str], *words: str
    ) -> dict[str, object]:
        """Kill a command at each point, one run after the other; then let it finish.

        A run that finishes without reaching its point has completed the interrupted work: the next
        run begins anew, and reaches the point.
        """
        began, missed = time.monotonic(), []
        for point in chosen:
            for _ in range(2):
                done = cut(world, point, *words)
                said = f"{point} of {words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
                assert done.returncode in (KILLED, 0), said
                if done.returncode == KILLED:
                    break
            else:
                missed.append(point)
            print(f"{time.monotonic() - began:6.1f} s {point}", flush=True)
        world.ucp(*words, timeout=600)
        assert world.status()["unfinished"] == []
        assert missed == []
        return {
            "points": len(chosen),
            "met": f"{len(chosen)} of {len(chosen)} killed, and continued",
            "seconds": f"{time.monotonic() - began:.0f}",
        }


CASES = (
    "ucp promote",
    "ucp stop",
    "ucp start",
    "ucp recreate --env",
    "ucp upgrade",
    "ucp recreate",
    "ucp destroy, with a cloud",
    "ucp start from nothing, with a cloud",
    "remote away",
    "disk full",
)


FACTS = ("points", "met", "seconds", "same", "secrets")


def _page(cases: Cases) -> str:
    missing = [each for each in CASES if each not in cases]
    rows = [
        (
            f"`{name}`" if name.startswith("ucp ") else name,
            *(found.get(each, "not looked for") for each in FACTS),
        )
        for name, found in cases.items()
    ]
    columns = (
        *("what", "points", "what came of it", "seconds", "the same afterwards"),
        "secrets seen elsewhere",
    )
    return "\n\n".join(
        (
            table(columns, rows),
            "Points are those of the plans: before, inside (at a random one of the first forty "
            "effects, such as a file, a program or a request) and after each step. A command is "
            "killed at a point, run again and killed at the next, through its whole plan, and left "
            "to its end after the last. So no step begins twice from the same half-done state, and "
            "each finds what a kill in the step before it has left. What is compared afterwards "
            "stands in the last column but one; UIDs are those of namespaces, Applications and "
            "LocalClusters. The last one has how many of the topology's keys, tokens and passwords "
            "stood in what these commands said, in command lines, logs, journals, commits, the "
            "support bundle or objects other than Secrets.",
            f"The disk is full, or the remote away, from the begin of each step until the command "
            f"ends, at most {FAULT_SECONDS:.0f} s; then the next command comes, and at the end one "
            "that nothing disturbs. A command that gets to its end in spite of it leaves nothing "
            "to do: the topology is started again for the next step.",
            "Rows are kept from run to run: the commit above is that of the last.",
            *([f"Not run to its end: {', '.join(missing)}."] if missing else []),
        )
    )


@pytest.fixture(scope="module")
def kills() -> Interruptions:
    return Interruptions()


def trees(world: Workbench) -> dict[str, bytes]:
    """Contents of both repositories, without the backup (its encryption differs) and ports."""
    machine = Workspace.at(world.workspace).machine_id(world.topology)
    found = {}
    for name in ("core", "apps"):
        git = ["git", "-C", str(world.gitops / f"{name}.git"), "archive", "main"]
        packed = subprocess.run(git, env=world.env, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            for each in files:
                if content := files.extractfile(each):
                    text = content.read().replace(machine.encode(), b"MACHINE")
                    found[f"{name}/{each.name}"] = re.sub(rb"(127\.0\.0\.1:)\d+", rb"\1PORT", text)
    found.pop("core/backup/state.age", None)
    return found


def is_well(world: Workbench, applications: int = 1) -> bool:
    return world.is_well(clusters="registered", applications=applications)


def start(world: Workbench, *, applications: int = 1) -> None:
    """Start without an interruption."""
    world.ucp("start", "--yes", timeout=600)
    until("well", partial(is_well, world, applications), 300)
    learn(world)


@pytest.fixture(scope="module")
def life(toolbox: object) -> Iterator[Workbench]:
    """A topology with one environment and one app."""
    for world in make_world("w"):
        (world.workspace / "ucp.yaml").write_text(TOPOLOGY)
        yield world


def test_stop_and_start_continue_after_a_kill_at_any_step(
    kills: Interruptions, life: Workbench
) -> None:
    kills.skip_recorded("ucp stop", "ucp start")
    start(life)
    before = trees(life), life.uids("core", "stage"), names_of_processes(life)
    facts = kills.kill_through(life, kills.points(plans.stop()), "stop", "--yes")
    assert life.processes() == []
    kills.add(life, "ucp stop", {**facts, "same": "no process is left"})
    plan = plans.start(load(life.workspace / "ucp.yaml"))
    facts = kills.kill_through(life, kills.points(plan), "start", "--yes")
    until("well", partial(is_well, life), 300)
    assert (trees(life), life.uids("core", "stage"), names_of_processes(life)) == before
    kills.add(life, "ucp start", {**facts, "same": "repositories, UIDs, processes"})


def test_promote_continues_after_a_kill_at_any_effect(
    kills: Interruptions, life: Workbench
) -> None:
    """It has no plan, so it is killed at numbered effects."""
    kills.skip_recorded("ucp promote")
    start(life)
    before, uids = trees(life), life.uids("core", "stage")
    killed, began = 0, time.monotonic()
    for number, moment in enumerate(MOMENTS):
        tag = f"0.9.{number + 3}"
        words = ("promote", "echo", "--env", "stage", "--tag", tag)
        killed += cut(life, moment, *words).returncode == KILLED
        life.ucp(*words)
        log = life.git(life.gitops / "apps.git", "log", "--format=%s", "main")
        assert sum(tag in each for each in log.splitlines()) == 1, log
    assert killed == len(MOMENTS)

    def deployed() -> bool:
        found = life.application("echo-stage")
        return found is not None and any(each.endswith(f":{tag}") for each in found["images"])

    until("the last one is deployed", deployed)
    changed = {name for name, text in trees(life).items() if before.get(name) != text}
    assert changed == {
        each for each in changed if each.startswith("apps/apps/echo/overlays/stage/")
    }
    assert uids.items() <= life.uids("core", "stage").items()
    facts = {
        "points": len(MOMENTS),
        "met": f"{killed} of {len(MOMENTS)} killed, and repeated",
        "seconds": f"{time.monotonic() - began:.0f}",
        "same": "one commit for each tag, all other files, UIDs",
    }
    kills.add(life, "ucp promote", facts)


def test_recreate_of_an_environment_continues_after_a_kill_at_any_step(
    kills: Interruptions, life: Workbench
) -> None:
    kills.skip_recorded("ucp recreate --env")
    start(life)
    before, uids, running = trees(life), life.uids("core"), names_of_processes(life)
    chosen = points_of_steps((*TEARDOWN, *RETURN), kills.dice)
    facts = kills.kill_through(life, chosen, "recreate", "--env", "stage", "--yes")
    until("well", partial(is_well, life), 300)
    assert (trees(life), names_of_processes(life)) == (before, running)
    kept = {place: uid for place, uid in uids.items() if "stage" not in place}
    assert kept.items() <= life.uids("core").items()
    facts["same"] = "repositories, processes, UIDs of all but the environment's"
    kills.add(life, "ucp recreate --env", facts)


def test_upgrade_continues_after_a_kill_at_any_step(kills: Interruptions, life: Workbench) -> None:
    """To newer versions that consist of the same programs."""
    kills.skip_recorded("ucp upgrade")
    start(life)
    uids, apps, running = life.uids("core", "stage"), pods(life, "stage"), names_of_processes(life)
    with installed(CACHE, PINS):
        with newer(life, PINS):
            plan = plans.upgrade(load(life.workspace / "ucp.yaml"))
            facts = kills.kill_through(life, kills.points(plan), "upgrade")
        found = versions(life)
        assert (found["argocd"], found["crossplane"]) == ("v96.0.0", "v96.0.0")
        assert {kubernetes_of(life, each) for each in ("core", "stage")} == {
            f"v{PINS['kubernetes']}"
        }
        until("well", partial(is_well, life), 300)
        assert (life.uids("core", "stage"), pods(life, "stage")) == (uids, apps)
        assert names_of_processes(life) == running
        facts["same"] = "UIDs, pods and their restarts, processes"
        kills.add(life, "ucp upgrade", facts)
        life.ucp("stop", "--yes")
    lose_core(life)


def test_recreate_of_the_core_continues_after_a_kill_at_any_step(
    kills: Interruptions, life: Workbench
) -> None:
    """From an empty machine, with the contents of the repositories."""
    kills.skip_recorded("ucp recreate")
    start(life)
    before, running = trees(life), names_of_processes(life)
    life.ucp("stop", "--yes")
    lose_core(life)
    plan = plans.start(load(life.workspace / "ucp.yaml"))
    # No password was generated here, so no backup exists, and recreate is told to accept that.
    facts = kills.kill_through(life, kills.points(plan), "recreate", "--yes")
    until("well", partial(is_well, life), 300)
    assert (trees(life), names_of_processes(life)) == (before, running)
    kills.add(life, "ucp recreate", {**facts, "same": "repositories, processes"})


def lose_core(world: Workbench) -> None:
    shutil.rmtree(world.workspace / ".ucp")


def test_nothing_grows_with_stops_and_starts(kills: Interruptions, life: Workbench) -> None:
    case = f"{TURNS} stops and starts"
    kills.skip_recorded(case)
    seen: list[dict[str, int]] = []
    began = time.monotonic()
    for _ in range(TURNS + 1):
        start(life)
        seen.append(figures(life))
        print(seen[-1], flush=True)
        life.ucp("stop", "--yes")
        assert life.processes() == []
    # The first start creates what later ones reuse.
    first, last = seen[1], seen[-1]
    assert (last["processes"], last["ports"]) == (first["processes"], first["ports"])
    for name in ("open files", "files in .ucp", "MiB of memory", "MiB in .ucp"):
        assert last[name] <= 1.25 * first[name] + 10, f"{name}: {seen}"
    facts = {
        "points": f"{TURNS} turns",
        "met": "; ".join(f"{name} {first[name]} → {last[name]}" for name in first),
        "seconds": f"{time.monotonic() - began:.0f}",
        "same": "no process is left after any stop",
    }
    kills.add(life, case, facts)


TURNS = 10


def figures(world: Workbench) -> dict[str, int]:
    """Figures that could grow from one start to the next."""
    found = world.processes()
    listening = [
        each
        for process in found
        for each in process.net_connections(kind="tcp")
        if each.status == "LISTEN"
    ]
    files = [each for each in paths_below(world.state) if each.is_file()]
    return {
        "processes": len(found),
        "open files": sum(each.num_fds() for each in found),
        "ports": len(listening),
        "files in .ucp": len(files),
        "MiB of memory": round(sum(each.memory_info().rss for each in found) / 2**20),
        "MiB in .ucp": round(sum(each.stat().st_size for each in files) / 2**20),
    }


def test_destroy_and_start_in_a_cloud_continue_after_a_kill_at_any_step(
    kills: Interruptions,
) -> None:
    """Destroyed, and started again from nothing, at every step; then destroyed for good."""
    cases = ("ucp destroy, with a cloud", "ucp start from nothing, with a cloud")
    kills.skip_recorded(*cases)
    for world in make_world("w"):
        (world.workspace / "ucp.yaml").write_text(IN_A_CLOUD)
        start(world, applications=2)
        before = trees(world), names_of_processes(world), kinds(world)
        words = ("destroy", "--yes", "--delete-data")
        facts = kills.kill_through(world, kills.points(plans.destroy()), *words)
        assert world.processes() == []
        assert not list((world.state / "clusters").glob("demo-*"))
        assert ledger(world) == Counter()
        made = before[2].total()
        kills.add(world, cases[0], {**facts, "same": f"0 of {made} resources left by the ledger"})
        plan = plans.start(load(world.workspace / "ucp.yaml"))
        facts = kills.kill_through(world, kills.points(plan), "start", "--yes")
        until("well", partial(is_well, world, 2), 300)
        assert (trees(world), names_of_processes(world), kinds(world)) == before
        same = f"repositories, processes, {made} resources by the ledger (0 twice)"
        world.ucp(*words, timeout=600)
        assert ledger(world) == Counter()
        kills.add(world, cases[1], {**facts, "same": same})


def kinds(world: Workbench) -> Counter[str]:
    """Number of resources in the cloud, by kind."""
    return Counter(kind for _, kind, _ in ledger(world).elements())


def ledger(world: Workbench) -> Counter[tuple[str, str, str]]:
    """Resources in the simulated cloud: creations minus deletions."""
    lines = (world.state / "components/cloud/ledger.jsonl").read_text("utf-8").splitlines()
    return remaining([CloudLedgerEntry(**json.loads(each)) for each in lines])


@dataclass
class Faults:
    """A fault from a point on, until the command has ended or for a limited time."""

    variables: dict[str, str]
    file: Path
    """File that exists while the fault lasts."""
    points: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    met: bool = False
    """Whether the fault occurred in the last run."""

    def meet_at_each(self, world: Workbench, chosen: Sequence[str], *words: str) -> None:
        """Run a command with the fault at each point; start again if it had nothing left to do."""
        began = time.monotonic()
        for point in chosen:
            if not self.meet(world, point, *words):
                world.ucp("start", "--yes", timeout=600)
                assert self.meet(world, point, *words), f"{point} of {words} was not met"
            print(f"{time.monotonic() - began:6.1f} s {point}", flush=True)
        world.ucp(*words, timeout=600)

    def meet(self, world: Workbench, point: str, *words: str) -> bool:
        """Return whether the command reached the point."""
        with self.ending():
            done = cut(world, point, *words, **self.variables)
        said = f"{point} of {words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert done.returncode in (0, 1), said
        print(done.returncode, done.stderr[-300:], flush=True)
        if "but is needed to find" in done.stderr:
            world.ucp("start", "--yes", timeout=600)  # Its own advice: a full disk ends etcd.
        if self.met:
            self.points[words[0]] += 1
            self.failed[words[0]] += done.returncode
        return self.met

    @contextmanager
    def ending(self) -> Iterator[None]:
        """End the fault after FAULT_SECONDS, or with the command."""
        since = 0.0

        def look() -> None:
            nonlocal since
            since = since or (time.monotonic() if self.file.exists() else 0.0)
            if since and time.monotonic() - since > FAULT_SECONDS:
                self.file.unlink(missing_ok=True)

        try:
            with repeatedly(look, 0.2):
                yield
        finally:
            self.met = since > 0 or self.file.exists()
            self.file.unlink(missing_ok=True)


def live_with(faults: Faults, world: Workbench, *, promotes: bool) -> dict[str, object]:
    """Start from nothing, promote, stop and destroy; return the results for the page."""
    began = time.monotonic()

    def before(plan: Plan[StartContext]) -> list[str]:
        return [f"before:{each.step.id}" for each in plan.tasks]

    topology = load(world.workspace / "ucp.yaml")
    faults.meet_at_each(world, before(plans.start(topology)), "start", "--yes")
    until("well", partial(is_well, world), 300)
    learn(world)
    uids, running = world.uids("core", "stage"), names_of_processes(world)
    if promotes:
        words = ("promote", "echo", "--env", "stage", "--tag", "0.9.3")
        faults.meet_at_each(world, [f"inside:{each}:command" for each in (1, 4, 16)], *words)
    faults.meet_at_each(world, before(plans.stop()), "stop", "--yes")
    assert world.processes() == []
    start(world)
    assert world.uids("core", "stage") == uids
    assert names_of_processes(world) == running
    words = ("destroy", "--yes", "--delete-data")
    faults.meet_at_each(world, before(plans.destroy()), *words)
    assert world.processes() == []
    assert not list((world.state / "clusters").glob("demo-*"))
    told = ", ".join(f"{name} {number}" for name, number in faults.points.items())
    return {
        "points": told,
        "met": f"{faults.points.total()} of {faults.points.total()} continued; "
        f"{faults.failed.total()} commands had failed",
        "seconds": f"{time.monotonic() - began:.0f}",
        "same": "UIDs, processes; nothing is left after the end",
    }


class AwayHandler(GitHandler):
    """Closes every connection while the file `away` exists beside the repositories."""

    def route(self) -> None:
        if (self.server.root / "away").exists():
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        super().route()


def test_every_command_recovers_from_an_unreachable_remote(
    kills: Interruptions, tmp_path: Path
) -> None:
    case = "remote away"
    kills.skip_recorded(case)
    host = tmp_path / "host"
    for name in ("core", "apps"):
        bare = host / f"{name}.git"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(bare)], check=True)
        subprocess.run(["git", "-C", str(bare), "config", "http.receivepack", "true"], check=True)
    with serving(GitServer(host, dict(os.environ), False, AwayHandler)) as server:
        urls = {each: HttpGit(server).url(host / f"{each}.git") for each in ("core", "apps")}
        faults = Faults({"UCP_MARKS": str(host / "away")}, host / "away")
        for world in make_world("w"):
            text = REMOTE.replace("CORE", urls["core"]).replace("APPS", urls["apps"])
            (world.workspace / "ucp.yaml").write_text(text)
            kills.add(world, case, live_with(faults, world, promotes=True))


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_every_command_recovers_from_a_full_disk(kills: Interruptions) -> None:
    case = "disk full"
    kills.skip_recorded(case)
    for world in make_world("w"):
        with small_disk(world.workspace, "2g"):
            filler = world.workspace / "filler"
            faults = Faults({"UCP_FILLS": str(filler)}, filler)
            (world.workspace / "ucp.yaml").write_text(TOPOLOGY)
            kills.add(world, case, live_with(faults, world, promotes=False))
