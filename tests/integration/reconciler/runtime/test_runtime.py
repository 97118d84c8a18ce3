"""Leader election, and clusters that hang don't delay others."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from k8s_ucp import names
from k8s_ucp.kube import LEASE, SECRET, Kind, Kube, Object
from k8s_ucp.reconciler.manager import Manager
from tests.integration.reconciler.silent_proxy import SilentProxy
from tests.integration.reconciler.world import CLUSTERS, Clusters, eventually

pytestmark = pytest.mark.engines


def leads(reconciler: Manager) -> bool:
    metrics = reconciler.runtime.metrics
    return all(
        metrics.value("k8s_ucp_leading", controller=each.name) == 1
        for each in reconciler.controllers
    )


def await_leading(world: Clusters, reconciler: Manager) -> None:
    try:
        eventually(lambda: leads(reconciler), f"{reconciler.settings.place} to lead")
    except AssertionError as error:
        holders = {
            each["metadata"]["name"]: each["spec"].get("holderIdentity")
            for each in world.core.list_all(LEASE, CLUSTERS)
        }
        raise AssertionError(f"{error}; {holders}\n{world.logs.getvalue()[-3000:]}") from None


def test_one_reconciler_leads_and_hands_over_when_it_stops(world: Clusters) -> None:
    first = world.start(place="a", lease_seconds=3)
    await_leading(world, first)
    second = world.start(place="b", lease_seconds=3)
    world.declare("stage")
    world.await_registered()
    assert not leads(second)
    eventually(lambda: not second.unready(), "one that waits for its turn to be well")
    first.stop(5)
    await_leading(world, second)
    world.declare("prod")
    world.await_registered("demo-prod")
    lease = world.core.get(LEASE, "k8s-ucp-registration", CLUSTERS)
    assert lease["spec"]["holderIdentity"].startswith("b/")


def test_a_leader_renews_without_reading_and_notices_a_deleted_or_foreign_lease(
    world: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.start(place="a", lease_seconds=3)
    await_leading(world, first)
    key = (LEASE, "k8s-ucp-registration", CLUSTERS)
    uid = world.core.get(*key)["metadata"]["uid"]

    read: list[str] = []
    find = Kube.find

    def noted(kube: Kube, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        if kind == LEASE and kube is first.kube:
            read.append(name)
        return find(kube, kind, name, namespace)

    monkeypatch.setattr(Kube, "find", noted)
    renewed = world.core.get(*key)["spec"]["renewTime"]
    eventually(lambda: world.core.get(*key)["spec"]["renewTime"] > renewed, "a renewal")
    assert read == []

    world.core.delete(*key)
    eventually(
        lambda: (world.core.find(*key) or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid,
        "a new Lease",
    )
    foreign = {"holderIdentity": "c/1/1.00", "leaseDurationSeconds": 600}
    world.core.patch(*key, {"spec": foreign})
    try:
        eventually(lambda: not leads(first), "another holder to be noticed")
        assert world.core.get(*key)["spec"]["holderIdentity"] == "c/1/1.00"
    finally:
        first.stop(5)
        world.core.delete(*key)  # The next reconciler would wait for its expiry.


def test_a_failed_stop_still_releases_the_leases(
    world: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.start(place="a")
    await_leading(world, first)

    def fail() -> None:
        raise RuntimeError("this one can't stop")

    monkeypatch.setattr(first.controllers[0], "stop", fail)
    with pytest.raises(RuntimeError, match="can't stop"):
        first.stop(5)
    world.running.clear()
    await_leading(world, world.start(place="b"))


def test_a_leader_without_the_core_stops_leading_before_another_takes_over(world: Clusters) -> None:
    port = int(world.core_config["clusters"][0]["cluster"]["server"].rsplit(":", 1)[1])
    with SilentProxy(port) as proxy:
        config: dict[str, Any] = json.loads(json.dumps(world.core_config))
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
        first = world.start(config=config, place="a", lease_seconds=9)
        await_leading(world, first)
        second = world.start(place="b", lease_seconds=9)
        proxy.deaf(True)
        proxy.silence()
        while not leads(second):
            both = leads(first) and leads(second)
            assert not both
            time.sleep(0.02)
        assert not leads(first)
        world.declare("stage")
        world.await_registered()


def test_clusters_that_hang_delay_no_other(world: Clusters) -> None:
    stage = world.provider.configs["demo-stage"]
    more = [f"e{number}" for number in range(12)]
    world.list_environments("stage", "prod", *more)
    port = int(stage["clusters"][0]["cluster"]["server"].rsplit(":", 1)[1])
    with SilentProxy(port) as proxy:
        proxy.deaf(True)
        hanging = json.loads(json.dumps(stage))
        hanging["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
        for name in more:
            world.provider.configs[f"demo-{name}"] = hanging
        world.start()
        for name in more:
            world.declare(name)
        for name in more:
            eventually(
                lambda name=name: world.core.find(*_kubeconfig(name)),
                f"the kubeconfig of {name}",
            )
        time.sleep(0.5)
        began = time.monotonic()
        world.declare("prod")
        world.await_registered("demo-prod")
        # Each of the twelve hangs for five seconds; one after the other, that would be a minute.
        assert time.monotonic() - began < 40
        world.await_condition(names.REACHABLE, "False", "Unreachable", "demo-e0")


def _kubeconfig(environment: str) -> tuple[Any, str, str]:
    return SECRET, f"demo-{environment}-kubeconfig", CLUSTERS
