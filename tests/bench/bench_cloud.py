"""A warm `ucp start` with both environments on EKS in the simulated cloud, and one without it.

Both begin with the programs built and nothing running, in a new folder, and declare the quote app
with its database for stage and prod. They end with the app Synced and Healthy on both. In the
cloud, this creates two networks, roles, node groups and clusters, with the same sequence of API
calls as in the real one, and two RDS instances with a Postgres behind each; without it, the
databases exist only as Kubernetes objects, and no server runs. The first round also starts both
without a database, and then a team claims one.
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

from k8s_ucp.kube import SYNCER, Kind
from k8s_ucp.reconciler.runtime.conditions import is_true
from tests.bench.bench_start import seconds
from tests.conftest import CACHE
from tests.e2e.world import Workbench, until
from tests.evidence import table, write

Note = Callable[[str, float], None]
SECONDS = 1200.0
"""Timeout of one command; other work on the machine slows it down."""
IN_CLOUD = ("--cloud", "local", "--env", "stage=eks", "--env", "prod=eks")
POSTGRES = Kind("k8s-ucp.io/v1alpha1", "Postgres", "postgreses")
WITH_DATABASE = ("--app", "quote")


def run(rounds: int) -> None:
    """Measure, and write docs/evidence/cloud.md."""
    figures: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        figures.setdefault(name, []).append(value)
        print(f"{name}: {value:.2f}", flush=True)

    folder = Path(tempfile.mkdtemp(prefix="ucp-bench-"))
    try:
        for number in range(rounds):
            _with_database(_world(folder / f"quote{number}"), note)
            _with_database_in_cloud(_world(folder / f"quotes{number}"), note)
        _plain(_world(folder / "plain"), note)
        _in_cloud(_world(folder / "cloud"), note)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    title = "A start with clusters in the simulated cloud"
    write("cloud", title, _sections(figures), command="make bench ARGS=cloud")


def _world(folder: Path) -> Workbench:
    home, workspace = folder / "home", folder / "w"
    home.mkdir(parents=True)
    workspace.mkdir()
    return Workbench(workspace, home, environment={"UCP_CACHE_DIR": str(CACHE)})


def _with_database(world: Workbench, note: Note) -> None:
    try:
        began = _own_cpu()
        note("start and a database s", _start(world, *WITH_DATABASE))
        note("start and a database CPU s", _own_cpu() - began + _cpu(world))
    finally:
        _end(world)


def _with_database_in_cloud(world: Workbench, note: Note) -> None:
    try:
        began = _own_cpu()
        note("start and a database in the cloud s", seconds(lambda: _start_databases(world)))
        note("start and a database in the cloud CPU s", _own_cpu() - began + _cpu(world))
        note("stop in the cloud s", seconds(lambda: world.ucp("stop", "--yes", timeout=SECONDS)))
        note("start again in the cloud s", _start(world))
    finally:
        _end(world)


def _start_databases(world: Workbench) -> None:
    """Wait also until they are Ready and their connections are copied to the app."""
    world.ucp("start", "--yes", *WITH_DATABASE, *IN_CLOUD, timeout=SECONDS)
    core = world.kube("core")

    def are_ready() -> bool:
        found = [*core.list_all(POSTGRES), *core.list_all(SYNCER)]
        return len(found) == 3 and all(is_true(each, "Ready") for each in found)

    until("the databases are ready", are_ready, SECONDS)
    core.close()


def _plain(world: Workbench, note: Note) -> None:
    try:
        note("start s", _start(world))
    finally:
        _end(world)


def _in_cloud(world: Workbench, note: Note) -> None:
    try:
        note("start in the cloud s", _start(world, *IN_CLOUD))
        world.ucp("team", "add", "shop", timeout=SECONDS)
        note("claim s", seconds(lambda: _claim(world)))
    finally:
        _end(world)


def _start(world: Workbench, *words: str) -> float:
    return seconds(lambda: world.ucp("start", "--yes", *words, timeout=SECONDS))


def _own_cpu() -> float:
    """CPU seconds of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cpu(world: Workbench) -> float:
    """CPU seconds of the processes that now run for the topology."""
    found = 0.0
    for each in world.processes():
        with contextlib.suppress(psutil.Error):
            found += sum(each.cpu_times()[:2])
    return found


def _claim(world: Workbench) -> None:
    world.ucp("claim", "new", "database", "orders", "--env", "stage")
    until(
        "the database is ready",
        lambda: '"ready"' in world.ucp("claim", "list", "-o", "json").stdout,
        SECONDS,
    )


def _end(world: Workbench) -> None:
    world.ucp("stop", "--yes")
    world.kill_everything()


def _sections(figures: Mapping[str, list[float]]) -> dict[str, str]:
    median = {name: statistics.median(values) for name, values in figures.items()}

    def ratio(name: str, base: str) -> str:
        return f"{median[name] / median[base]:.2f}"

    spread = [
        [name, len(values), f"{min(values):.2f}", f"{median[name]:.2f}", f"{max(values):.2f}"]
        for name, values in figures.items()
    ]
    rows = [
        [
            "start and a database, in the cloud / without it, time",
            ratio("start and a database in the cloud s", "start and a database s"),
            "≤ 1.6",
        ],
        [
            "start and a database, in the cloud / without it, CPU",
            ratio("start and a database in the cloud CPU s", "start and a database CPU s"),
            "",
        ],
        ["start, in the cloud / without it, time", ratio("start in the cloud s", "start s"), ""],
        [
            "start in the cloud, then a claim of a new team / start, time",
            f"{(median['start in the cloud s'] + median['claim s']) / median['start s']:.2f}",
            "",
        ],
        ["load of the machine, the last 15 minutes", f"{os.getloadavg()[2]:.1f}", ""],
    ]
    return {
        "Goal": table(["what", "median", "goal"], rows),
        "Figures": table(["figure", "runs", "min", "median", "max"], spread),
        "What the figures are": "`start and a database`: `ucp start --yes --app quote`, which "
        "declares the app's database for stage and prod. In the cloud (`--cloud local --env "
        "stage=eks --env prod=eks`) the time runs until both are Ready, each an RDS instance with "
        "its firewall, subnet group and a Postgres that answers, and their connections are "
        "mirrored to the app's clusters. Without it the app's manifests hold the database, whose "
        "pods are simulated like all others: no server is started, and none is waited for.\n\n"
        "`start`: `ucp start --yes`, with the app echo and no database. `claim`: from `ucp claim "
        "new` of a new team to the claim being Ready; the team's namespace, project and "
        "Applications come up in that time, too.",
    }
