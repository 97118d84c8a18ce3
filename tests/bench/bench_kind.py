"""A warm `ucp start --core kind` and a hand-written script for the same three clusters, in turn.

Both begin with all programs and images on this machine and no cluster, and end with echo Synced and
Healthy on stage and prod, and with Argo CD's and Crossplane's pods rolled out. The script has no
reconciler: it registers the clusters itself, with their admin certificates.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.clusters.kind.provider import NODE_IMAGE as PINNED
from k8s_ucp.components.pods.reconciler_image import ReconcilerImage
from k8s_ucp.engine.journal import read
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.tools.catalogue import CATALOGUE, PODS
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import Workspace
from tests.bench.bench_start import seconds
from tests.conftest import CACHE
from tests.e2e.kind_world import describe_kind
from tests.e2e.world import Workbench
from tests.evidence import table, write
from tests.kind_clusters import NODE_IMAGE
from tests.kind_images import ARGOCD, CROSSPLANE, ECHO, REDIS, TAGS, make_crossplane, make_echo

FLOOR = Path(__file__).with_name("floor_kind.sh")


def run(rounds: int) -> None:
    """Measure, and write docs/evidence/kind.md."""
    toolbox = Installer(CACHE, lambda event: None).install((*PODS, *PROVIDERS["kind"].tools))
    engine = ContainerEngine()
    make_crossplane(engine)
    make_echo(engine, TAGS[0])
    ReconcilerImage.wanted().ensure(engine, lambda line: None)
    figures: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        figures.setdefault(name, []).append(value)
        print(f"{name}: {value:.1f}", flush=True)

    folder = Path(tempfile.mkdtemp(prefix="ucp-bench-"))
    try:
        for number in range(rounds):
            _floor(toolbox, folder / f"floor{number}", note)
            _start(engine, folder / f"ucp{number}", note)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    write("kind", "Warm start on kind beside the floor", _sections(figures), command=COMMAND)


COMMAND = "tests/kind_machine.sh .venv/bin/python -m tests.bench kind"


def _floor(toolbox: Toolbox, work: Path, note: Callable[[str, float], None]) -> None:
    work.mkdir(parents=True)
    env = {
        **os.environ,
        **{each.upper(): str(toolbox.path(each)) for each in ("kind", "kubectl", "helm")},
        "ARGOCD": str(toolbox.module("argocd")),
        "CROSSPLANE": str(toolbox.module("crossplane")),
        "CROSSPLANE_VERSION": CATALOGUE["crossplane"].version,
        "NODE_IMAGE": NODE_IMAGE or PINNED,
        "GIT_IMAGE": ReconcilerImage.wanted().name,
        "IMAGES": " ".join((ARGOCD, REDIS, CROSSPLANE, ReconcilerImage.wanted().name)),
        "ECHO": f"{ECHO}:{TAGS[0]}",
        "PREFIX": f"ucpfloor-{uuid.uuid4().hex[:6]}",
    }

    def floor(action: str) -> None:
        done = subprocess.run(
            [FLOOR, action, work], env=env, capture_output=True, text=True, timeout=1200
        )
        assert done.returncode == 0, done.stderr[-2000:]

    try:
        note("floor s", seconds(lambda: floor("up")))
        for line in (work / "parts").read_text().splitlines():
            milliseconds, part = line.split()
            note(f"floor: {part}", int(milliseconds) / 1000)
    finally:
        note("floor down s", seconds(lambda: floor("down")))


def _start(engine: ContainerEngine, work: Path, note: Callable[[str, float], None]) -> None:
    home, workspace = work / "home", work / "w"
    home.mkdir(parents=True)
    workspace.mkdir()
    world = Workbench(workspace, home, environment={"UCP_CACHE_DIR": str(CACHE)})
    describe_kind(world, engine)
    try:
        note("start s", seconds(lambda: world.ucp("start", "--yes")))
        past = read(Workspace.at(workspace).state(world.topology).journal)
        for step in past.steps if past else ():
            note(f"start: {step['id']}", step["began"] + step["seconds"])
        note("rerun s", seconds(lambda: world.ucp("start", "--yes")))
        note("stop s", seconds(lambda: world.ucp("stop", "--yes")))
    finally:
        world.kill_everything()
        world.remove_clusters()


def _sections(figures: Mapping[str, list[float]]) -> dict[str, str]:
    median = {name: statistics.median(values) for name, values in figures.items()}
    ratio = f"{median['start s'] / median['floor s']:.2f}"
    rows = [
        [name, len(values), f"{min(values):.1f}", f"{median[name]:.1f}", f"{max(values):.1f}"]
        for name, values in figures.items()
        if ": " not in name
    ]
    parts = sorted(
        ([*name.split(": "), f"{median[name]:.1f}"] for name in figures if ": " in name),
        key=lambda row: (row[0], float(row[2])),
    )
    return {
        "Goal": table(["what", "median", "goal"], [["start / floor, time", ratio, "≤ 0.9"]]),
        "Figures": table(["figure", "runs", "min", "median", "max"], rows),
        "When their parts were done": table(["which", "part", "s"], parts),
    }
