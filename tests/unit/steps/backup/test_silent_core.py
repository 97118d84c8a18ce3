"""An unresponsive kind core is not deleted with data that exists nowhere else, unless forced.

The container engine is a fake: its core responds, responds once it is started, or never does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.cluster_provider import ClusterState, Reach
from k8s_ucp.clusters import local
from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import CRD, Kind, Kube, KubeError
from k8s_ucp.preflight.orphans import check_orphans
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.steps.backup import back_up
from k8s_ucp.steps.backup.back_up import back_up_before_stop
from k8s_ucp.steps.backup.stopped_core import at_stake
from k8s_ucp.topology import Topology
from k8s_ucp.workspace import Workspace, write_private_file
from tests.unit.gitops.topologies import demo, on_clouds
from tests.unit.preflight.crds import crd


class Machine:
    """One machine after a reboot: the core's container exists and is stopped."""

    def __init__(self, folder: Path, topology: Topology, monkeypatch: pytest.MonkeyPatch) -> None:
        self.there, self.answers, self.startable = True, False, True
        self.clusters: list[str] = []
        """Managed resources of Crossplane."""
        self.started: list[str] = []
        self.said: list[str] = []
        self.backed_up: list[str] = []
        self.context = StartContext(workspace=Workspace.at(folder), topology=topology)
        self.core = topology.core_cluster
        self.context.gitops.core.mkdir(parents=True)
        self.context.state.make()
        self.context.state.kubeconfig(self.core).write_text("{}")
        monkeypatch.setattr(local, "used_providers", lambda *_: {"kind": self})
        monkeypatch.setattr(Kube, "from_file", lambda _: self)
        monkeypatch.setattr(back_up, "write_backup", lambda *_: self.backed_up.append("x") or "")

    # As the kind provider.

    info = PROVIDERS["kind"]

    def state(self, name: str) -> ClusterState:
        return ClusterState(name, self.there, self.answers, self.answers, "stopped")

    def start(self, name: str, *, timeout: float) -> None:
        self.started.append(name)
        if not self.startable:
            raise UcpError("no space left on device")
        self.answers = True

    def kubeconfig(self, name: str, *, reach: Reach = Reach.MACHINE) -> dict[str, Any]:
        return {}

    # As its API server.

    def ready(self) -> bool:
        return self.answers

    def list_all(self, kind: Kind, *_: Any, **__: Any) -> list[dict[str, Any]]:
        if not self.answers:
            raise KubeError("it is not responding")
        if kind is CRD:
            return [crd("Cluster", ["managed"])]
        return [{"metadata": {"name": name}} for name in self.clusters]

    def delete(self, *_: Any) -> None:
        pass

    # As a user.

    def stop(self, abandon: str = "") -> None:
        """The check and the backup of `ucp stop`, which run before it deletes anything."""
        self.context.teardown.abandon = frozenset([abandon])
        check_orphans(self.context)
        back_up_before_stop.run(self.context, self.said.append)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    topology = on_clouds(["stage", "dev"], ["quotes"])
    return Machine(tmp_path, topology, monkeypatch)


def with_clone(machine: Machine) -> Machine:
    (machine.context.gitops.core / ".git").mkdir()
    return machine


def test_a_stop_starts_the_containers_of_the_core_to_query_and_back_it_up(shop: Machine) -> None:
    with_clone(shop).clusters = ["stage", "prod"]
    with pytest.raises(UcpError, match="still manages Cluster stage, Cluster prod, which nothing"):
        shop.stop()
    assert shop.started == ["shop-core"]
    shop.clusters = []
    shop.stop()
    assert shop.backed_up == ["x"], "what was made since the last backup is in it"
    assert shop.started == ["shop-core"]


def test_a_core_that_cannot_be_started_is_kept_and_the_loss_is_listed(shop: Machine) -> None:
    shop.startable = False
    with pytest.raises(UcpError) as caught:
        shop.stop()
    said = str(caught.value)
    for each in ("environment stage (gke)", "database quotes of stage", "no space left on device"):
        assert each in said
    assert "dev (kind)" not in said
    assert "ucp stop --abandon shop-core" in said
    for other in ("shop", "shop-stage", "demo-core"):
        with pytest.raises(UcpError, match="would delete data that exists nowhere else"):
            shop.stop(abandon=other)
    shop.stop(abandon="shop-core")
    assert "shop-core is not responding: nothing was backed up" in shop.said
    assert "environment stage (gke)" in shop.context.teardown.unasked


def test_a_core_that_stops_responding_during_the_check_is_kept(shop: Machine) -> None:
    shop.answers = True
    listing = shop.list_all

    def cut_off(kind: Kind, *words: Any, **_: Any) -> list[dict[str, Any]]:
        if kind is not CRD:
            raise KubeError("connection reset")
        return listing(kind)

    vars(shop)["list_all"] = cut_off
    with pytest.raises(UcpError, match="would delete data that exists nowhere else") as caught:
        shop.stop()
    assert "connection reset" in str(caught.value)


def test_environments_and_databases_committed_by_hand_are_listed_as_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, demo(core={"provider": "kind"}), monkeypatch)
    machine.startable = False
    core = machine.context.gitops.core
    for path, text in (
        ("clusters/overlays/eu/kustomization.yaml", "resources: [../../base/eks]\n"),
        ("clusters/overlays/qa/kustomization.yaml", "resources: [../../base/kind]\n"),
        ("databases/overlays/eu/orders.yaml", "kind: Postgres\n"),
    ):
        (core / path).parent.mkdir(parents=True)
        (core / path).write_text(text)
    with pytest.raises(UcpError) as caught:
        machine.stop()
    assert "environment eu (eks)" in caught.value.message
    assert "database orders of eu" in caught.value.message
    assert "qa" not in caught.value.message


def test_a_core_whose_last_backup_failed_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, demo(core={"provider": "kind"}), monkeypatch)
    machine.startable = False
    note = machine.context.state.components / "backup" / "failed"
    note.parent.mkdir()
    write_private_file(note, "git push: no way to the host")
    with pytest.raises(UcpError, match=r"data that is not backed up \(git push: no way"):
        machine.stop()


def test_an_unresponsive_core_without_dependents_is_stopped_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, demo(core={"provider": "kind"}), monkeypatch)
    machine.startable = False
    machine.stop()
    assert machine.said[-1] == "demo-core is not responding: nothing was backed up"


def test_databases_that_hold_no_data_are_no_loss(tmp_path: Path) -> None:
    """On simulated nodes, a local database is only a connection."""
    databases = ({"name": "quotes", "provider": "local"}, {"name": "orders", "provider": "gcp"})
    context = StartContext(workspace=Workspace.at(tmp_path), topology=demo(databases=databases))
    file = context.gitops.core / "databases/overlays/stage/quotes.yaml"
    file.parent.mkdir(parents=True)
    file.touch()
    assert at_stake(context) == ["database orders of prod", "database orders of stage"]


def test_a_core_removed_by_someone_else_is_reported(shop: Machine) -> None:
    shop.there = False
    shop.stop()
    assert "environment stage (gke)" in shop.context.teardown.unasked
    assert not shop.started


def test_an_embedded_core_with_kind_environments_is_not_looked_up_in_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = on_clouds(["stage", "dev"], ["quotes"], core={"provider": "embedded"})
    machine = Machine(tmp_path, topology, monkeypatch)
    machine.there, machine.answers = False, True
    machine.stop()
    assert machine.context.teardown.unasked == []
    assert not machine.started


def test_a_core_whose_kubeconfig_was_lost_is_queried_with_a_new_one(
    shop: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig = shop.context.state.kubeconfig(shop.core)
    kubeconfig.unlink()

    def opened(path: Path) -> Machine:
        if not path.exists():
            raise UcpError(f"no {path}")
        return shop

    monkeypatch.setattr(Kube, "from_file", opened)
    shop.clusters = ["stage"]
    with pytest.raises(UcpError, match="still manages Cluster stage"):
        shop.stop()
    assert kubeconfig.exists()
