"""Cost of idle mirrors between bare API servers, and their memory beside a minimal operator."""

from __future__ import annotations

import json
import os
import subprocess
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil

from k8s_ucp.kube import LEASE, SECRET, SYNCER, Kube
from tests.bench.mirror_clusters import (
    TARGET,
    Clusters,
    ReconcilerProcess,
    clusters,
    until,
    versions,
    writes_since,
)
from tests.bench.mirror_progress import SCALE, say, tell
from tests.evidence import table

IDLE_SECONDS = 600.0
KOPF = "kopf==1.45.2"


def run(rounds: int) -> None:
    """Measure once, and write docs/evidence/mirrors-cost.md as far as it got."""
    sections: dict[str, str] = {}
    with clusters() as world:
        reconciler = ReconcilerProcess(world)
        reconciler.start()
        try:
            world.mirror_hot()
            with ThreadPoolExecutor(1) as pool:
                # It uses other clusters and another process, so it doesn't affect the idle figures.
                memory = pool.submit(_memory, sections)
                sections["10 idle minutes"] = _idle(world, reconciler)
                _tell(sections)
                memory.result()
            _tell(sections)
        finally:
            reconciler.stop()


def _tell(sections: dict[str, str]) -> None:
    how = (
        "Idling: a core and 4 app clusters, bare control planes beside the reconciler on one "
        "machine, with 1,000 Secrets mirrored to each. Memory: another core and one app cluster, "
        "10,000 Secrets, each operator in a process of its own."
    )
    tell("mirrors-cost", "Mirrors: at what cost", sections, how)


def _idle(world: Clusters, reconciler: ReconcilerProcess) -> str:
    seconds = IDLE_SECONDS * SCALE
    time.sleep(20 * SCALE)
    everywhere: dict[str, Kube] = {"core": world.core, **world.apps}
    before = {name: versions(kube) for name, kube in everywhere.items()}
    syncers = versions(world.core, (SYNCER,))
    leases = versions(world.core, (LEASE,))
    used = reconciler.cpu()
    say("idling")
    time.sleep(seconds)
    changed = [
        f"{name}: {each}"
        for name, kube in everywhere.items()
        for each in writes_since(kube, before[name])
    ] + writes_since(world.core, syncers, (SYNCER,))
    renewed = len(writes_since(world.core, leases, (LEASE,)))
    cpu = reconciler.cpu() - used
    say(f"{len(changed)} writes")
    return (
        f"{len(changed)} objects written in {seconds:.0f} s (goal: 0), {renewed} Leases renewed; "
        f"{cpu / seconds * 1000:.1f} ms of processor time a second; "
        f"{reconciler.memory():.0f} MiB resident." + "".join(f"\n- {each}" for each in changed[:10])
    )


def _memory(sections: dict[str, str]) -> None:
    """Mirror 10,000 Secrets of the core to one app cluster, with ucp and with kopf."""
    total = int(10_000 * SCALE)
    rows = []
    with clusters(("one",)) as world:
        world.make_sources(total, "many")
        say("memory: sources made")
        reconciler = ReconcilerProcess(world)
        try:
            reconciler.start()
            empty = _settled_memory(reconciler.memory)
            world.register()
            world.syncer("many", "many")
            until("10,000 copies", lambda: world.synced("many") == (total, total), seconds=900)
            rows.append(_row("k8s-ucp, right after", empty, reconciler.memory()))
            time.sleep(30 * SCALE)
            rows.append(_row("k8s-ucp, settled", empty, reconciler.memory()))
            reconciler.stop()
            reconciler.start()
            until("again", lambda: reconciler.memory() > 0)
            time.sleep(20)
            rows.append(_row("k8s-ucp, after a restart", empty, reconciler.memory()))
        finally:
            reconciler.stop()
        heads = ["who", "MiB before the first copy", "MiB with all copies"]
        sections["Memory at 10,000 Secrets"] = table(heads, rows)
        rows += _kopf(world, total)
        sections["Memory at 10,000 Secrets"] = table(heads, rows)


def _row(who: str, empty: float | None, full: float) -> list[str]:
    say(f"{who}: {full:.0f} MiB")
    return [who, "" if empty is None else f"{empty:.0f}", f"{full:.0f}"]


def _settled_memory(read: Any) -> float:
    time.sleep(8)
    return float(read())


def _kopf(world: Clusters, total: int) -> list[list[str]]:
    """The same with a minimal kopf operator, in its own virtual environment."""
    folder = world.folder / "kopf"
    venv.create(folder, with_pip=True, system_site_packages=False)
    python = str(folder / "bin/python")
    checkout = Path(__file__).resolve().parents[2]
    packages = [KOPF, "kubernetes", "ruamel.yaml"]
    subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True, timeout=600)
    files = []
    for name, config in (("core", world.core_config), ("one", world.configs["one"])):
        path = world.folder / f"kopf-{name}.yaml"
        path.write_text(json.dumps(config))
        files.append(str(path))
    app = world.apps["one"]
    app.request("DELETE", SECRET.path(TARGET), timeout=120)
    until("an empty namespace", lambda: not app.list_all(SECRET, TARGET))
    process = subprocess.Popen(
        [python, str(checkout / "tests/bench/kopf_mirror.py"), *files],
        env={**os.environ, "PYTHONPATH": str(checkout / "src"), "MALLOC_ARENA_MAX": "2"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        began = time.monotonic()
        until(
            "kopf's copies",
            lambda: len(app.list_all(SECRET, TARGET, labels="k8s-ucp.io/mirror=kopf")) >= total,
            seconds=900,
            pause=2,
        )
        say(f"kopf: {total / (time.monotonic() - began):.0f} a second")
        memory = float(psutil.Process(process.pid).memory_info().rss) / 2**20
        time.sleep(30 * SCALE)
        settled = float(psutil.Process(process.pid).memory_info().rss) / 2**20
        return [
            _row("minimal kopf operator, right after", None, memory),
            _row("minimal kopf operator, settled", None, settled),
        ]
    finally:
        process.terminate()
        process.wait(20)
