"""Every kind of fault once, in a seeded order; all combinations in the soak."""

from __future__ import annotations

import random
import statistics
import threading
import time
from typing import Any
from unittest import mock

import pytest

from k8s_ucp import names
from k8s_ucp.kube import APPLICATION, SYNCER, Kube, Object
from k8s_ucp.reconciler.runtime.settings import Settings
from tests.integration.gitops.promotion.soak import SoakRecord
from tests.integration.reconciler.conftest import Planes
from tests.integration.reconciler.faults import KINDS, LIMIT, scene
from tests.integration.reconciler.mirror_world import PROD, STAGE, Mirrors
from tests.integration.reconciler.world import ARGOCD, Clusters, eventually

pytestmark = pytest.mark.engines

SEED = 20261121
TIMES = 20
IDLE_SECONDS = 600
APPS = (STAGE, PROD)

RECORD = SoakRecord(
    "reconciler-faults",
    "The reconciler under faults",
    ("src/k8s_ucp/reconciler", "src/k8s_ucp", "tests/integration/reconciler"),
)


def test_the_reconciler_recovers_from_each_kind_of_fault(world: Clusters, planes: Planes) -> None:
    order = list(KINDS)
    chance = random.Random(SEED)
    chance.shuffle(order)
    with scene(world, planes) as found:
        for kind in order:
            # Only the soak checks the time to recovery: here other tests run at the same time.
            KINDS[kind](found, chance.randrange(2))


def application(name: str, cluster: str) -> Object:
    """An Application as our ApplicationSets create it."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": name,
            "namespace": ARGOCD,
            "labels": {names.MANAGED_BY: names.OURS},
            "finalizers": [names.APP_FINALIZER],
        },
        "spec": {
            "project": "applications",
            "source": {"repoURL": "https://example.org/apps.git", "path": "."},
            "destination": {"name": cluster, "namespace": "echo"},
        },
    }


def there(world: Clusters) -> dict[str, str]:
    """Cluster Secrets and Applications with their UIDs: they must not be deleted."""
    found = {
        each["metadata"]["name"]: each["metadata"]["uid"]
        for each in world.core.list_all(APPLICATION, ARGOCD)
        if "deletionTimestamp" not in each["metadata"]
    }
    for name in world.apps:
        secret = world.cluster_secret(name)
        if secret:
            labels = secret["metadata"]["labels"]
            found[name] = f"{secret['metadata']['uid']} {labels.get(names.ENVIRONMENT)}"
    return found


def settled(world: Clusters) -> dict[str, str]:
    for environment in ("stage", "prod"):
        world.declare(environment)
        world.await_registered(f"demo-{environment}")
        world.core.create(application(f"echo-{environment}", f"demo-{environment}"))
    found = there(world)
    assert len(found) == 4
    return found


def test_an_api_server_down_for_ten_minutes_deletes_nothing(
    world: Clusters, planes: Planes
) -> None:
    ahead = [0.0]
    world.start(clock=lambda: time.time() + ahead[0], resync_seconds=0.2)
    before = settled(world)
    mirrors = Mirrors(world)
    mirrors.source("conn", {"password": "first"})
    mirrors.syncer("conn", {"sourceName": "conn", "targetSelector": {}, "targetNamespace": "quote"})
    copies = [mirrors.await_copy("conn", {"password": "first"}, cluster=each) for each in APPS]
    planes.provider.stop("demo-prod")
    try:
        world.await_condition(names.REACHABLE, "False", None, "demo-prod")
        for minute in range(10):
            ahead[0] += 60
            if minute == 5:
                # A new reconciler, which never reached the cluster, continues without any state.
                world.stop()
                world.start(clock=lambda: time.time() + ahead[0], resync_seconds=0.2)
            time.sleep(0.5)
            assert there(world) == before
    finally:
        planes.provider.start("demo-prod")
    world.await_condition(names.REACHABLE, "True", None, "demo-prod")
    mirrors.await_ready("conn")
    assert there(world) == before
    assert [mirrors.copy("conn", cluster=each) for each in APPS] == copies


@pytest.mark.parametrize("times", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_empty_lists_delete_nothing(world: Clusters, planes: Planes, times: int) -> None:
    """All watched kinds are listed as empty, once, or twice in a row, which counts as deleted."""
    left: dict[str, int] = {}
    whole = Kube.list_with_version
    lock = threading.Lock()

    def empty(self: Kube, *args: Any, **kwargs: Any) -> tuple[list[Any], str]:
        items, version = whole(self, *args, **kwargs)
        mine = threading.current_thread().name.removeprefix("watch ")
        with lock:
            if left.get(mine):
                left[mine] -= 1
                return [], version
        return items, version

    with mock.patch.object(Kube, "list_with_version", empty), scene(world, planes) as found:
        for environment in ("stage", "prod"):
            world.core.create(application(f"echo-{environment}", f"demo-{environment}"))
        before = there(world)
        assert len(before) == 4
        own_watches = [each.name for each in found.reconciler.watches() if each.store.all()]
        left.update(dict.fromkeys(own_watches, times))
        found.core.cut()
        eventually(lambda: not any(left.values()), "empty lists")
        time.sleep(1.5)
        assert there(world) == before
        world.stop()
        # With an empty cache, as after a restart: the first lists are empty.
        left.update(dict.fromkeys(own_watches, times))
        world.start(resync_seconds=0.2)
        time.sleep(2)
        assert there(world) == before


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_the_reconciler_recovers_in_time_from_twenty_faults_of_each_kind(
    world: Clusters, planes: Planes, kind: str
) -> None:
    if RECORD.has(kind):
        pytest.skip("done with this code")
    with scene(world, planes) as found:
        seen = [KINDS[kind](found, number) for number in range(TIMES)]
    seconds = sorted(each.seconds for each in seen)
    RECORD.add(
        kind,
        {
            f"of {TIMES} healed within {LIMIT:g} s": sum(each <= LIMIT for each in seconds),
            "s at the median": round(statistics.median(seconds), 1),
            "s at worst": round(seconds[-1], 1),
            "(told meanwhile)": "; ".join(sorted({f"{each.where}: {each.told}" for each in seen})),
        },
    )
    assert seconds[-1] <= LIMIT, [each for each in seen if each.seconds > LIMIT]


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_ten_idle_minutes_cause_no_writes(world: Clusters) -> None:
    if RECORD.has("idle"):
        pytest.skip("done with this code")
    wrote: list[str] = []
    send = Kube._send

    def counting(self: Kube, method: str, path: str, *rest: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            lease = "/leases" in path
            if method != "GET" and not lease:
                wrote.append(f"{method} {path}")
        return send(self, method, path, *rest)

    world.start(resync_seconds=Settings.resync_seconds)
    settled(world)
    mirrors = Mirrors(world)
    for name in ("one", "two"):
        mirrors.source(name, {"password": name})
        mirrors.syncer(name, {"sourceName": name, "targetSelector": {}, "targetNamespace": "quote"})
        mirrors.await_ready(name)
    time.sleep(5)

    def versions() -> tuple[object, ...]:
        syncers = [each["metadata"]["resourceVersion"] for each in world.core.list_all(SYNCER)]
        copies = [mirrors.copy("one", cluster=each) for each in APPS]
        return world.versions(), syncers, copies

    before, used = versions(), time.process_time()
    with mock.patch.object(Kube, "_send", counting):
        time.sleep(IDLE_SECONDS)
    assert wrote == []
    assert versions() == before
    RECORD.add(
        "idle",
        {
            "writes by registration and mirrors (leases aside)": len(wrote),
            "minutes": IDLE_SECONDS // 60,
            "s of CPU": round(time.process_time() - used, 1),
        },
    )
