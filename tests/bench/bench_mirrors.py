"""Mirrors between bare API servers: how soon, how fast, at what cost.

How soon a change is everywhere, how fast 10,000 copies are made beside raw writes by the same
client and threads, what idling and memory cost.
"""

from __future__ import annotations

import base64
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil

from k8s_ucp.kube import LEASE, SECRET, SYNCER, Kube
from tests.bench.mirror_clusters import (
    NAMES,
    SOURCES,
    TARGET,
    THREADS_EACH,
    Arrivals,
    Clusters,
    ReconcilerProcess,
    clusters,
    source,
    until,
    versions,
    writes_since,
)
from tests.evidence import table, write

CHANGES = 300
SCALE = float(os.environ.get("BENCH_SCALE", "1"))
"""Smaller for a trial run; evidence is written at 1 only."""
IDLE_SECONDS = 600.0
KOPF = "kopf==1.45.2"


def run(rounds: int) -> None:
    """Measure, and write docs/evidence/mirrors.md as far as it got."""
    rows: list[list[str]] = []
    with clusters() as world:
        reconciler = ReconcilerProcess(world)
        reconciler.start()
        try:
            world.register()
            world.syncer("hot", "hot")
            hot = int(1000 * SCALE)
            world.make_sources(hot, "hot")
            until("the first copies", lambda: world.synced("hot") == (hot * 4, hot * 4))
            say(f"{hot} mirrored")
            rows.append(_changes(world, hot))
            for number in range(max(1, min(rounds, 3))):
                if number:
                    _clear(world, number - 1)
                rows += _first_copies(world, number)
            sections = {"Changes and first copies": table(["what", "found", "goal"], rows)}
            _tell(sections)
            with ThreadPoolExecutor(1) as pool:
                # Other clusters, another process: what is counted while idling isn't touched.
                memory = pool.submit(_memory, sections)
                sections["10 idle minutes"] = _idle(world, reconciler)
                _tell(sections)
                memory.result()
            _tell(sections)
        finally:
            reconciler.stop()


def _tell(sections: dict[str, str]) -> None:
    if SCALE != 1:
        print("\n\n".join(f"## {name}\n{text}" for name, text in sections.items()), flush=True)
        return
    load = ", ".join(f"{each:.0f}" for each in os.getloadavg())
    how = (
        "5 bare control planes (etcd and API server each) beside the reconciler on one machine: a "
        "core and 4 app clusters. Raw writes: the project's own client creating the same objects "
        f"from {THREADS_EACH} threads for each cluster in one process, right before the mirrored "
        "ones, as admin. A change counts as arrived when a watch of the bench's own shows it. Load "
        f"of the machine when this was written (1, 5, 15 minutes): {load}."
    )
    title = "Mirrors: how soon, how fast, at what cost"
    write("mirrors", title, {**sections, "What this is": how}, command="make bench")


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def _changes(world: Clusters, hot: int) -> list[str]:
    """Seconds from the answer to a patch until all four clusters have it."""
    arrivals = Arrivals(world)
    chance = random.Random(7)
    sent: dict[tuple[str, str], float] = {}
    for number in range(int(CHANGES * SCALE) or 1):
        name = f"hot-{chance.randrange(hot):05d}"
        password = base64.b64encode(f"changed-{number}".encode()).decode()
        began = time.monotonic()
        world.core.patch(SECRET, name, SOURCES, {"data": {"password": password}})
        sent[name, password] = began
        time.sleep(0.05)

    def arrived() -> bool:
        return all((each, *key) in arrivals.seen for key in _last(sent) for each in NAMES)

    until("the changes", arrived, seconds=120)
    arrivals.stop()
    # A change that another one overtook may have been skipped: only those that arrived count.
    took = sorted(
        max(arrivals.seen[each, *key] for each in NAMES) - began
        for key, began in sent.items()
        if all((each, *key) in arrivals.seen for each in NAMES)
    )
    found = f"p50 {_at(took, 0.5):.3f} s, p99 {_at(took, 0.99):.3f} s ({len(took)} changes)"
    say(found)
    return [f"change → all 4 copies, {hot} Secrets mirrored", found, "p99 ≤ 1 s"]


def _last(sent: dict[tuple[str, str], float]) -> list[tuple[str, str]]:
    newest: dict[str, str] = {}
    for name, password in sent:
        newest[name] = password
    return list(newest.items())


def _at(values: list[float], part: float) -> float:
    return values[min(len(values) - 1, int(part * len(values)))]


def _first_copies(world: Clusters, number: int) -> list[list[str]]:
    """10,000 copies (2,500 Secrets on 4 clusters), beside raw writes of as many."""
    each = int(2500 * SCALE)
    label = f"bulk{number}"
    world.make_sources(each, label)
    time.sleep(2)
    raw = _raw(world, each, label)
    say(f"raw: {raw:.0f} a second")
    arrivals = Arrivals(world)
    began = time.monotonic()
    world.syncer(label, label)
    fresh: list[float] = []
    other = threading.Thread(target=_fresh, args=(world, arrivals, fresh, number))
    other.start()
    total = each * 4

    def done() -> bool:
        return sum(1 for _, name, _ in list(arrivals.seen) if name.startswith(label)) >= total

    until("10,000 first copies", done, seconds=900, pause=0.02)
    rate = total / (time.monotonic() - began)
    other.join()
    arrivals.stop()
    until("told so", lambda: world.synced(label) == (total, total))
    say(f"mirrored: {rate:.0f} a second; new ones meanwhile {max(fresh):.2f} s")
    ratio = rate / raw
    return [
        [
            f"{total} first copies, run {number + 1}",
            f"{rate:.0f} a second; raw writes {raw:.0f} a second: ratio {ratio:.2f}",
            "≥ 0.7",
        ],
        [
            f"a new Secret during that load, run {number + 1}",
            f"on all 4 clusters after {statistics.median(fresh):.2f} s (median), "
            f"{max(fresh):.2f} s (worst of {len(fresh)})",
            "≤ 2 s",
        ],
    ]


def _clear(world: Clusters, number: int) -> None:
    label = f"bulk{number}"
    world.core.delete(SYNCER, label, SOURCES)
    until("they leave", lambda: world.core.find(SYNCER, label, SOURCES) is None, seconds=900)
    for item in world.core.list_all(SECRET, SOURCES, labels=f"bench={label}"):
        world.core.delete(SECRET, item["metadata"]["name"], SOURCES)


def _fresh(world: Clusters, arrivals: Arrivals, found: list[float], number: int) -> None:
    """New Secrets of another Syncer while the bulk is under way."""
    for count in range(5):
        time.sleep(1.0 * SCALE)
        item = source(90000 + number * 100 + count, "hot")
        name = item["metadata"]["name"]
        began = time.monotonic()
        world.core.create(item)
        until(
            "a new one",
            lambda name=name: (
                {e for e, seen, _ in list(arrivals.seen) if seen == name} >= set(NAMES)
            ),
            seconds=120,
            pause=0.01,
        )
        found.append(time.monotonic() - began)


def _raw(world: Clusters, each: int, label: str) -> float:
    """Writes a second: the same objects, the same client, as many threads."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "raw"}}
    bodies = []
    for number in range(each):
        item = source(number, label)
        data = {
            key: base64.b64encode(value.encode()).decode()
            for key, value in item.pop("stringData").items()
        }
        item["data"] = data
        item["metadata"]["namespace"] = "raw"
        bodies.append(item)
    kubes = {name: Kube(config) for name, config in world.configs.items()}
    for kube in kubes.values():
        kube.apply(namespace, manager="bench")

    def write_share(name: str, share: int) -> None:
        for body in bodies[share::THREADS_EACH]:
            kubes[name].create(body)

    began = time.monotonic()
    with ThreadPoolExecutor(THREADS_EACH * len(kubes)) as pool:
        work = [
            pool.submit(write_share, name, share) for name in kubes for share in range(THREADS_EACH)
        ]
        for one in work:
            one.result()
    rate = each * len(kubes) / (time.monotonic() - began)
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda kube: kube.request("DELETE", SECRET.path("raw"), timeout=120), kubes.values()
            )
        )
    for kube in kubes.values():
        kube.close()
    return rate


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
    """10,000 Secrets on the core, all mirrored to one app cluster, by us and by kopf."""
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
    """The same by a minimal kopf operator, in a virtual environment of its own."""
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


if __name__ == "__main__":
    run(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
