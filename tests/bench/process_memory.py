"""MiB of each process of a topology or of the baseline (floor), under names that both share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

_CLUSTER = re.compile(r"/clusters/\S*?(core|stage|prod)(?=/|\s|$)")
WHY: Mapping[str, str] = {
    "kube-apiserver of core": "each kind as stored, as served, as two validators and twice as "
    "OpenAPI, which Argo CD reads; three quarters of it again before Go collects",
    "kube-apiserver": "105 MiB in use without any object: 2300 goroutines, a cache for each "
    "resource, OpenAPI; three quarters of it again before Go collects (the floor: as much again)",
    "argocd-application-controller": "every object of the clusters that it manages and each "
    "one's OpenAPI; the floor's doesn't manage the core",
    "argocd-applicationset-controller": "generates the Applications",
    "argocd-repo-server": "renders; kustomize and helm are its children, for moments",
    "argocd-server": "the API for people, and its copy of all Applications",
    "crossplane": "its informers of 20 kinds; half of it is the program itself",
    "etcd of core": "its data as mapped pages, an index, the last 100 writes (the floor: 5000)",
    "etcd": "the same of a cluster that is nearly empty",
    "kube-controller-manager": "informers of all resources; three controllers are off",
    "kube-scheduler": "informers of pods, nodes and volumes",
    "kwok": "plays nodes, pods, Services, Ingresses, claims and autoscalers (the floor: nodes "
    "and pods)",
    "reconciler": "Python: 38 MiB of modules, a third of them to read ucp.yaml; 30 threads",
    "supervisord": "Python: starts the components again",
    "watcher": "Python: starts control planes and supervisord again",
    "redis-server": "Argo CD's cache",
}
"""What a process does and what its memory contains, by its name with or without its cluster."""

_PYTHON = {
    "watcher": re.compile("k8s_ucp.components.watcher"),
    "reconciler": re.compile("reconciler run"),
    "supervisord": re.compile("supervisor"),
}


def memory_by_process(folder: Path) -> dict[str, float]:
    """MiB by name, such as `kube-apiserver of core`, of all processes that belong to a folder.

    Shared pages are divided among their processes (PSS).
    """
    found: dict[str, float] = {}
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            words = [process.cwd(), *process.cmdline(), *environment.values()]
            if any(str(folder) in word for word in words):
                name = _name(process, environment, " ".join(words))
                found[name] = found.get(name, 0) + process.memory_full_info().pss / 2**20
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


def _name(process: psutil.Process, environment: dict[str, str], words: str) -> str:
    program = Path(process.exe()).name
    if program.startswith("python"):
        return next((name for name, mark in _PYTHON.items() if mark.search(words)), program)
    if program == "argocd":
        return environment["ARGOCD_BINARY_NAME"]
    cluster = _CLUSTER.search(words)
    return f"{program} of {cluster.group(1)}" if cluster else program


def rows(
    floor: Mapping[str, float], start: Mapping[str, float]
) -> Iterator[tuple[str, str, str, str]]:
    """Process, MiB of both, and reason; the largest first."""
    for name in sorted(
        {*floor, *start}, key=lambda each: (-max(floor.get(each, 0), start.get(each, 0)), each)
    ):
        why = WHY.get(name) or WHY.get(name.partition(" of ")[0], "")
        yield name, _mib(floor, name), _mib(start, name), why


def _mib(found: Mapping[str, float], name: str) -> str:
    return f"{found[name]:.0f}" if name in found else "-"
