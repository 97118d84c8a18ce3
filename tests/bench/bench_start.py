"""A warm `ucp start` and a hand-written baseline script (the floor), in turn, and later commands.

Both begin with the programs built and nothing running, in a new folder, and end with echo Synced
and Healthy on stage and prod, and Crossplane ready.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from k8s_ucp.tools.catalogue import EMBEDDED
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.toolbox import Toolbox
from tests.bench.process_memory import memory_by_process, rows
from tests.conftest import CACHE
from tests.e2e.world import Workbench
from tests.evidence import table, write

Note = Callable[[str, float], None]
Weigh = Callable[[str, Path], None]
Held = Mapping[str, list[Mapping[str, float]]]
"""MiB by process, for each run of `floor` and of `start`."""
FLOOR = Path(__file__).with_name("floor.sh")
PROGRAMS = (
    "argocd",
    "crossplane",
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubectl",
    "kustomize",
    "kwok",
    "kwokctl",
    "redis-server",
)


def run(rounds: int) -> None:
    """Measure, and write docs/evidence/start.md."""
    toolbox = Installer(CACHE, lambda event: None).install(EMBEDDED)
    figures: dict[str, list[float]] = {}
    held: Held = {"floor": [], "start": []}

    def note(name: str, value: float) -> None:
        figures.setdefault(name, []).append(value)
        print(f"{name}: {value:.2f}", flush=True)

    def weigh(which: str, folder: Path) -> None:
        held[which].append(memory_by_process(folder))
        note(f"{which} MiB", sum(held[which][-1].values()))

    folder = Path(tempfile.mkdtemp(prefix="ucp-bench-"))
    try:
        for number in range(rounds):
            _floor(toolbox, folder / f"floor{number}", note, weigh)
            _start(folder / f"ucp{number}", note, weigh)
        for _ in range(max(5, rounds)):
            note("ucp --help s", seconds(lambda: _ucp("--help")))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    write("start", "Warm start beside the floor", _sections(figures, held), command="make bench")


def _floor(toolbox: Toolbox, work: Path, note: Note, weigh: Weigh) -> None:
    programs = work / "bin"
    programs.mkdir(parents=True)
    for name in PROGRAMS:
        (programs / name).symlink_to(toolbox.path(name))
    env = {
        **os.environ,
        "BIN": str(programs),
        "ARGOCD": str(toolbox.module("argocd")),
        "CROSSPLANE": str(toolbox.module("crossplane")),
    }

    def floor(action: str) -> None:
        subprocess.run([FLOOR, action, work], env=env, check=True, capture_output=True, timeout=180)

    try:
        note("floor s", seconds(lambda: floor("up")))
        weigh("floor", work)
    finally:
        floor("down")


def _start(work: Path, note: Note, weigh: Weigh) -> None:
    home, workspace = work / "home", work / "w"
    home.mkdir(parents=True)
    workspace.mkdir()
    world = Workbench(workspace, home, environment={"UCP_CACHE_DIR": str(CACHE)})
    try:
        note("start s", seconds(lambda: world.ucp("start", "--yes")))
        weigh("start", workspace)
        note("rerun s", seconds(lambda: world.ucp("start", "--yes")))
        note("stop s", seconds(lambda: world.ucp("stop", "--yes")))
        note("start again s", seconds(lambda: world.ucp("start", "--yes")))
    finally:
        world.ucp("stop", "--yes")
        world.kill_everything()


def _ucp(*words: str) -> None:
    program = Path(sys.executable).with_name("ucp")
    subprocess.run([program, *words], check=True, capture_output=True)


def seconds(action: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    began = time.monotonic()
    action()
    return time.monotonic() - began


def memory(folder: Path) -> float:
    """MiB of all processes that belong to a folder; shared pages are divided among them (PSS)."""
    return sum(memory_by_process(folder).values())


def _medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = {name for each in runs for name in each}
    return {name: statistics.median(each.get(name, 0) for each in runs) for name in names}


def _sections(figures: Mapping[str, list[float]], held: Held) -> dict[str, str]:
    median = {name: statistics.median(values) for name, values in figures.items()}
    ratios = [
        [
            "start / floor, time",
            f"{median['start s'] / median['floor s']:.2f}",
            "≤ 0.75",
        ],
        [
            "start / floor, memory",
            f"{median['start MiB'] / median['floor MiB']:.2f}",
            "≤ 1.1",
        ],
        ["rerun of a finished start", f"{median['rerun s']:.2f} s", "≤ 2 s"],
        ["stop", f"{median['stop s']:.2f} s", "≤ 3 s"],
        ["ucp --help", f"{median['ucp --help s'] * 1000:.0f} ms", "≤ 100 ms"],
    ]
    spread = [
        [name, len(values), f"{min(values):.2f}", f"{median[name]:.2f}", f"{max(values):.2f}"]
        for name, values in figures.items()
    ]
    return {
        "Goals": table(["what", "median", "goal"], ratios),
        "Figures": table(["figure", "runs", "min", "median", "max"], spread),
        "MiB of each process once all is up, and what for": table(
            ["process", "floor", "ucp start", "what for"],
            list(rows(*(_medians(held[which]) for which in ("floor", "start")))),
        ),
    }
