"""Health of each program of a control plane: the API can respond while some have exited.

The process monitor restarts what exited, so the state includes which run of a program it is: a
program in a crash loop may be up each time that it is checked.
"""

from __future__ import annotations

import contextlib
import http.client
import ssl
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from k8s_ucp.cluster_provider import ProgramHealth
from k8s_ucp.clusters.embedded import datastore
from k8s_ucp.clusters.embedded.folder import COMPONENTS, ClusterFolder, Record
from k8s_ucp.clusters.embedded.processes import find_component
from k8s_ucp.errors import UcpError
from k8s_ucp.loopback import ADDRESS

SECONDS = 2.0
HUNG_SECONDS = 15.0
"""Without any response for so long, a program hangs."""
QUICK_SECONDS = 10.0
"""The same where many clusters are checked often."""
SETTLED_SECONDS = 60.0
"""A younger program may only be slow to start."""
_PATHS = {
    "kube-controller-manager": "/healthz",
    "kube-scheduler": "/readyz",
    "kwok-controller": "/healthz",
}
"""Health paths of their own servers; the API server is checked by its clients."""


def hung_problem(folder: ClusterFolder, record: Record) -> str:
    """Which programs hang beside an API server that is ready, for a message; empty if none does.

    They are replaced when the cluster is started, so a busy machine must not look like this.
    """
    hung = find_hung(folder, record, _PATHS, QUICK_SECONDS)
    return f"not responding: {', '.join(hung)}" if hung else ""


def program_states(folder: ClusterFolder, record: Record) -> dict[str, ProgramHealth]:
    """Health by the names in COMPONENTS; `run` is empty if the program does not run."""
    return {each: _state(folder, record, each) for each in COMPONENTS}


def find_hung(
    folder: ClusterFolder,
    record: Record,
    components: Iterable[str] = COMPONENTS,
    seconds: float | None = None,
) -> list[str]:
    """Programs that run but have stopped responding.

    Waits up to `seconds`, by default HUNG_SECONDS, for them to respond. The process monitor only
    notices programs that exit.
    """
    until = time.monotonic() + (HUNG_SECONDS if seconds is None else seconds)
    silent = [each for each in components if _is_settled(folder, each)]
    while silent := [each for each in silent if _is_silent(folder, record, each)]:
        if time.monotonic() >= until:
            return silent
        time.sleep(1.0)
    return []


def _is_settled(folder: ClusterFolder, component: str) -> bool:
    found = find_component(folder, component)
    return found is not None and time.time() - found.started_at > SETTLED_SECONDS


def _is_silent(folder: ClusterFolder, record: Record, component: str) -> bool:
    """Whether it accepts connections and does not respond, not even with an error."""
    if component == "etcd":
        return _times_out(lambda: datastore.health_problem(folder.home, seconds=SECONDS))
    path = _PATHS.get(component, "/version")
    return _times_out(lambda: _get(record.ports[component], component, path))


def _times_out(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except TimeoutError:
        return True
    except UcpError as error:
        return isinstance(error.__cause__, TimeoutError)
    except (OSError, http.client.HTTPException):
        return False
    return False


def _state(folder: ClusterFolder, record: Record, component: str) -> ProgramHealth:
    found = find_component(folder, component)
    if found is None:
        return ProgramHealth("", "not running")
    run = f"{found.pid} {found.start}"
    if component == "etcd":
        return ProgramHealth(run, _datastore(folder.home))
    if component in _PATHS:
        return ProgramHealth(run, _server(record.ports[component], component))
    return ProgramHealth(run, "")


def _datastore(home: Path) -> str:
    try:
        return datastore.health_problem(home)
    except UcpError as error:
        return error.message


def _server(port: int, component: str) -> str:
    try:
        status, text = _get(port, component, _PATHS[component])
    except (OSError, http.client.HTTPException) as error:
        return str(error) or "not responding"
    return "" if status == 200 else f"{status} {' '.join(text.split())}"


def _get(port: int, component: str, path: str) -> tuple[int, str]:
    """Status and the beginning of a page. Raises OSError, HTTPException."""
    connection = (
        http.client.HTTPConnection(ADDRESS, port, timeout=SECONDS)
        if component == "kwok-controller"
        else http.client.HTTPSConnection(ADDRESS, port, timeout=SECONDS, context=_anybody())
    )
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read(300).decode("utf-8", "replace")


def _anybody() -> ssl.SSLContext:
    """Verifies nothing: older clusters have self-signed certificates, and only a path is sent.

    Without the machine's authorities, which take 20 ms to load: each start asks several programs.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
