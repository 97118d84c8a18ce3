"""The watcher restarts processes that died, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_ucp import process
from k8s_ucp.clusters.embedded.folder import COMPONENTS, ClusterFolder
from k8s_ucp.clusters.embedded.process_monitor import ProcessMonitor
from k8s_ucp.clusters.embedded.processes import find_component, find_down, find_own
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.kube import DEPLOYMENT, NAMESPACE, Kube
from k8s_ucp.locks import locked
from k8s_ucp.process import ProcessIdentity, is_running
from k8s_ucp.tools.toolbox import Toolbox
from tests.control_planes import (
    ControlPlanes,
    control_planes,
    deployment,
    eventually,
    leave_to_watcher,
    made,
    namespace,
)

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def planes(toolbox: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlanes]:
    """One set of control planes for all tests here; each creates the cluster if none is left."""
    with control_planes(tmp_path_factory.mktemp("watching"), toolbox) as found:
        yield found


@pytest.fixture
def lines() -> list[str]:
    """Lines that the watcher reported."""
    return []


@pytest.fixture
def watch(planes: ControlPlanes, lines: list[str]) -> Iterator[ProcessMonitor]:
    """A watcher whose ticks the test calls."""
    found = ProcessMonitor(planes.folder(), lines.append)
    yield found
    found.close()


@pytest.fixture
def watched(provider: EmbeddedProvider, watch: ProcessMonitor) -> Iterator[ProcessMonitor]:
    """The same watcher, running in a thread."""
    leave_to_watcher(provider)
    stop = threading.Event()
    thread = threading.Thread(target=watch.run, args=(stop,))
    thread.start()
    yield watch
    stop.set()
    thread.join(10)
    assert not thread.is_alive()


def kill(folder: ClusterFolder, component: str) -> ProcessIdentity:
    identity = find_component(folder, component)
    assert identity is not None
    os.kill(identity.pid, signal.SIGKILL)
    assert process.wait_exited(identity, 10)
    return identity


def test_each_killed_process_is_restarted_with_its_data(
    provider: EmbeddedProvider, folder: ClusterFolder, watched: ProcessMonitor, lines: list[str]
) -> None:
    made(provider, "one").apply(namespace("precious"))
    for component in COMPONENTS:
        old = kill(folder, component)
        eventually(lambda: provider.state("one").ready, lambda: provider.state("one"))
        new = find_component(folder, component)
        assert new is not None
        assert new != old
        assert f"one: {component} exited, restarting" in lines
        assert folder.log(component).with_suffix(".previous.log").exists()
    kube = Kube(provider.kubeconfig("one"))
    assert kube.find(NAMESPACE, "precious")
    kube.apply(deployment("after"))
    eventually(
        lambda: kube.get(DEPLOYMENT, "after", "default")["status"].get("availableReplicas") == 2,
        lambda: kube.get(DEPLOYMENT, "after", "default")["status"],
    )


def test_processes_that_are_killed_at_once_are_restarted(
    provider: EmbeddedProvider, folder: ClusterFolder, watched: ProcessMonitor
) -> None:
    made(provider, "one").apply(namespace("precious"))
    for own in find_own(folder):
        os.kill(own.pid, signal.SIGKILL)
    eventually(lambda: provider.state("one").ready, lambda: provider.state("one"))
    assert Kube(provider.kubeconfig("one")).find(NAMESPACE, "precious")


def test_locked_cluster_is_left_to_the_holder_of_the_lock(
    provider: EmbeddedProvider, folder: ClusterFolder, watch: ProcessMonitor
) -> None:
    made(provider, "one")
    kill(folder, "kube-scheduler")
    with locked(folder.lock, "the lock", timeout=5):
        assert watch.tick(0) == []
        assert find_down(folder) == ["kube-scheduler"]
    assert watch.tick(0) == ["one"]
    assert find_down(folder) == []


def test_reused_pid_counts_as_an_exit_and_its_process_is_spared(
    provider: EmbeddedProvider,
    folder: ClusterFolder,
    watch: ProcessMonitor,
    stranger: ProcessIdentity,
) -> None:
    made(provider, "one")
    assert watch.tick(0) == []
    kill(folder, "kube-scheduler")
    folder.pid_file("kube-scheduler").write_text(str(stranger.pid))
    assert watch.tick(0) == ["one"]
    assert is_running(stranger)
    assert find_down(folder) == []


def test_failed_restart_is_reported_and_backs_off(
    provider: EmbeddedProvider, folder: ClusterFolder, planes: ControlPlanes, lines: list[str]
) -> None:
    made(provider, "one")
    now = [0.0]
    watch = ProcessMonitor(planes.folder(), lines.append, clock=lambda: now[0])
    real = folder.kwokctl.readlink()
    folder.link(folder.kwokctl, Path("/nowhere/kwokctl"))
    kill(folder, "kube-scheduler")
    for _ in range(10):
        assert watch.tick(0) == []
    told = [line for line in lines if "failed to restart" in line]
    assert 0 < len(told) < 10
    folder.link(folder.kwokctl, real)
    now[0] += 60
    assert watch.tick(0) == ["one"]
    watch.close()


def test_stopped_cluster_is_not_restarted(
    provider: EmbeddedProvider, folder: ClusterFolder, watch: ProcessMonitor, lines: list[str]
) -> None:
    made(provider, "one")
    assert watch.tick(0) == []
    provider.stop("one")
    assert watch.tick(0) == []
    provider.delete("one")
    assert watch.tick(0) == []
    assert lines == []


def test_watcher_ends_promptly_and_loads_no_large_modules(tmp_path: Path) -> None:
    text = f"""
import sys, threading
from pathlib import Path
from k8s_ucp.clusters.embedded.process_monitor import ProcessMonitor
stop = threading.Event()
threading.Timer(0.2, stop.set).start()
ProcessMonitor(Path({str(tmp_path)!r}), print).run(stop)
print(sorted({{name.partition('.')[0] for name in sys.modules}}
    & {{"kubernetes", "pydantic", "ruamel", "rich", "git"}}))
"""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "[]\n"
