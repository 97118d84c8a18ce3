"""Faults of processes, and the recovery. Every process is killed once."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from k8s_ucp import plans
from k8s_ucp.kube import APPLICATION
from k8s_ucp.process import identify, is_running, spawn, terminate
from k8s_ucp.topology import load
from k8s_ucp.workspace import Workspace
from tests.e2e.embedded_topology import (
    PROCESSES,
    TOGETHER,
    named,
    names_of_processes,
    well,
)
from tests.e2e.interruption_points import cut_somewhere
from tests.e2e.world import Workbench, until

pytestmark = pytest.mark.parametrize("demo", ["embedded"], indirect=True)


@pytest.mark.parametrize("killed", TOGETHER.values(), ids=TOGETHER)
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


def test_killed_stop_and_killed_start_are_continued_by_a_rerun(demo: Workbench) -> None:
    """Each is killed at a point of its plan that the seed chooses; the soak uses all points."""
    until("well before", lambda: well(demo))
    before, running = demo.uids(), names_of_processes(demo)
    topology = load(demo.workspace / "ucp.yaml")
    for command, plan in (("stop", plans.stop()), ("start", plans.start(topology))):
        killed = cut_somewhere(demo, plan, command, "--yes")
        if killed:
            (left,) = demo.status()["unfinished"]
            assert (left["state"], left["command"].split()[-2:]) == ("killed", [command, "--yes"])
        told = demo.ucp(command, "--yes").stderr
        assert ("continuing from there" in told) is killed
        assert demo.status()["unfinished"] == []
        assert (demo.processes() == []) is (command == "stop")
    until("the same state", lambda: well(demo))
    assert demo.uids() == before
    assert names_of_processes(demo) == running


def test_topology_recovers_from_a_power_cut_and_spares_a_reused_pid(
    demo: Workbench, tmp_path: Path
) -> None:
    """After a reboot, a PID file may name a foreign process, which must not be killed."""
    until("well before", lambda: well(demo))
    before = demo.uids()
    sockets = Workspace.at(demo.workspace).runtime_folder(demo.topology)
    demo.kill_everything()
    shutil.rmtree(sockets)  # a boot empties /tmp
    stranger = spawn(
        ["sleep", "300"], env={"PATH": os.environ["PATH"]}, cwd=tmp_path, log=tmp_path / "log"
    )
    try:
        files = list(demo.state.rglob("*.pid"))
        assert files
        for file in files:
            file.write_text(str(stranger.pid))
        demo.ucp("start", "--yes")
        until("the same state", lambda: well(demo))
        assert demo.uids() == before
        assert is_running(stranger)
        assert identify(stranger.pid) == stranger
    finally:
        terminate(stranger, grace=5)
