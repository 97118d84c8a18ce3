"""Faults of processes, and the recovery. With the slow tests, every process is killed once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from k8s_ucp.kube import APPLICATION
from tests.e2e.embedded_topology import PROCESSES, TOGETHER, named, power_cut, well
from tests.e2e.world import Workbench, until

pytestmark = pytest.mark.parametrize("demo", ["embedded"], indirect=True)

AT_ONCE = [each for each in TOGETHER if each != "supervisord"]
"""All groups but supervisord, which test_engines.py kills on a core without app clusters."""


@pytest.mark.parametrize(
    "killed",
    [
        # test_engines.py and clusters/embedded/test_watching.py kill API servers and etcd, too.
        pytest.param(
            TOGETHER[each], id=each, marks=pytest.mark.slow if each in ("api", "store") else ()
        )
        for each in AT_ONCE
    ],
)
def test_processes_that_are_killed_at_once_are_restarted(
    demo: Workbench, killed: list[tuple[str, str]]
) -> None:
    all_come_back(demo, killed)


@pytest.mark.soak
@pytest.mark.parametrize(("program", "detail"), PROCESSES)
def test_killed_process_is_restarted(demo: Workbench, program: str, detail: str) -> None:
    all_come_back(demo, [(program, detail)])


def all_come_back(world: Workbench, killed: list[tuple[str, str]]) -> None:
    until("well before", lambda: well(world))
    old = set()
    for program, detail in killed:
        victims = named(world, program, detail)
        assert victims, f"no process {program} {detail}"
        old.add(victims[0].pid)
    for pid in old:
        os.kill(pid, signal.SIGKILL)

    def others() -> bool:
        found = [{each.pid for each in named(world, *each)} for each in killed]
        return all(pids and not pids & old for pids in found)

    until("others took their places", others)
    until("well again", lambda: well(world))
    core = world.kube("core")
    for application in ("echo-stage", "echo-prod"):
        assert core.get(APPLICATION, application, "argocd")["status"]["sync"]["status"] == "Synced"


def test_no_process_runs_twice(demo: Workbench) -> None:
    for program, detail in PROCESSES:
        count = len(named(demo, program, detail))
        if detail or program in ("redis-server", "crossplane", "watcher", "supervisord"):
            assert count == 1, (program, detail, count)


@pytest.mark.slow  # test_lifecycle.py cuts the power during a start.
def test_topology_recovers_from_a_power_cut_and_spares_a_reused_pid(
    demo: Workbench, tmp_path: Path
) -> None:
    until("well before", lambda: well(demo))
    before = demo.uids()
    with power_cut(demo, tmp_path):
        assert list(demo.state.rglob("*.pid"))
        demo.ucp("start", "--yes")
        until("the same state", lambda: well(demo))
        assert demo.uids() == before
