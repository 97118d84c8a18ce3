"""How long a drain may take: only the time in which something could be drained counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from k8s_ucp import names
from k8s_ucp.kube import Kind, Object
from k8s_ucp.reconciler.access.cluster_secret import Registration
from k8s_ucp.reconciler.controller import Runtime
from k8s_ucp.reconciler.registration.app_access import AppAccess
from k8s_ucp.reconciler.registration.deregistration import Deregistration
from k8s_ucp.reconciler.registration.rules import Deregister
from k8s_ucp.timestamps import stamp
from tests.unit.reconciler.objects import NOW, cluster_secret, source

APPLICATION: Object = {
    "metadata": {
        "name": "web-stage",
        "namespace": names.ARGOCD_NAMESPACE,
        "labels": {names.MANAGED_BY: names.OURS},
        "deletionTimestamp": stamp(NOW),
    },
    "spec": {"destination": {"name": "demo-stage"}},
}


@dataclass
class Core:
    """A core cluster with the cluster Secret of a cluster that has an Application left."""

    secret: Object
    deleted: list[str] = field(default_factory=list)

    def list_all(self, kind: Kind, namespace: str) -> list[Object]:
        return [APPLICATION]

    def find(self, kind: Kind, name: str, namespace: str) -> Object:
        return self.secret

    def patch(self, kind: Kind, name: str, namespace: str, change: Object) -> None: ...

    def delete(self, kind: Kind, name: str, namespace: str, *, uid: str) -> None:
        self.deleted.append(name)


@dataclass
class Machine:
    """Its clocks. wall: seconds since the epoch; running: without the time of a suspension."""

    wall: float = NOW
    running: float = 100.0

    def pass_by(self, seconds: float, *, suspended: bool = False) -> None:
        self.wall += seconds
        self.running += 0 if suspended else seconds


@pytest.fixture
def core() -> Core:
    """The drain began when the wall clock showed NOW."""
    secret = cluster_secret(source())
    del secret["metadata"]["labels"][names.ENVIRONMENT]
    secret["metadata"]["labels"][names.DRAINING] = "stage"
    secret["metadata"]["annotations"][names.DRAINING_SINCE] = stamp(NOW)
    return Core(secret)


def process(core: Core, machine: Machine) -> Deregistration:
    """A reconciler that has just started. Its cluster responds."""
    nothing: Any = SimpleNamespace(info=lambda *_, **__: None, forget_cluster=lambda _: None)
    runtime = SimpleNamespace(
        kube=core,
        settings=SimpleNamespace(drain_seconds=120.0, dead_seconds=300.0, gone_seconds=10.0),
        clients=SimpleNamespace(of=lambda _: None),
        metrics=nothing,
        log=nothing,
        clock=lambda: machine.wall,
    )
    access = SimpleNamespace(
        silent_for=lambda *_: 0.0, withdraw=lambda *_: "", forget=lambda _: None
    )
    return Deregistration(cast(Runtime, runtime), cast(AppAccess, access), lambda: machine.running)


def look(drain: Deregistration, core: Core) -> str:
    existing = Registration.of(core.secret)
    assert existing.draining == "stage"
    return drain.reconcile("a/b", Deregister(existing, owner_deleted=True)).conditions[1].reason


def test_a_drain_that_takes_too_long_is_given_up(core: Core) -> None:
    machine = Machine()
    drain = process(core, machine)
    for _ in range(3):
        assert look(drain, core) == "Draining"
        machine.pass_by(50)
    assert look(drain, core) == "GivenUp"
    assert core.deleted


def test_a_drain_goes_on_after_the_machine_was_suspended(core: Core) -> None:
    """The cluster would be deregistered at once, and its load balancers and volumes be left."""
    machine = Machine()
    drain = process(core, machine)
    assert look(drain, core) == "Draining"
    machine.pass_by(8 * 3600, suspended=True)
    assert look(drain, core) == "Draining"
    assert not core.deleted


def test_a_drain_goes_on_when_the_topology_is_started_again(core: Core) -> None:
    machine = Machine()
    machine.pass_by(24 * 3600)
    drain = process(core, machine)
    assert look(drain, core) == "Draining"
    assert not core.deleted
