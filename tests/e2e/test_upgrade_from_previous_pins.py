"""An upgrade from the previous pins to today's on a running topology, and back if a part fails.

The previous programs are real (tests/previous_pins.py). A rollback starts from today's pins: the
newer version is broken by one program.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from k8s_ucp.kube import Object
from k8s_ucp.names import CLUSTERS_NAMESPACE
from k8s_ucp.steps.startup.apply_manifests import noted
from k8s_ucp.steps.upgrading.rehearsal.inventory import ClusterInventory, read_inventory
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.toolbox import Toolbox
from tests import previous_pins
from tests.conftest import CACHE
from tests.e2e.newer_ucp import installed, made_up, newer
from tests.e2e.running_versions import kubernetes_of, pods, versions
from tests.e2e.world import Workbench, until
from tests.evidence import table, write

BEFORE = previous_pins.VERSIONS
NOW = {name: CATALOGUE[name].version for name in BEFORE}
CLUSTERS = ("core", "stage", "prod")
TOPOLOGY = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  clouds: {aws: {simulated: true}}
  environments:
    - {name: stage}
    - {name: prod, promotesFrom: stage}
  apps:
    - {name: echo, image: ealen/echo-server, tag: 0.9.2, hosts: [echo]}
"""
CLAIM: Object = {
    "apiVersion": "k8s-ucp.io/v1alpha1",
    "kind": "Compute",
    "metadata": {"name": "build", "namespace": CLUSTERS_NAMESPACE},
    "spec": {
        "crossplane": {"compositionSelector": {"matchLabels": {"k8s-ucp.io/cloud": "local"}}},
        "size": "small",
        "region": "eu-west-3",
        "environment": "stage",
    },
}
OF_USERS: tuple[Object, ...] = (
    {"apiVersion": "v1", "kind": "ConfigMap", "data": {"greeting": "hello"}},
    {"apiVersion": "v1", "kind": "Secret", "stringData": {"word": "kept"}},
    {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "kept"}},
            "serviceName": "kept",
            "template": {
                "metadata": {"labels": {"app": "kept"}},
                "spec": {"containers": [{"name": "main", "image": "busybox"}]},
            },
        },
    },
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}},
    },
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": {"devices": {}}},
)
"""Created by hand on stage, one object of each of several kinds that Kubernetes stores."""
BROKEN = {
    "core": ("kube-scheduler", "false"),
    # Its init command succeeds.
    "crossplane": ("crossplane", '[ "$2" = init ]'),
    "argocd": ("argocd", '[ "$ARGOCD_BINARY_NAME" != argocd-application-controller ]'),
    "stage": ("kube-scheduler", "false"),
}
"""Part -> its program that fails in the newer version, and when it succeeds; all others work."""
WAIT = "30"
"""Seconds until a part that doesn't become healthy is rolled back."""


@dataclass
class Observer:
    """Compares the contents of a topology with a first reading, again and again."""

    world: Workbench
    first: dict[str, ClusterInventory] = field(default_factory=dict)
    apps: dict[str, dict[str, tuple[str, str, int]]] = field(default_factory=dict)
    secrets: str = ""
    looks: int = 0

    def remember(self) -> None:
        """Read the state before the first upgrade."""
        self.first = {name: self.read(name) for name in CLUSTERS}
        self.apps = {name: pods(self.world, name) for name in CLUSTERS[1:]}
        self.secrets = self.world.ucp("get", "secrets", "-o", "json").stdout
        assert all(self.apps.values())

    def read(self, cluster: str) -> ClusterInventory:
        kube = self.world.kube(cluster)
        found = read_inventory(kube)
        kube.close()
        assert not found.unreadable
        return found

    def lost(self) -> list[str]:
        """Objects that were deleted or recreated, except for those that Kubernetes manages."""
        found = []
        for name, before in self.first.items():
            after = self.read(name).items
            found += [
                f"{name}: {place}"
                for place, item in before.items.items()
                if not item.automatic and (place not in after or after[place].uid != item.uid)
            ]
        return found

    def nothing_is_lost(self) -> None:
        assert self.lost() == []
        assert {name: pods(self.world, name) for name in self.apps} == self.apps
        assert self.world.ucp("get", "secrets", "-o", "json").stdout == self.secrets
        self.looks += 1

    def objects(self) -> int:
        return sum(len(each.items) for each in self.first.values())


@pytest.fixture
def before() -> Iterator[Toolbox]:
    """The previous programs, where an older ucp looks for them."""
    with previous_pins.ready() as toolbox:
        yield toolbox


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_upgrade_from_the_previous_pins_to_todays_and_rollback(
    before: Toolbox, world: Workbench
) -> None:
    (world.workspace / "ucp.yaml").write_text(TOPOLOGY)
    with newer(world, BEFORE):
        began = time.monotonic()
        world.ucp("start", "--yes", timeout=900)
        started = time.monotonic() - began
    add_objects(world)
    wait_until_well(world)
    seen = Observer(world)
    seen.remember()
    assert_runs(world, BEFORE)
    assert runs_file(world, "crossplane", before.path("crossplane"))
    assert runs_file(world, "argocd", before.path("argocd"))

    assert "ucp upgrade --plan" in world.ucp("start", "--yes", timeout=600).stderr
    assert_runs(world, BEFORE)
    plan = json.loads(world.ucp("upgrade", "--plan", "-o", "json").stdout)
    changes = {e["object"]: e["reason"] for e in plan["steps"] if e["action"] == "change"}
    print(changes, flush=True)
    assert {f"cluster demo-{each}" for each in CLUSTERS} <= changes.keys()
    assert {"component crossplane", "component argocd"} <= changes.keys()
    rehearsed = json.loads(world.ucp("upgrade", "--rehearse", "-o", "json", timeout=600).stdout)
    print({k: v for k, v in rehearsed.items() if k != "kinds"}, flush=True)
    assert rehearsed["well"] and (rehearsed["lost"], rehearsed["gone"]) == ([], [])
    seen.nothing_is_lost()

    back = {part: goes_back(seen, part, number) for number, part in enumerate(BROKEN, 95)}
    forth = {}
    for part in ("crossplane", "argocd", ""):
        began = time.monotonic()
        said = world.ucp("upgrade", *filter(None, [part]), timeout=1200).stderr
        forth[part or "core, stage, prod"] = time.monotonic() - began
        print(said, flush=True)
        wait_until_well(world)
        seen.nothing_is_lost()
    assert_runs(world, NOW)
    assert not runs_file(world, "crossplane", before.path("crossplane"))
    assert not runs_file(world, "argocd", before.path("argocd"))
    assert "runs the versions of this ucp release" in world.ucp("upgrade", timeout=300).stderr

    # The versions stay the same, whichever ucp starts it.
    world.ucp("stop", "--yes")
    world.ucp("start", "--yes", timeout=600)
    with newer(world, BEFORE):
        world.ucp("start", "--yes", timeout=600)
    wait_until_well(world)
    assert_runs(world, NOW)
    assert seen.lost() == []
    write_evidence(seen, started, back, forth)


def goes_back(seen: Observer, part: str, number: int) -> float:
    """Upgrade a part to a broken version; return the seconds until the older one is healthy."""
    world = seen.world
    pins = {**made_up(number), "argocd": f"{number}.0.{os.getpid()}"}
    program, unless = BROKEN[part]
    with installed(CACHE, pins, broken=[program], unless=unless), newer(world, pins):
        began = time.monotonic()
        said = world.ucp("upgrade", part, "--wait", WAIT, expect=1, timeout=600).stderr
        seconds = time.monotonic() - began
    print(said, flush=True)
    assert "is healthy" in said
    assert_runs(world, BEFORE)
    wait_until_well(world)
    seen.nothing_is_lost()
    return seconds


def add_objects(world: Workbench) -> None:
    """Create a claim in the cloud, and objects that a user creates by hand on stage."""
    core, stage = world.kube("core"), world.kube("stage")
    core.apply(CLAIM)
    stage.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}})
    for each in OF_USERS:
        stage.apply({**each, "metadata": {"name": "kept", "namespace": "kept"}})
    core.close()
    stage.close()
    until("its pods run", lambda: len(running_pods(world)) == 2, 300)


def running_pods(world: Workbench) -> list[str]:
    found = pods(world, "stage")
    return [name for name, (_, began, _) in found.items() if name.startswith("kept/") and began]


def wait_until_well(world: Workbench) -> None:
    def well() -> bool:
        claims = world.status()["claims"]
        return world.is_well(clusters="registered", applications=2) and all(
            each["ready"] for each in claims if claims
        )

    until("everything is well", well, 600)


def assert_runs(world: Workbench, pins: Mapping[str, str]) -> None:
    """Check the versions that ucp reports, and those of the API servers themselves."""
    found = versions(world)
    assert {found[each] for each in ("argocd", "crossplane")} == {
        f"v{pins[each]}" for each in ("argocd", "crossplane")
    }
    core = world.kube("core")
    assert str(noted(core, "start-crossplane")).startswith(f"{pins['crossplane']} ")
    core.close()
    for each in CLUSTERS:
        assert kubernetes_of(world, each) == world.kube(each).version() == f"v{pins['kubernetes']}"


def runs_file(world: Workbench, name: str, program: Path) -> bool:
    """Return whether a component's processes run this very file, whatever its name."""
    found = [f"/proc/{each.pid}/exe" for each in world.processes() if Path(each.exe()).name == name]
    assert found
    return all(os.path.samefile(each, program) for each in found)


def write_evidence(
    seen: Observer, started: float, back: dict[str, float], forth: dict[str, float]
) -> None:
    moved = ", ".join(f"{tool} {BEFORE[tool]} to {NOW[tool]}" for tool in BEFORE)
    apps = sum(map(len, seen.apps.values()))
    write(
        "upgrade",
        "From the pins before these to these",
        {
            "What was counted": table(
                ("", ""),
                [
                    ("moved", moved),
                    ("control planes", len(CLUSTERS)),
                    ("objects before, with their UIDs", seen.objects()),
                    ("objects lost or made anew", 0),
                    ("pods of apps", apps),
                    ("pods restarted or replaced", 0),
                    ("passwords that differ", 0),
                    ("looks at all of it", seen.looks),
                ],
            ),
            "How long it took": table(
                ("", "seconds"),
                [
                    ("first start of the older ones", f"{started:.0f}"),
                    *(
                        (f"{part}: a newer {BROKEN[part][0]} fails, back", f"{seconds:.0f}")
                        for part, seconds in back.items()
                    ),
                    *((f"{part}: upgraded", f"{seconds:.0f}") for part, seconds in forth.items()),
                ],
            ),
            "How": (
                "Real older programs, built from their sources like today's, run a core, two "
                "environments with an app, and a machine in the simulated cloud. `ucp upgrade` "
                "to a newer version of today's programs takes each part back, as one of them is "
                "broken (a scheduler; Crossplane once it has initialised itself; Argo CD's "
                f"application controller; `--wait {WAIT}`): the older ones run on what the newer "
                "ones wrote. "
                "Then each part moves for good. Objects are those of all kinds on all three "
                "clusters but Events, Leases and what Kubernetes itself writes anew (default "
                "roles, API services, endpoints). In the end it is stopped and started, "
                "and an older ucp starts it and leaves what is newer."
            ),
        },
        command="make soak ARGS=tests/e2e/test_upgrade_from_previous_pins.py",
    )
