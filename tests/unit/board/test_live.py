"""The board's live source: snapshots of a followed topology, also while its core is lost."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Any

from k8s_ucp.board.live import LiveSource
from k8s_ucp.board.snapshot import Snapshot
from k8s_ucp.board.versions import Overview
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.doctor.examination import Examined
from k8s_ucp.kube import Kube, Unreachable
from tests.unit.inspect import snapshots
from tests.unit.inspect.snapshots import TOPOLOGY

WELL = dataclasses.replace(
    snapshots.WELL,
    registrations=[
        {**each, "metadata": {**each["metadata"], "uid": "1"}}
        for each in snapshots.WELL.registrations
    ],
)


def no_core() -> Kube:
    raise Unreachable("nobody answers")


def follow(
    monkeypatch: Any,
    examine: Callable[[], Examined],
    versions: Callable[[Overview | None], Overview],
    is_so: Callable[[Snapshot], bool],
) -> Snapshot:
    """The first snapshot for which `is_so` is True."""
    monkeypatch.setattr("k8s_ucp.board.live.ASK_SECONDS", 0.01)
    changed = threading.Event()
    source = LiveSource(TOPOLOGY, no_core, examine, versions)
    with source.open(changed.set) as read:
        for _ in range(500):
            found = read()
            if is_so(found):
                return found
            changed.wait(10)
            changed.clear()
    raise AssertionError(found)


def test_a_lost_core_is_reported_and_its_last_state_is_kept(monkeypatch: Any) -> None:
    answers, began = [WELL, WELL], time.time()

    def examine() -> Examined:
        seen = answers.pop() if answers else ClusterSnapshot(core_ready=False)
        return Examined(TOPOLOGY, seen, 0.0)

    found = follow(
        monkeypatch, examine, lambda _: Overview(), lambda shown: shown["about"][""]["lost"]
    )
    assert found["apps"]["echo/prod"]["health"] == "Healthy"
    assert found["environments"]["prod"]["registered"] is True
    assert list(found["findings"]) == ["core/demo-core"]
    assert found["about"][""]["core"]["ready"] is False
    assert began <= found["about"][""]["lostSince"] <= time.time()


def test_an_unreadable_app_repository_is_reported(monkeypatch: Any) -> None:
    def versions(before: Overview | None) -> Overview:
        raise UcpError("no route to the git server")

    found = follow(
        monkeypatch,
        lambda: Examined(TOPOLOGY, WELL, 0.0),
        versions,
        lambda shown: bool(shown["about"][""]["problem"]) and shown["about"][""]["asked"],
    )
    assert found["about"][""]["problem"] == "no route to the git server"
    assert found["apps"]["echo/prod"]["tag"] == ""


def test_before_the_cores_first_response_only_the_topology_is_shown(
    monkeypatch: Any,
) -> None:
    lost = ClusterSnapshot(core_ready=False)
    found = follow(
        monkeypatch,
        lambda: Examined(TOPOLOGY, lost, 0.0),
        lambda _: Overview(),
        lambda shown: shown["about"][""]["lost"],
    )
    assert found["apps"] == {}
    assert found["about"][""]["lostSince"] is None
    assert list(found["environments"]) == ["stage", "prod"]
