"""This checkout and the commit before its modules moved: two wheels, in turn, in one run."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tests.bench.bench_render import APPS
from tests.bench.bench_start import memory, seconds
from tests.conftest import CACHE
from tests.e2e.earlier_ucp import BEFORE, ROOT, source_of
from tests.e2e.wheels import install_wheel
from tests.e2e.world import Workbench
from tests.evidence import table, write

HELP_RUNS, RENDER_RUNS = 10, 3
UNITS = {
    "ucp --help": "ms",
    f"ucp render, {APPS} apps": "s",
    "warm start": "s",
    "start again": "s",
    "memory": "MiB",
    "stop": "s",
}


def run(rounds: int) -> None:
    """Measure, and write docs/evidence/earlier.md."""
    figures: dict[tuple[str, str], list[float]] = {}

    def note(what: str, version: str, value: float) -> None:
        figures.setdefault((what, version), []).append(value)
        print(f"{what}, {version}: {value:.2f} {UNITS[what]}", flush=True)

    folder = Path(tempfile.mkdtemp(prefix="ucp-bench-"))
    try:
        worlds = {
            "earlier": _installed(folder / "earlier", source_of(BEFORE, folder)),
            "now": _installed(folder / "now", ROOT),
        }
        for _ in range(HELP_RUNS):
            for version, world in worlds.items():
                took = seconds(partial(world.ucp, "--help"))
                note("ucp --help", version, took * 1000)
        for world in worlds.values():
            (world.workspace / "ucp.yaml").write_text(_many_apps())
        for number in range(RENDER_RUNS):
            for version, world in worlds.items():
                out = str(folder / f"{version}{number}")
                took = seconds(partial(world.ucp, "render", "--out", out))
                note(f"ucp render, {APPS} apps", version, took)
        for number in range(rounds):
            for version, world in worlds.items():
                _start(_beside(world, folder / f"{version}-{number}"), version, note)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    write(
        "earlier",
        "This version beside the one before its modules moved",
        {"Ratios of the medians (goal: at most 1, within the noise)": _ratios(figures)},
        command="make bench ARGS=earlier",
    )


def _installed(folder: Path, source: Path) -> Workbench:
    world = _world(folder)
    install_wheel(world, "venv", source)
    return world


def _world(folder: Path) -> Workbench:
    (folder / "w").mkdir(parents=True)
    (folder / "home").mkdir()
    return Workbench(folder / "w", folder / "home", environment={"UCP_CACHE_DIR": str(CACHE)})


def _beside(installed: Workbench, folder: Path) -> Workbench:
    """A new workspace for the same installed command."""
    world = _world(folder)
    world.command = installed.command
    world.environment["PATH"] = installed.environment["PATH"]
    return world


def _start(world: Workbench, version: str, note: Callable[[str, str, float], None]) -> None:
    try:
        note("warm start", version, seconds(lambda: world.ucp("start", "--yes")))
        note("memory", version, memory(world.workspace))
        note("start again", version, seconds(lambda: world.ucp("start", "--yes")))
        note("stop", version, seconds(lambda: world.ucp("stop", "--yes")))
    finally:
        world.ucp("stop", "--yes")
        world.kill_everything()


def _many_apps() -> str:
    head = (
        "apiVersion: k8s-ucp.io/v1alpha1\nkind: Topology\nmetadata: {name: big}\nspec:\n"
        "  environments: [{name: stage}, {name: prod, promotesFrom: stage}]\n  apps:\n"
    )
    return head + "".join(
        f"    - {{name: app-{number}, image: registry.example.org/app-{number}, tag: '1.0',"
        f" hosts: [app-{number}]}}\n"
        for number in range(APPS)
    )


def _ratios(figures: Mapping[tuple[str, str], list[float]]) -> str:
    rows = []
    for what, unit in UNITS.items():
        before, now = (statistics.median(figures[what, version]) for version in ("earlier", "now"))
        runs = len(figures[what, "now"])
        rows.append(
            [what, runs, f"{before:.2f} {unit}", f"{now:.2f} {unit}", f"{now / before:.2f}"]
        )
    return table(["what", "runs of each", "earlier", "now", "now / earlier"], rows)
