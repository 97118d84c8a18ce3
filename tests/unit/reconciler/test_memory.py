"""State about an object is dropped with the object, so that memory does not grow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import StringIO
from typing import Any

from k8s_ucp import names
from k8s_ucp.kube import CONFIG_MAP, Kind, Object
from k8s_ucp.reconciler.mirrors import copies
from k8s_ucp.reconciler.mirrors.copy_sync import Copier
from k8s_ucp.reconciler.mirrors.deletion_guard import DeletionGuard
from k8s_ucp.reconciler.mirrors.index import Destination, MirrorIndex
from k8s_ucp.reconciler.mirrors.status import SyncCounters
from k8s_ucp.reconciler.registration.status_reporter import StatusReporter
from k8s_ucp.reconciler.runtime.conditions import Condition
from k8s_ucp.reconciler.runtime.events import Events
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.metrics import Metrics
from tests.unit.reconciler.fake_api import FakeApi
from tests.unit.reconciler.mirrors.mirror_model import CLUSTER, ModelSession
from tests.unit.reconciler.mirrors.syncer_objects import entry, secret, syncer
from tests.unit.reconciler.objects import NOW

REFUSED = Condition(names.REGISTERED, "False", "KubeconfigInvalid", "no kubeconfig")


class Core(FakeApi):
    """Accepts ConfigMaps and Events, too."""

    def patch(self, kind: Kind, name: str, namespace: str, change: Object, **_: Any) -> Object:
        live = self.get(kind, name, namespace)
        data = {**live["data"], **change["data"]}
        live["data"] = {key: text for key, text in data.items() if text is not None}
        return self.put("configmaps", live)

    def create(self, item: Object) -> Object:
        if item["kind"] == "Event":
            return item
        return self.put("configmaps", item)

    def noted(self) -> Mapping[str, str]:
        found = self.find(CONFIG_MAP, names.REGISTRATIONS, names.CLUSTERS_NAMESPACE)
        return (found or {"data": {}})["data"]


def labeled(number: int) -> Object:
    metadata = {"name": f"a{number}", "namespace": "ucp-clusters", "uid": f"uid-{number}"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


def speaker(core: Core, sources: set[str]) -> StatusReporter:
    metrics, log = Metrics(), Log(StringIO())

    def clock() -> float:
        return NOW

    world: Any = core
    return StatusReporter(
        world, Events(world, metrics, log, clock), metrics, clock, lambda: sources
    )


def test_no_state_of_deleted_sources_is_kept() -> None:
    core = Core()
    told = speaker(core, set())
    empty = _size(told)
    for number in range(200):
        told.set_conditions(f"ucp-clusters/a{number}", labeled(number), [REFUSED])
        told.forget(f"ucp-clusters/a{number}")
    assert _size(told) <= empty
    assert not core.noted()


def test_no_state_of_former_owners_of_a_source_is_kept() -> None:
    core = Core()
    told = speaker(core, {"ucp-clusters/a"})
    for number in range(200):
        told.set_conditions("ucp-clusters/a", labeled(number), [REFUSED])
    assert _size(told) < 10


def test_a_new_leader_reads_recorded_statuses_again_and_deletes_outdated_ones() -> None:
    core = Core()
    sources = {"ucp-clusters/a1", "ucp-clusters/a2"}
    one, other = speaker(core, sources), speaker(core, sources)
    one.set_conditions("ucp-clusters/a1", labeled(1), [REFUSED])
    other.set_conditions("ucp-clusters/a2", labeled(2), [REFUSED])
    other.forget("ucp-clusters/a1")
    sources.discard("ucp-clusters/a2")
    one.restart()
    one.set_conditions("ucp-clusters/a1", labeled(1), [REFUSED])
    assert set(core.noted()) == {"ucp-clusters.a1"}
    assert json.loads(core.noted()["ucp-clusters.a1"])["status"]["conditions"]


def test_the_refusal_metric_of_a_deleted_source_is_removed() -> None:
    metrics = Metrics()
    metrics.refusals.labels("ucp-clusters/a", "KubeconfigInvalid").inc()
    metrics.refusals.labels("ucp-clusters/b", "KubeconfigInvalid").inc()
    metrics.forget_source("ucp-clusters/a")
    assert b'"ucp-clusters/a"' not in metrics.page()
    assert b'"ucp-clusters/b"' in metrics.page()


class Altering(FakeApi):
    """An app cluster with a mutating webhook."""

    def _store(self, key: tuple[str, str, str], item: Object) -> Object:
        return super()._store(key, {**item, "data": {"altered": "eA=="}})


def test_state_of_altered_copies_is_dropped_with_their_cluster() -> None:
    app: Any = Altering()
    plan, core = MirrorIndex(), FakeApi()
    world: Any = core
    log: Any = Log(StringIO())
    proof = DeletionGuard(world, lambda key: core.objects.get(("syncers", *key.split("/"))), plan)  # type: ignore[arg-type]
    copier = Copier(plan, SyncCounters(lambda _: None), proof, log)
    plan.set_targets([Destination(CLUSTER, "stage")])
    session: Any = ModelSession(app, ("quote",))
    for number in range(20):
        source = copies.source_of(secret({"a": "1"}, metadata={"name": f"s{number}"}))
        plan.set_source(source.key, source)
        one = syncer(entry(sourceName=f"s{number}", targetCluster=CLUSTER))
        plan.set_syncer(one.key, one)
        for ref in plan.refs(CLUSTER, "quote", "Secret"):
            copier.reconcile(session, ref)
    assert len(copier._altered) == 20
    copier.forget(CLUSTER)
    assert not copier._altered


def _size(told: StatusReporter) -> int:
    return sum(len(each) for each in (told._turns, told._owners, told._notes or {}))
