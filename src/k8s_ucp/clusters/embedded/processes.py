"""Verifies that a process belongs to a control plane, before it is signaled.

kwokctl judges and kills by PID file alone: after a reboot the number may be a stranger's. Ours is
a process with two marks: its environment names this cluster's folder (kwokctl passes it on), and
its executable is that of the component. Both also hold when the folder itself was removed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from k8s_ucp import process
from k8s_ucp.clusters.embedded.folder import COMPONENTS, ClusterFolder
from k8s_ucp.process import ProcessIdentity

MARK = "UCP_CONTROL_PLANE"

LOOPBACK = ("127.0.0.1", "::1")

_EXECUTABLES = {"kwok-controller": "kwok"}
"""Names of executables where they differ from the component's."""


def find_own(folder: ClusterFolder) -> list[ProcessIdentity]:
    """Every component process of this cluster, also one without a PID file."""
    return [
        identity
        for identity in _marked(folder)
        if any(_runs(folder, component, identity) for component in COMPONENTS)
    ]


def find_component(folder: ClusterFolder, component: str) -> ProcessIdentity | None:
    """The running process behind a PID file; None where it is gone or a stranger's number."""
    pid = folder.read_pid(component)
    identity = process.identify(pid) if pid else None
    if identity is None or not _runs(folder, component, identity):
        return None
    return identity if process.is_marked(identity.pid, MARK, str(folder.root)) else None


def find_exposed(folder: ClusterFolder) -> str:
    """What listens on more than the loopback interface, in words; empty where nothing does."""
    found = [find_component(folder, each) for each in COMPONENTS]
    running = {each.pid: Path(each.executable).name for each in found if each}
    # Of all at once: each look reads every connection of this machine.
    if all(address in LOOPBACK for address, _ in process.listeners(*running)):
        return ""
    return ", ".join(
        f"{name} listens on {address}:{port}"
        for pid, name in running.items()
        for address, port in process.listeners(pid)
        if address not in LOOPBACK
    )


def find_down(folder: ClusterFolder) -> list[str]:
    """Components that don't run."""
    return [each for each in COMPONENTS if find_component(folder, each) is None]


def forget_strangers(folder: ClusterFolder) -> None:
    """Before kwokctl starts anything: PID files tell of this cluster's processes and no others.

    Files of dead or foreign processes go, so kwokctl starts those components and signals nobody.
    Processes of ours that no file tells of (kwokctl was killed before it wrote one) are ended: they
    hold ports and data of those that come.
    """
    known = set()
    for component in COMPONENTS:
        identity = find_component(folder, component)
        if identity is None:
            folder.pid_file(component).unlink(missing_ok=True)
            keep_last_words(folder, component)
        else:
            known.add(identity.pid)
    process.terminate_all([each for each in find_own(folder) if each.pid not in known], grace=0)


def end_all(folder: ClusterFolder, *, grace: float) -> None:
    """End this cluster's processes: all but etcd hold nothing and go at once, etcd closes its data.

    grace: seconds for etcd. Raises DeadlineExceeded when one does not end.
    """
    # A kwokctl whose caller was killed still starts processes.
    process.terminate_all([each for each in _marked(folder) if _is_kwokctl(each)], grace=0)
    own = find_own(folder)
    stores = [each for each in own if _runs(folder, "etcd", each)]
    process.terminate_all([each for each in own if each not in stores], grace=0)
    process.terminate_all(stores, grace=grace)
    for component in COMPONENTS:
        folder.pid_file(component).unlink(missing_ok=True)


def end_components(folder: ClusterFolder, components: Iterable[str]) -> None:
    """End some of a cluster's processes, where they run, to start them anew."""
    found = [find_component(folder, each) for each in components]
    process.terminate_all([each for each in found if each], grace=0)


def keep_last_words(folder: ClusterFolder, component: str) -> None:
    """Set the log of a dead process aside: kwokctl starts with an empty one."""
    log = folder.log(component)
    with contextlib.suppress(FileNotFoundError):
        log.replace(log.with_suffix(".previous.log"))


def _marked(folder: ClusterFolder) -> list[ProcessIdentity]:
    return [identity for identity, _ in process.marked((MARK, str(folder.root)))]


def _is_kwokctl(identity: ProcessIdentity) -> bool:
    return Path(identity.executable.removesuffix(" (deleted)")).name == "kwokctl"


def _runs(folder: ClusterFolder, component: str, identity: ProcessIdentity) -> bool:
    executable = identity.executable.removesuffix(" (deleted)")
    link = folder.program(component)
    if link.is_symlink():
        return executable == str(link.resolve())
    return Path(executable).name == _EXECUTABLES.get(component, component)
