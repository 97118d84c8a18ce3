"""Components started as processes on this machine: Crossplane's initialization, and ports."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from k8s_ucp.components.component import Health, combine, probe
from k8s_ucp.components.crossplane import INIT_SECONDS
from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.components.host.program import Program
from k8s_ucp.components.host.supervisor_client import ProgramState
from k8s_ucp.components.manifests import Manifest, read
from k8s_ucp.context import StartContext
from k8s_ucp.engine.waiting import Cancelled
from k8s_ucp.errors import UcpError
from k8s_ucp.loopback import ADDRESS
from k8s_ucp.steps.startup import start_on_host
from k8s_ucp.steps.startup.start_on_host import initialized_by, restarting, restore_signing_key
from k8s_ucp.topology import default
from k8s_ucp.workspace import Workspace

KIND = {
    "crds.yaml": b"kind: CustomResourceDefinition\napiVersion: v1\nmetadata: {name: things.x}\n"
}


def test_another_crossplane_version_is_initialized_even_if_its_crds_are_the_same() -> None:
    kinds: list[Manifest] = read(KIND)
    assert initialized_by("2.4.0", kinds) == initialized_by("2.4.0", read(KIND))
    assert initialized_by("2.4.0", kinds) != initialized_by("2.4.1", kinds)
    assert initialized_by("2.4.0", kinds) != initialized_by("2.4.0", [])


@pytest.mark.parametrize(("patience", "seconds"), [(5.0, 5.0), (600.0, INIT_SECONDS)])
def test_the_initialization_of_crossplane_is_limited_by_the_timeout_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: float, seconds: float
) -> None:
    asked: list[float] = []

    def initialize(*, timeout: float, **_: Any) -> None:
        asked.append(timeout)
        raise Cancelled("enough is seen")

    monkeypatch.setattr(StartContext, "crossplane", SimpleNamespace(initialize=initialize))
    monkeypatch.setattr(start_on_host, "is_applied", lambda *_: False)
    context = StartContext(workspace=Workspace.at(tmp_path), topology=default())
    context.upgrade.patience = patience
    vars(context)["kube"] = None
    vars(context)["published"] = SimpleNamespace(core=SimpleNamespace(read=lambda _: KIND))
    with pytest.raises(Cancelled):
        start_on_host.start_crossplane.run(context, lambda _: None)
    assert asked == [seconds]


def test_a_port_used_by_another_program_is_reported_immediately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Argo CD would mistake the listening program for its redis, and send it the password."""
    monkeypatch.setenv("UCP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(start_on_host, "FREE_SECONDS", 0.0)
    context = StartContext(workspace=Workspace.at(tmp_path), topology=default())
    running: dict[str, ProgramState] = {}
    monkeypatch.setattr(HostPlacement, "states", lambda _: running)
    with socket.create_server((ADDRESS, 0)) as stranger:
        port = stranger.getsockname()[1]
        vars(context)["host"] = SimpleNamespace(ports={"redis-metrics": port})
        with pytest.raises(UcpError, match=f"port {port} of redis-metrics in topology demo"):
            start_on_host._refuse_taken_ports(context)
        running["redis"] = ProgramState("redis", "RUNNING", os.getpid(), "")
        start_on_host._refuse_taken_ports(context)
        # It has been started again, and fails as soon as it finds its port taken.
        running["redis"] = ProgramState("redis", "STARTING", 2**22 + 7, "")
        with pytest.raises(UcpError, match=f"port {port} of redis-metrics"):
            start_on_host._refuse_taken_ports(context)
        running["redis"] = ProgramState("redis", "FATAL", 0, "")
        with pytest.raises(
            UcpError, match=rf"another program: .+ \(PID {os.getpid()}\)\n  next: stop it: kill"
        ):
            start_on_host._refuse_taken_ports(context)
    start_on_host._refuse_taken_ports(context)


def test_programs_that_ran_before_and_hang_are_restarted_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    placement: Any = SimpleNamespace(restarted=[])
    placement.restart = placement.restarted.append
    programs = [Program(name, ("true",), tmp_path) for name in ("old", "new")]
    health = Health(False, "connection refused")
    monkeypatch.setattr(start_on_host, "HUNG_SECONDS", 0.0)
    look = restarting(placement, lambda: health, programs, ["new"])
    look()
    assert placement.restarted == []
    health = Health(False, "timed out", silent=True)
    assert [look(), look()] == [health, health]
    assert placement.restarted == ["old"]


def test_a_program_that_accepts_connections_without_a_response_is_silent() -> None:
    with socket.socket() as server:
        server.bind((ADDRESS, 0))
        port = server.getsockname()[1]
        refused = probe(port, timeout=0.1)
        server.listen()
        hung = probe(port, timeout=0.1)
    assert (refused.ready, refused.silent) == (False, False)
    assert (hung.ready, hung.silent) == (False, True)
    assert combine({"one": lambda: refused, "two": lambda: hung}).silent


def test_a_deleted_secret_of_argocd_is_created_again() -> None:
    kube: Any = SimpleNamespace(secrets={})
    kube.find = lambda kind, name, namespace: kube.secrets.get((kind.kind, namespace, name))
    kube.apply = lambda item, manager: kube.secrets.update(
        {(item["kind"], item["metadata"]["namespace"], item["metadata"]["name"]): item}
    )
    assert restore_signing_key(kube)
    (secret,) = kube.secrets.values()
    assert secret["data"].keys() == {"server.secretkey"}
    assert not restore_signing_key(kube)


@pytest.mark.parametrize(("served", "applications"), [(True, 1), (False, 2)])
def test_the_crds_of_argo_rollouts_are_applied_again_only_if_the_cluster_lacks_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: bool, applications: int
) -> None:
    """A recreated environment lacks them, though the core has a record of it."""
    noted: dict[str, str] = {}
    applied: list[Any] = []
    app_cluster = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(start_on_host.Kube, "from_file", lambda _: app_cluster)
    monkeypatch.setattr(start_on_host, "with_rollouts", lambda _: ["stage"])
    monkeypatch.setattr(start_on_host.argo_rollouts, "engine_manifests", lambda _: KIND)
    monkeypatch.setattr(start_on_host, "apply_all", lambda kube, _: applied.append(kube))
    monkeypatch.setattr(start_on_host, "wait_served", lambda *_: None)
    monkeypatch.setattr(start_on_host, "are_served", lambda *_: served)
    monkeypatch.setattr(start_on_host, "noted", lambda _, key: noted.get(key))
    monkeypatch.setattr(start_on_host, "note_applied", lambda _, *note: noted.update([note]))
    monkeypatch.setattr(start_on_host, "_start_programs", lambda *_: None)
    monkeypatch.setattr(
        start_on_host,
        "ArgoRollouts",
        lambda *_: SimpleNamespace(name="rollouts-stage", programs=list, ready=None),
    )
    context = StartContext(workspace=Workspace.at(tmp_path), topology=default())
    vars(context)["kube"] = vars(context)["host"] = None
    vars(context)["toolbox"] = SimpleNamespace(module=lambda _: None)
    for _ in range(2):
        start_on_host.start_rollouts.run(context, lambda _: None)
    assert applied == [app_cluster] * applications
