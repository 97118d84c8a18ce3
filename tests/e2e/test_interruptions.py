"""SIGKILL before, inside and after every step of every command; a full disk; a remote that is away.

The points are those of the plans. A command is killed at one, run again and killed at the next, and
so on through its plan; then it is left to its end. What is there afterwards is compared with what
the same commands make that nobody interrupts.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import socket
import subprocess
import tarfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from k8s_ucp import plans
from k8s_ucp.cloud.ledger import CloudLedgerEntry, remaining
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Plan
from k8s_ucp.topology import load
from k8s_ucp.workspace import Workspace
from tests.e2e.conftest import make_world
from tests.e2e.killing import KILLED, cut, points, points_of, small_disk
from tests.e2e.test_faults import names_of_processes
from tests.e2e.world import World, until
from tests.evidence import table
from tests.integration.gitops.promotion.git_servers import (
    GitHandler,
    GitServer,
    HttpGit,
    serving,
)
from tests.integration.gitops.promotion.soak import Cases, SoakRecord

CHAINS = 3
"""Of kills through all commands, each with other moments inside the steps."""
CODE = (
    "src/k8s_ucp/plans.py",
    "src/k8s_ucp/engine",
    "src/k8s_ucp/steps",
    "tests/e2e/test_interruptions.py",
    "tests/e2e/cut_off.py",
    "tests/e2e/killing.py",
)

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("toolbox")]


@dataclass
class Tally:
    """What became of the points, noted command by command: a life takes long on a busy machine."""

    case: str
    record: SoakRecord
    commands: int = 0

    def kill_through(self, world: World, points: Sequence[str], *words: str) -> None:
        """Kill a command at each point, one run after the other; then leave it to its end."""
        killed, ended = 0, []
        for point in points:
            done = cut(world, point, *words)
            said = f"{point} of {words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
            assert done.returncode in (KILLED, 0), said
            if done.returncode == 0:
                # It had nothing to do there.
                ended.append(point)
                continue
            killed += 1
        world.ucp(*words, timeout=600)
        self.commands += 1
        facts = {"points": len(points), "met": f"{killed} killed", "note": ", ".join(ended)}
        self.record.add(f"{self.case}, {self.commands}: ucp {' '.join(words)}", facts)


def trees(world: World) -> dict[str, bytes]:
    """What both repositories hold, wherever they lie. The backup is encrypted anew each time."""
    machine = Workspace.at(world.workspace).machine_id(world.topology)
    found = {}
    for name in ("core", "apps"):
        git = ["git", "-C", str(world.gitops / f"{name}.git"), "archive", "main"]
        packed = subprocess.run(git, env=world.env, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            for each in files:
                if content := files.extractfile(each):
                    text = content.read().replace(str(world.workspace).encode(), b"WORKSPACE")
                    found[f"{name}/{each.name}"] = text.replace(machine.encode(), b"MACHINE")
    del found["core/backup/state.age"]
    return found


class AwayHandler(GitHandler):
    """Breaks every connection while the file `away` lies beside the repositories."""

    def route(self) -> None:
        if (self.server.root / "away").exists():
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        super().route()


def ledger(world: World) -> Counter[tuple[str, str, str]]:
    """What is in the simulated cloud: made more often than deleted."""
    told = json.loads(world.ucp("cloud", "ledger", "-o", "json").stdout)
    return remaining([CloudLedgerEntry(**each) for each in told])


def kept(uids: dict[str, str], *, without: str) -> dict[str, str]:
    return {place: uid for place, uid in uids.items() if without not in place}


@pytest.fixture(scope="module")
def record() -> SoakRecord:
    return SoakRecord("interruptions", "Cut off at every step", CODE, told=_page)


def _page(cases: Cases) -> str:
    rows = [
        (name, found["points"], found["met"], found.get("note") or "")
        for name, found in cases.items()
    ]
    columns = ("what", "points of the plan", "met", "came to its end before")
    return (
        f"{table(columns, rows)}\n\nEach command was cut off at a point, run again and cut off at "
        "the next, through its whole plan, and left to its end after the last. A life whose row "
        "says *same end state* was compared with one that nobody interrupts: repositories, "
        "processes, UIDs of what need not be made anew, the cloud's ledger (0 twice, 0 left)."
    )


@dataclass
class Faults:
    """What went wrong, from a point on, until the command had ended."""

    variables: dict[str, str]
    fault: Path
    points: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)

    def meet_at_each(self, world: World, points: Sequence[str], *words: str) -> None:
        for point in points:
            done = cut(world, point, *words, **self.variables)
            self.fault.unlink(missing_ok=True)
            said = f"{point} of {words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
            assert done.returncode in (0, 1), said
            self.points[words[0]] += 1
            self.failed[words[0]] += done.returncode
        world.ucp(*words, timeout=600)


@dataclass
class Story:
    """The commands in a life of a topology, with what has to be true after each."""

    world: World
    do: Callable[..., None]
    """(points, words…): run a command, interrupted at these points."""
    dice: random.Random
    whens: tuple[str, ...] = ("before", "inside", "after")
    """Where commands are interrupted."""

    def points(self, plan: Plan[StartContext]) -> list[str]:
        return [each for each in points(plan, self.dice) if each.startswith(self.whens)]

    def start(self, *flags: str, environments: Sequence[str]) -> None:
        if flags:
            # It writes the file first, and from that the plan is known.
            cut(self.world, "before:install-tools", "start", "--yes", *flags)
        topology = load(self.world.workspace / "ucp.yaml")
        self.do(self.points(plans.start(topology)), "start", "--yes")
        count = len(environments)
        until("well", lambda: self.world.is_well(clusters="registered", applications=count), 300)

    def stop(self) -> None:
        self.do(self.points(plans.stop()), "stop", "--yes")
        assert self.world.processes() == []

    def destroy(self) -> None:
        self.do(self.points(plans.destroy()), "destroy", "--yes", "--delete-data")
        assert self.world.processes() == []
        assert not list((self.world.state / "clusters").glob("demo-*"))

    def promote(self, tag: str) -> None:
        words = ("promote", "echo", "--env", "stage", "--tag", tag)
        moments = [f"inside:{each}:command" for each in (1, 4, 9, 16, 25, 36)]
        self.do(moments, *words)
        bare = self.world.gitops / "apps.git"
        told = self.world.git(bare, "log", "--format=%h", f"--grep={tag}", "-F", "main")
        assert len(told.splitlines()) == 1
        until("it is deployed", lambda: self.has(tag))

    def has(self, tag: str) -> bool:
        found = self.world.application("echo-stage")
        return found is not None and any(each.endswith(f":{tag}") for each in found["images"])

    def recreate_stage(self) -> None:
        steps = ["install-tools", "publish-repositories", "await-clusters-gone"]
        steps += ["publish-repositories#2", "publish-repositories#3", "await-environments"]
        steps += ["await-applications"]
        chosen = [point for each in steps for point in points_of(each, self.dice)]
        self.do(chosen, "recreate", "--env", "stage", "--yes")

    def recreate_core(self) -> None:
        self.world.ucp("stop", "--yes")
        shutil.rmtree(self.world.workspace / ".ucp")
        topology = load(self.world.workspace / "ucp.yaml")
        self.do(self.points(plans.start(topology)), "recreate")


def a_life_on_this_machine(story: Story) -> dict[str, object]:
    """Every command but upgrade, on an embedded core with one environment."""
    world = story.world
    found: dict[str, object] = {}

    def well() -> None:
        until("well", lambda: world.is_well(clusters="registered", applications=1), 300)

    story.start("--env", "stage=embedded", "--app", "echo", environments=["stage"])
    found["after the start"] = (trees(world), names_of_processes(world))
    uids = world.uids("core", "stage")
    story.promote("0.9.3")
    assert kept(world.uids("core", "stage"), without="-") == kept(uids, without="-")
    found["promoted"] = trees(world)
    story.stop()
    story.start(environments=["stage"])
    assert world.uids("core", "stage") == uids
    found["started again"] = (trees(world), names_of_processes(world))
    story.recreate_stage()
    well()
    assert kept(world.uids("core"), without="stage") == kept(
        {place: uid for place, uid in uids.items() if place.startswith("core/")}, without="stage"
    )
    found["stage recreated"] = (trees(world), names_of_processes(world))
    story.recreate_core()
    well()
    found["core recreated"] = (trees(world), names_of_processes(world))
    story.destroy()
    found["destroyed"] = trees(world)
    return found


def a_life_in_a_cloud(story: Story) -> dict[str, object]:
    """What a start makes in the simulated cloud, and a teardown leaves of it."""
    world = story.world
    found: dict[str, object] = {}
    flags = ("--cloud", "local", "--env", "stage=embedded", "--env", "eu=eks", "--app", "echo")
    story.start(*flags, environments=["stage", "eu"])
    there = ledger(world)
    found["started"] = (
        trees(world),
        names_of_processes(world),
        Counter(kind for _, kind, _ in there.elements()),
    )
    uids = world.uids("core", "stage")
    story.stop()
    story.start(environments=["stage", "eu"])
    assert world.uids("core", "stage") == uids
    assert ledger(world) == there
    text = world.state / "components/cloud/ledger.jsonl"
    story.destroy()
    entries = [CloudLedgerEntry(**json.loads(each)) for each in text.read_text().splitlines()]
    assert remaining(entries) == Counter()
    return found


LIVES = {"on this machine": a_life_on_this_machine, "in a cloud": a_life_in_a_cloud}


@pytest.fixture(scope="module")
def uninterrupted() -> Callable[[str], dict[str, object]]:
    """What each life makes where nobody interrupts it, once."""
    found: dict[str, dict[str, object]] = {}

    def of(life: str) -> dict[str, object]:
        if life not in found:
            for world in make_world("w"):
                story = Story(world, partial(_to_the_end, world), random.Random(0))
                found[life] = LIVES[life](story)
        return found[life]

    return of


def _to_the_end(world: World, _: Sequence[str], *words: str) -> None:
    world.ucp(*words, timeout=600)


TWO_REPOSITORIES = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {{name: demo}}
spec:
  git: {{provider: url, core: {core}, apps: {apps}}}
  environments: [{{name: stage}}]
  apps: [{{name: echo, image: ealen/echo-server, tag: 0.9.2}}]
"""


ONE_ENVIRONMENT = TWO_REPOSITORIES.format(core="", apps="").replace(
    "  git: {provider: url, core: , apps: }\n", ""
)


def a_short_life(story: Story) -> None:
    """Started, stopped, started and destroyed, with the file that is there."""
    world = story.world
    story.start(environments=["stage"])
    uids = world.uids("core", "stage")
    story.stop()
    story.start(environments=["stage"])
    assert world.uids("core", "stage") == uids
    story.destroy()


def told(faults: Faults) -> dict[str, object]:
    """For the page."""
    return {
        "points": ", ".join(f"{name} {number}" for name, number in faults.points.items()),
        "met": f"{faults.points.total()}, {faults.failed.total()} commands failed; same end state",
    }


@pytest.mark.timeout(7200)
def test_a_remote_that_is_away_at_every_step(record: SoakRecord, tmp_path: Path) -> None:
    case = "remote away"
    if record.has(case):
        pytest.skip("the record has it")
    host = tmp_path / "host"
    for name in ("core", "apps"):
        bare = host / f"{name}.git"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(bare)], check=True)
        subprocess.run(["git", "-C", str(bare), "config", "http.receivepack", "true"], check=True)
    with serving(GitServer(host, dict(os.environ), False, AwayHandler)) as server:
        urls = {each: HttpGit(server).url(host / f"{each}.git") for each in ("core", "apps")}
        faults = Faults({"UCP_MARKS": str(host / "away")}, host / "away")
        for world in make_world("w"):
            (world.workspace / "ucp.yaml").write_text(TWO_REPOSITORIES.format(**urls))
            story = Story(
                world, partial(faults.meet_at_each, world), random.Random(1), whens=("before",)
            )
            a_short_life(story)
    record.add(case, told(faults))


@pytest.mark.timeout(7200)
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_at_every_step(record: SoakRecord) -> None:
    case = "disk full"
    if record.has(case):
        pytest.skip("the record has it")
    for world in make_world("w"):
        with small_disk(world.workspace, "2g"):
            filler = world.workspace / "filler"
            faults = Faults({"UCP_FILLS": str(filler)}, filler)
            (world.workspace / "ucp.yaml").write_text(ONE_ENVIRONMENT)
            story = Story(
                world, partial(faults.meet_at_each, world), random.Random(2), whens=("before",)
            )
            a_short_life(story)
    record.add(case, told(faults))


TURNS = 10


def figures(world: World) -> dict[str, int]:
    """What may grow from one start to the next."""
    found = world.processes()
    listening = [
        each
        for process in found
        for each in process.net_connections(kind="tcp")
        if each.status == "LISTEN"
    ]
    return {
        "processes": len(found),
        "open files": sum(each.num_fds() for each in found),
        "ports": len(listening),
        "files in .ucp": sum(each.is_file() for each in world.state.rglob("*")),
        "MiB of memory": round(sum(each.memory_info().rss for each in found) / 2**20),
        "MiB in .ucp": round(
            sum(each.stat().st_size for each in world.state.rglob("*") if each.is_file()) / 2**20
        ),
    }


@pytest.mark.timeout(7200)
def test_nothing_grows_with_stops_and_starts(record: SoakRecord) -> None:
    seen: list[dict[str, int]] = []
    for world in make_world("w"):
        (world.workspace / "ucp.yaml").write_text(ONE_ENVIRONMENT)
        for _ in range(TURNS + 1):
            world.ucp("start", "--yes", timeout=600)
            until("well", partial(world.is_well, clusters="registered", applications=1), 300)
            seen.append(figures(world))
            world.ucp("stop", "--yes")
            assert world.processes() == []
    # The first start makes what later ones find.
    first, last = seen[1], seen[-1]
    record.add(
        f"{TURNS} stops and starts",
        {
            "points": f"{TURNS} turns",
            "met": "; ".join(f"{name} {first[name]} → {last[name]}" for name in first),
        },
    )
    assert (last["processes"], last["ports"]) == (first["processes"], first["ports"])
    for name in ("open files", "files in .ucp", "MiB of memory", "MiB in .ucp"):
        assert last[name] <= 1.25 * first[name] + 10, f"{name}: {seen}"


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("chain", range(CHAINS))
@pytest.mark.parametrize("life", LIVES)
def test_killed_at_every_step(
    life: str,
    chain: int,
    record: SoakRecord,
    uninterrupted: Callable[[str], dict[str, object]],
) -> None:
    case = f"SIGKILL, {life}, {chain + 1}"
    if record.has(case):
        pytest.skip("the record has it")
    tally = Tally(case, record)
    for world in make_world("w"):
        do = partial(tally.kill_through, world)
        found = LIVES[life](Story(world, do, random.Random(chain)))
        assert found == uninterrupted(life)
    record.add(case, {"points": "all of the above", "met": "same end state"})
