"""A warm `ucp start` with both environments on EKS in the simulated cloud, beside a plain one.

Both begin with the programs built and nothing running, in a folder that is new, and end with echo
Synced and Healthy on stage and prod. In the cloud that takes two networks, roles, node groups and
clusters, made by the same order of calls as in the real one.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from tests.bench.bench_start import seconds
from tests.conftest import CACHE
from tests.e2e.world import World, until
from tests.evidence import table, write

Note = Callable[[str, float], None]
SECONDS = 1200.0
"""For one command; other work on the machine makes it slow."""
IN_CLOUD = ("--cloud", "local", "--env", "stage=eks", "--env", "prod=eks")


def run(rounds: int) -> None:
    """Measure, and write docs/evidence/cloud.md."""
    figures: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        figures.setdefault(name, []).append(value)
        print(f"{name}: {value:.2f}", flush=True)

    folder = Path(tempfile.mkdtemp(prefix="ucp-bench-"))
    try:
        for number in range(rounds):
            _plain(_world(folder / f"plain{number}"), note)
            _in_cloud(_world(folder / f"cloud{number}"), note)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    title = "A start with clusters in the simulated cloud"
    write("cloud", title, _sections(figures), command="make bench ARGS=cloud")


def _world(folder: Path) -> World:
    home, workspace = folder / "home", folder / "w"
    home.mkdir(parents=True)
    workspace.mkdir()
    return World(workspace, home, environment={"UCP_CACHE_DIR": str(CACHE)})


def _plain(world: World, note: Note) -> None:
    try:
        began = _own_cpu()
        note("start s", _start(world))
        note("start CPU s", _own_cpu() - began + _cpu(world))
    finally:
        _end(world)


def _in_cloud(world: World, note: Note) -> None:
    try:
        began = _own_cpu()
        note("start in the cloud s", _start(world, *IN_CLOUD))
        note("start in the cloud CPU s", _own_cpu() - began + _cpu(world))
        world.ucp("team", "add", "shop", timeout=SECONDS)
        note("database s", seconds(lambda: _database(world)))
        note("stop in the cloud s", seconds(lambda: world.ucp("stop", "--yes", timeout=SECONDS)))
        note("start again in the cloud s", _start(world))
    finally:
        _end(world)


def _start(world: World, *words: str) -> float:
    return seconds(lambda: world.ucp("start", "--yes", *words, timeout=SECONDS))


def _own_cpu() -> float:
    """Seconds of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cpu(world: World) -> float:
    """Seconds of what runs for the topology now."""
    found = 0.0
    for each in world.processes():
        with contextlib.suppress(psutil.Error):
            found += sum(each.cpu_times()[:2])
    return found


def _database(world: World) -> None:
    world.ucp("claim", "new", "database", "orders", "--env", "stage")
    until(
        "the database is ready",
        lambda: '"ready"' in world.ucp("claim", "list", "-o", "json").stdout,
        SECONDS,
    )


def _end(world: World) -> None:
    world.ucp("stop", "--yes")
    world.kill_everything()


def _sections(figures: Mapping[str, list[float]]) -> dict[str, str]:
    median = {name: statistics.median(values) for name, values in figures.items()}
    in_cloud, plain = median["start in the cloud s"], median["start s"]
    whole = in_cloud + median["database s"]
    spread = [
        [name, len(values), f"{min(values):.2f}", f"{median[name]:.2f}", f"{max(values):.2f}"]
        for name, values in figures.items()
    ]
    return {
        "Goal": table(
            ["what", "median", "goal"],
            [
                [
                    "start in the cloud and a database / start, time",
                    f"{whole / plain:.2f}",
                    "≤ 1.6",
                ],
                ["start in the cloud / start, time", f"{in_cloud / plain:.2f}", ""],
                [
                    "start in the cloud / start, CPU",
                    f"{median['start in the cloud CPU s'] / median['start CPU s']:.2f}",
                    "",
                ],
                ["load of the machine, the last 15 minutes", f"{os.getloadavg()[2]:.1f}", ""],
            ],
        ),
        "Figures": table(["figure", "runs", "min", "median", "max"], spread),
        "What the figures are": "`database s`: from `ucp claim new` to the claim being Ready, with "
        "its firewall, subnet group and a real Postgres behind the endpoint.",
    }
