"""The processes of an embedded topology, and whether all is well."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.process import identify, is_running, spawn, terminate
from k8s_ucp.workspace import Workspace
from tests.e2e.world import Workbench

TOGETHER = {
    "store": [("etcd", "demo-core"), ("kube-apiserver", "demo-prod"), ("redis-server", "")],
    "api": [("kube-apiserver", "demo-core"), ("etcd", "demo-stage")],
    "controllers": [
        ("kube-controller-manager", "demo-core"),
        ("kube-scheduler", "demo-stage"),
        ("kwok-controller", "demo-stage"),
        ("crossplane", ""),
        ("reconciler", ""),
    ],
    "argocd": [
        ("argocd", "repo-server"),
        ("argocd", "application-controller"),
        ("argocd", "applicationset-controller"),
        ("argocd", "server"),
        ("watcher", ""),
    ],
    "supervisord": [("supervisord", "")],
}
"""Processes that are killed at once: (a word of the command line, a second word or "")."""
PASSING = {"git", "git-remote-http", "helm", "kustomize"}
PROCESSES = [each for several in TOGETHER.values() for each in several]


def named(world: Workbench, program: str, detail: str) -> list[psutil.Process]:
    """Processes of a component; those of Argo CD are distinguished by ARGOCD_BINARY_NAME."""
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


def host_placement(world: Workbench) -> HostPlacement:
    """Placement that runs the components."""
    workspace = Workspace.at(world.workspace)
    folder = workspace.runtime_folder(world.topology)
    return HostPlacement(workspace.state(world.topology), folder)


def well(world: Workbench) -> bool:
    """Everything is ready, and Argo CD has compared the apps again and reports Synced."""
    return world.is_well(clusters="registered", applications=2)


@contextmanager
def power_cut(world: Workbench, folder: Path) -> Iterator[None]:
    """Kill everything and boot: PID files then name a foreign process, which the block spares.

    folder: for that process.
    """
    sockets = Workspace.at(world.workspace).runtime_folder(world.topology)
    world.kill_everything()
    shutil.rmtree(sockets, ignore_errors=True)  # A boot empties /tmp.
    stranger = spawn(
        ["sleep", "600"], env={"PATH": os.environ["PATH"]}, cwd=folder, log=folder / "log"
    )
    try:
        for file in world.state.rglob("*.pid"):
            file.write_text(str(stranger.pid))
        yield
        assert is_running(stranger)
        assert identify(stranger.pid) == stranger
    finally:
        terminate(stranger, grace=5)


def names_of_processes(world: Workbench) -> Counter[str]:
    """Names of the processes, without short-lived ones."""
    found = Counter(each.name() for each in world.processes())
    return Counter({name: count for name, count in found.items() if name not in PASSING})
