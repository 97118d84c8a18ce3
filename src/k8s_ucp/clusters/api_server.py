"""Checks whether an API server is ready, from a client's point of view."""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import urlsplit

from k8s_ucp.kube import Kube, KubeError

READY = "/readyz"


def not_ready(config: dict[str, Any]) -> str | None:
    """Reason why the API server is not ready now; None if it is."""
    kube = Kube(config)
    try:
        return failure_of(kube, READY)
    finally:
        kube.close()


def failure_of(kube: Kube, path: str) -> str | None:
    """Reason why a health path does not succeed; None if it does."""
    if not _accepts(kube.server):
        return "the API server is not listening yet"
    try:
        kube.request("GET", path, timeout=2, text=True)
    except KubeError as error:
        return "the API server is still starting" if error.status == 500 else error.message
    return None


def _accepts(server: str) -> bool:
    """Whether something listens there. Much cheaper than a request that fails."""
    address = urlsplit(server)
    try:
        socket.create_connection((address.hostname, address.port), timeout=1).close()
    except OSError:
        return False
    return True
