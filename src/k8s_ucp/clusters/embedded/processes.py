"""Verifies that a process belongs to a control plane before it is signaled.

kwokctl identifies and kills processes by PID file alone, but after a reboot the PID may belong to
another process. Two facts prove a process ours: its environment names this cluster's folder
(kwokctl passes it on), and its executable is the component's. Both hold even if the folder was
removed. If it was moved, the working folder of its processes proves more than the path, which may
be another cluster's by now.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from k8s_ucp import process
from k8s_ucp.clusters.embedded.folder import COMPONENTS, ClusterFolder
from k8s_ucp.loopback import is_loopback
from k8s_ucp.process import ProcessIdentity

FOLDER_VARIABLE = "UCP_CONTROL_PLANE"
"""Names the cluster's folder in the environment of its processes."""

_EXECUTABLES = {"kwok-controller": "kwok"}
"""Names of executables that differ from the component's."""


def find_own(folder: ClusterFolder) -> list[ProcessIdentity]:
    """All component processes of this cluster, even without a PID file."""
    return [
        identity
        for identity in _marked(folder)
        if any(_runs(folder, component, identity) for component in COMPONENTS)
    ]


def find_component(folder: ClusterFolder, component: str) -> ProcessIdentity | None:
    """The running process of a PID file; None if it exited or the PID is not ours."""
    pid = folder.read_pid(component)
    identity = process.identify(pid) if pid else None
    if identity is None or not _runs(folder, component, identity):
        return None
    return identity if process.is_marked(identity.pid, FOLDER_VARIABLE, str(folder.root)) else None


def find_exposed(folder: ClusterFolder) -> str:
    """Which components listen on more than loopback, for a message; empty if none does."""
    found = [find_component(folder, each) for each in COMPONENTS]
    running = {each.pid: Path(each.executable).name for each in found if each}
    # One call for all, since each call reads every connection of this machine.
    if all(is_loopback(address) for address, _ in process.listeners(*running)):
        return ""
    return ", ".join(
        f"{name} listens on {address}:{port}"
        for pid, name in running.items()
        for address, port in process.listeners(pid)
        if not is_loopback(address)
    )


def find_down(folder: ClusterFolder) -> list[str]:
    """Components that don't run."""
    return [each for each in COMPONENTS if find_component(folder, each) is None]


def clean_pid_files(folder: ClusterFolder) -> None:
    """Make PID files list this cluster's processes and no others before kwokctl starts anything.

    Files of dead or foreign processes are deleted, so that kwokctl starts those components and
    signals nobody else. Our processes without a file (kwokctl was killed before it wrote one) are
    ended, because they hold ports and data that the new ones need.
    """
    known = set()
    for component in COMPONENTS:
        identity = find_component(folder, component)
        if identity is None:
            folder.pid_file(component).unlink(missing_ok=True)
            keep_log(folder, component)
        else:
            known.add(identity.pid)
    process.terminate_all([each for each in find_own(folder) if each.pid not in known], grace=0)


def end_all(folder: ClusterFolder, *, grace: float) -> None:
    """End this cluster's processes: all at once but etcd, which gets time to close its data.

    grace: seconds for etcd. Raises DeadlineExceeded if one does not end.
    """
    # A kwokctl whose caller was killed may still be starting processes.
    process.terminate_all([each for each in _marked(folder) if _is_kwokctl(each)], grace=0)
    own = find_own(folder)
    stores = [each for each in own if _runs(folder, "etcd", each)]
    process.terminate_all([each for each in own if each not in stores], grace=0)
    process.terminate_all(stores, grace=grace)
    for component in COMPONENTS:
        folder.pid_file(component).unlink(missing_ok=True)


def end_components(folder: ClusterFolder, components: Iterable[str]) -> None:
    """End the processes of some components, so that they can be restarted."""
    found = [find_component(folder, each) for each in components]
    process.terminate_all([each for each in found if each], grace=0)


def keep_log(folder: ClusterFolder, component: str) -> None:
    """Rename the log of a dead process, because kwokctl starts with an empty one."""
    log = folder.log(component)
    with contextlib.suppress(FileNotFoundError):
        log.replace(log.with_suffix(".previous.log"))


def _marked(folder: ClusterFolder) -> list[ProcessIdentity]:
    """Processes that were started for this folder, wherever it was then."""
    return [
        each for each, _ in process.marked((FOLDER_VARIABLE, None)) if _belongs(folder, each.pid)
    ]


def _belongs(folder: ClusterFolder, pid: int) -> bool:
    works_here = process.works_in(pid, folder.root, folder.home)
    if works_here is None:
        return process.is_marked(pid, FOLDER_VARIABLE, str(folder.root))
    return works_here


def _is_kwokctl(identity: ProcessIdentity) -> bool:
    return Path(identity.executable.removesuffix(" (deleted)")).name == "kwokctl"


def _runs(folder: ClusterFolder, component: str, identity: ProcessIdentity) -> bool:
    executable = identity.executable.removesuffix(" (deleted)")
    link = folder.program(component)
    if link.is_symlink():
        return executable == str(link.resolve())
    return Path(executable).name == _EXECUTABLES.get(component, component)
