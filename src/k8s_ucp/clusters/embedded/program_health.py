"""Health of each program of a control plane: the API can respond while some have exited.

The process monitor restarts what exited, so the state includes which run of a program it is: a
program in a crash loop may be up each time that it is checked.
"""

from __future__ import annotations

import contextlib
import http.client
import ssl
from pathlib import Path

from k8s_ucp.cluster_provider import ProgramHealth
from k8s_ucp.clusters.embedded import datastore
from k8s_ucp.clusters.embedded.folder import COMPONENTS, ClusterFolder, Record
from k8s_ucp.clusters.embedded.processes import find_component
from k8s_ucp.errors import UcpError
from k8s_ucp.loopback import ADDRESS

SECONDS = 2.0
_PATHS = {
    "kube-controller-manager": "/healthz",
    "kube-scheduler": "/readyz",
    "kwok-controller": "/healthz",
}
"""Health paths of their own servers; the API server is checked by its clients."""


def program_states(folder: ClusterFolder, record: Record) -> dict[str, ProgramHealth]:
    """Health by the names in COMPONENTS; `run` is empty if the program does not run."""
    return {each: _state(folder, record, each) for each in COMPONENTS}


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
    connection = (
        http.client.HTTPConnection(ADDRESS, port, timeout=SECONDS)
        if component == "kwok-controller"
        else http.client.HTTPSConnection(ADDRESS, port, timeout=SECONDS, context=_anybody())
    )
    with contextlib.closing(connection):
        try:
            connection.request("GET", _PATHS[component])
            answer = connection.getresponse()
            text = answer.read(300).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            return str(error) or "not responding"
    return "" if answer.status == 200 else f"{answer.status} {' '.join(text.split())}"


def _anybody() -> ssl.SSLContext:
    """Verifies nothing: older clusters have self-signed certificates, and only a path is sent."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
