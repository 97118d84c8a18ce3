"""Random changes while the reconciler is killed: no copy is lost, duplicated or orphaned."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from k8s_ucp import names
from k8s_ucp.kube import SECRET, SYNCER, Kube, NotFound, Object
from tests.evidence import write
from tests.integration.reconciler.conftest import Planes
from tests.integration.reconciler.mirror_world import (
    PROD,
    SOURCES,
    STAGE,
    Mirrors,
    decoded,
    secret,
)
from tests.integration.reconciler.world import Clusters, eventually

pytestmark = pytest.mark.engines

NAMES = [f"s-{number}" for number in range(12)]
SYNCERS = ("one", "two", "three")
TARGETS = ("x", "y")
_FOLDER = Path(__file__).resolve().parents[4]


class Process:
    """The reconciler as a process that can be killed."""

    def __init__(self, planes: Planes, folder: Path) -> None:
        self._kubeconfig = folder / "core.kubeconfig"
        self._kubeconfig.write_text(json.dumps(planes.config("test-core")))
        self._log = (folder / "reconciler.log").open("ab")
        self.path = folder / "reconciler.log"
        self.kills = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.reconciler_alone", str(self._kubeconfig)],
            cwd=_FOLDER,
            env={**os.environ},
            stdout=self._log,
            stderr=self._log,
        )

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(10)
        self.kills += 1

    def close(self) -> None:
        if self._process and self._process.poll() is None:
            self.kill()
        self._log.close()


class Storm:
    """Random changes of sources, Syncers and copies, and the expected result."""

    def __init__(self, seed: int, mirrors: Mirrors, apps: dict[str, Kube]) -> None:
        self.chance = random.Random(seed)
        self.core = mirrors.core
        self.apps = apps
        self.sources: dict[str, tuple[dict[str, str], str]] = {}
        self.syncers: dict[str, list[Object]] = {}
        self.foreign: dict[tuple[str, str, str], Object] = {}
        self.changes = 0
        self.kills = 0
        for kube in apps.values():
            for name in TARGETS:
                item = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                kube.apply(item, manager="test")
        for cluster, kube in apps.items():
            for name in ("s-0", "s-1", "s-2"):
                made = kube.create(secret(name, "x", {"theirs": "yes"}))
                self.foreign[cluster, "x", name] = made

    def step(self) -> None:
        self.changes += 1
        self.chance.choice(
            [
                self.write_source,
                self.write_source,
                self.write_source,
                self.delete_source,
                self.write_syncer,
                self.delete_syncer,
                self.drift,
                self.drift,
            ]
        )()

    def write_source(self) -> None:
        name = self.chance.choice(NAMES)
        data = {"password": str(self.chance.randint(0, 10**6)), "host": name}
        tier = self.chance.choice(["db", "web"])
        item = secret(name, SOURCES, data, labels={"tier": tier})
        self.core.apply(item, manager="test")
        self.sources[name] = (data, tier)

    def delete_source(self) -> None:
        name = self.chance.choice(NAMES)
        self.core.delete(SECRET, name, SOURCES)
        self.sources.pop(name, None)

    def write_syncer(self) -> None:
        name = self.chance.choice(SYNCERS)
        item = self.core.find(SYNCER, name, SOURCES)
        if item and item["metadata"].get("deletionTimestamp"):
            return
        # Each Syncer names its copies differently, so that the result doesn't depend on the order.
        entries: list[Object] = [
            {
                "sourceSelector": {"matchLabels": {"tier": self.chance.choice(["db", "web"])}},
                "targetSelector": {},
                "targetNamespace": self.chance.choice(TARGETS),
                "targetName": f"{name}-{{name}}",
            },
            {
                "sourceName": self.chance.choice(NAMES),
                "targetCluster": self.chance.choice(list(self.apps)),
                "targetNamespace": "x",
                "targetName": f"{name}-single" if self.chance.random() < 0.7 else "s-0",
            },
        ]
        self.core.apply(
            {
                "apiVersion": "k8s-ucp.io/v1alpha1",
                "kind": "Syncer",
                "metadata": {"name": name, "namespace": SOURCES},
                "spec": {"data": entries},
            },
            manager="test",
        )
        self.syncers[name] = entries

    def delete_syncer(self) -> None:
        name = self.chance.choice(SYNCERS)
        self.core.delete(SYNCER, name, SOURCES)
        self.syncers.pop(name, None)

    def drift(self) -> None:
        kube = self.apps[self.chance.choice(list(self.apps))]
        namespace = self.chance.choice(TARGETS)
        copies = kube.list_all(SECRET, namespace, labels=f"{names.MIRROR}=demo")
        if not copies:
            return
        name = self.chance.choice(copies)["metadata"]["name"]
        if self.chance.random() < 0.5:
            kube.delete(SECRET, name, namespace)
        elif kube.find(SECRET, name, namespace):
            text = base64.b64encode(b"meddled").decode()
            with contextlib.suppress(NotFound):  # it may be deleted at this very moment
                kube.patch(SECRET, name, namespace, {"data": {"password": text}})

    def wanted(self, cluster: str) -> dict[str, dict[str, str]]:
        """{namespace/name: data} of all copies that should exist."""
        found: dict[str, dict[str, str]] = {}
        for name, (several, single) in self.syncers.items():
            tier = several["sourceSelector"]["matchLabels"]["tier"]
            for source, (data, has) in self.sources.items():
                if has == tier:
                    found[f"{several['targetNamespace']}/{name}-{source}"] = data
            chosen = self.sources.get(single["sourceName"])
            taken = single["targetName"] == "s-0"
            if single["targetCluster"] == cluster and chosen and not taken:
                found[f"x/{single['targetName']}"] = chosen[0]
        return found

    def present(self, cluster: str) -> dict[str, dict[str, str] | None]:
        found: dict[str, dict[str, str] | None] = {}
        for namespace in TARGETS:
            for item in self.apps[cluster].list_all(SECRET, namespace):
                name = item["metadata"]["name"]
                if (cluster, namespace, name) not in self.foreign:
                    found[f"{namespace}/{name}"] = decoded(item)
        return found

    def check(self, log: str) -> None:
        for cluster in self.apps:
            try:
                eventually(
                    lambda cluster=cluster: self.present(cluster) == self.wanted(cluster),
                    f"all copies on {cluster}",
                )
            except AssertionError as error:
                is_there, want = self.present(cluster), self.wanted(cluster)
                lost = sorted(want.keys() - is_there.keys())
                orphaned = sorted(is_there.keys() - want.keys())
                wrong = sorted(
                    each for each in want.keys() & is_there.keys() if want[each] != is_there[each]
                )
                raise AssertionError(
                    f"{cluster}: lost {lost}, orphaned {orphaned}, wrong {wrong}\n{log}"
                ) from error
        for (cluster, namespace, name), item in self.foreign.items():
            assert self.apps[cluster].get(SECRET, name, namespace) == item


def storm(world: Clusters, planes: Planes, folder: Path, seconds: float, seed: int) -> Storm:
    mirrors = Mirrors(world).started("stage", "prod", mirror_leave_seconds=600)
    world.stop()
    made = Storm(seed, mirrors, {STAGE: planes.apps[STAGE], PROD: planes.apps[PROD]})
    process = Process(planes, folder)
    try:
        until = time.monotonic() + seconds
        next_kill = time.monotonic() + made.chance.uniform(1, 6)
        while time.monotonic() < until:
            made.step()
            time.sleep(made.chance.uniform(0, 0.1))
            if time.monotonic() > next_kill:
                process.kill()
                process.start()
                next_kill = time.monotonic() + made.chance.uniform(1, 8)
        made.kills = process.kills
        made.check(process.path.read_text()[-3000:])
    finally:
        process.close()
    return made


def test_mirrors_survive_seconds_of_random_changes_under_sigkill(
    world: Clusters, planes: Planes, tmp_path: Path
) -> None:
    storm(world, planes, tmp_path, seconds=8, seed=3)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_mirrors_survive_ten_minutes_of_random_changes_under_sigkill(
    world: Clusters, planes: Planes, tmp_path: Path
) -> None:
    seconds = float(os.environ.get("SOAK_SECONDS", "600"))
    made = storm(world, planes, tmp_path, seconds=seconds, seed=int(time.time()))
    if seconds >= 600:
        text = (
            f"{made.changes} random changes in {seconds:.0f} s (Secrets and Syncers written and "
            f"deleted, copies meddled with and deleted) on one core and two app "
            f"clusters, while the reconciler was killed by SIGKILL {made.kills} times.\n\n"
            "Afterwards every copy that should be there was there with its content, no other, and "
            f"{len(made.foreign)} Secrets of others were as they had been: 0 lost, 0 doubled, "
            "0 orphaned, 0 touched."
        )
        write(
            "mirrors-kill", "Mirrors under SIGKILL", {"What was found": text}, command="make soak"
        )
