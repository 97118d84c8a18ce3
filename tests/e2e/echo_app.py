"""The echo app in an environment: its image and its answer."""

from __future__ import annotations

from k8s_ucp.kube import DEPLOYMENT, Kube
from tests.e2e.world import Workbench


def image(kube: Kube) -> str | None:
    found = kube.find(DEPLOYMENT, "echo", "echo")
    return found["spec"]["template"]["spec"]["containers"][0]["image"] if found else None


def answer(world: Workbench, environment: str) -> str:
    """The echo app's answer over HTTP: the tag of its image."""
    kube = world.kube(environment)
    try:
        path = "/api/v1/namespaces/echo/services/echo:http/proxy/"
        return str(kube.request("GET", path, text=True)).strip()
    finally:
        kube.close()
