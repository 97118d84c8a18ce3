"""What breaks, and what is there again afterwards. Every process is killed once."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import psutil
import pytest

from k8s_ucp.kube import APPLICATION
from k8s_ucp.process import identify, is_running, spawn, terminate
from k8s_ucp.workspace import Workspace
from tests.e2e.world import World, until

pytestmark = pytest.mark.parametrize("demo", ["embedded"], indirect=True)

# (a word of the command line, a second word or "") of each process of a topology.
PROCESSES = [
    ("etcd", "demo-core"),
    ("etcd", "demo-stage"),
    ("kube-apiserver", "demo-core"),
    ("kube-apiserver", "demo-prod"),
    ("kube-controller-manager", "demo-core"),
    ("kube-scheduler", "demo-stage"),
    ("kwok-controller", "demo-stage"),
    ("redis-server", ""),
    ("argocd", "repo-server"),
    ("argocd", "application-controller"),
    ("argocd", "applicationset-controller"),
    ("argocd", "server"),
    ("crossplane", ""),
    ("reconciler", ""),
    ("watcher", ""),
    ("supervisord", ""),
]


def named(world: World, program: str, detail: str) -> list[psutil.Process]:
    """Processes of one component; Argo CD's are told apart by ARGOCD_BINARY_NAME."""
    found = []
    for process in world.processes():
        try:
            words = process.cmdline()
            role = process.environ().get("ARGOCD_BINARY_NAME", "")
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        line = " ".join(words)
        if program == "argocd":
            if Path(words[0]).name == "argocd" and role == f"argocd-{detail}":
                found.append(process)
        elif program in ("reconciler", "watcher", "supervisord"):
            if program in line and "python" in line:
                found.append(process)
        elif words and Path(words[0]).name.split(":")[0] == program and detail in line:
            found.append(process)
    return found


def well(world: World) -> bool:
    """Everything ready, and Argo CD has looked at the apps again and finds them Synced."""
    return world.is_well(clusters="registered", applications=2)


@pytest.mark.parametrize(("program", "detail"), PROCESSES)
def test_a_killed_process_comes_back(demo: World, program: str, detail: str) -> None:
    until("well before", lambda: well(demo))
    victims = named(demo, program, detail)
    assert victims, f"no process {program} {detail}"
    for victim in victims[:1]:
        os.kill(victim.pid, signal.SIGKILL)
    old = {victim.pid for victim in victims[:1]}
    until(
        "another took its place",
        lambda: (
            {each.pid for each in named(demo, program, detail)} - old
            and not {each.pid for each in named(demo, program, detail)} & old
        ),
    )
    until("well again", lambda: well(demo))
    core = demo.kube("core")
    for application in ("echo-stage", "echo-prod"):
        assert core.get(APPLICATION, application, "argocd")["status"]["sync"]["status"] == "Synced"


def test_nothing_is_doubled(demo: World) -> None:
    for program, detail in PROCESSES:
        count = len(named(demo, program, detail))
        if detail or program in ("redis-server", "crossplane", "watcher", "supervisord"):
            assert count == 1, (program, detail, count)


def test_a_power_cut_and_a_stranger_with_an_old_pid(demo: World, tmp_path: Path) -> None:
    """After a reboot a PID file may point at somebody else's process: it is left alone."""
    until("well before", lambda: well(demo))
    before = demo.uids()
    sockets = Workspace.at(demo.workspace).runtime_folder(demo.topology)
    demo.kill_everything()
    shutil.rmtree(sockets)  # /tmp is empty after a boot
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
