"""Latency and throughput of mirrors between bare API servers.

Measures how soon a change reaches all clusters, and how fast 10,000 copies are created compared
with raw writes by the same client and threads. bench_mirrors_cost measures their cost.
"""

from __future__ import annotations

import base64
import random
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from k8s_ucp.kube import SECRET, SYNCER, Kube
from tests.bench.mirror_clusters import (
    NAMES,
    SOURCES,
    THREADS_EACH,
    Arrivals,
    Clusters,
    ReconcilerProcess,
    clusters,
    source,
    until,
)
from tests.bench.mirror_progress import SCALE, say, tell
from tests.evidence import table

CHANGES = 300


def run(rounds: int) -> None:
    """Measure, and write docs/evidence/mirrors.md as far as it got."""
    rows: list[list[str]] = []
    with clusters() as world:
        reconciler = ReconcilerProcess(world)
        reconciler.start()
        try:
            hot = world.mirror_hot()
            rows.append(_changes(world, hot))
            for number in range(max(1, min(rounds, 3))):
                if number:
                    _clear(world, number - 1)
                rows += _first_copies(world, number)
                _tell(rows)
        finally:
            reconciler.stop()


def _tell(rows: list[list[str]]) -> None:
    how = (
        "5 bare control planes (etcd and API server each) beside the reconciler on one machine: a "
        "core and 4 app clusters. Raw writes: the project's own client creating the same objects "
        f"from {THREADS_EACH} threads for each cluster in one process, right before the mirrored "
        "ones, as admin. A change counts as arrived when a watch of the bench's own shows it."
    )
    found = {"Changes and first copies": table(["what", "found", "goal"], rows)}
    tell("mirrors", "Mirrors: how soon and how fast", found, how)


def _changes(world: Clusters, hot: int) -> list[str]:
    """Seconds from the response to a patch until all four clusters have the change."""
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
    # The mirror may skip a change that was followed by another one: only those that arrived count.
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
    """Create 10,000 copies (2,500 Secrets on 4 clusters), and as many objects with raw writes."""
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
    """Create Secrets of another Syncer while the bulk is being copied."""
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
    """Raw writes per second: the same objects, the same client, the same number of threads."""
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
