"""An ApplicationSet is refreshed whose error may pass, with ucp's own RBAC.

The errors are that it referred to an AppProject too early, or to a server that did not respond.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from k8s_ucp import names
from k8s_ucp.components import manifests
from k8s_ucp.kube import APPLICATION, APPLICATION_SET, Object
from k8s_ucp.timestamps import stamp
from k8s_ucp.tools.toolbox import Toolbox
from tests.integration.reconciler.world import ARGOCD, Clusters, eventually

pytestmark = pytest.mark.engines


def argocd_object(kind: str, name: str, spec: dict[str, Any]) -> Object:
    metadata = {"name": name, "namespace": ARGOCD}
    api = "argoproj.io/v1alpha1"
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def application_set(topology: str) -> dict[str, Any]:
    spec = {"project": "default", "destination": {}}
    labels = {names.TOPOLOGY: topology}
    return {
        "generators": [],
        "template": {"metadata": {"name": "x", "labels": labels}, "spec": spec},
    }


LATE_PROJECT = {
    "reason": "ApplicationValidationError",
    "message": "application references project ucp-echo which does not exist",
}
NO_RESPONSE = {
    "reason": "ApplicationGenerationFromParamsError",
    "message": "error retrieving Git Directories: rpc error: code = Unavailable desc = name "
    "resolver error: produced zero addresses",
}
"""What Argo CD writes if its repo-server is not ready yet."""


def fail(world: Clusters, name: str, error: dict[str, str]) -> None:
    condition = {
        "type": "ErrorOccurred",
        "status": "True",
        "lastTransitionTime": stamp(time.time()),
        **error,
    }
    status = {"status": {"conditions": [condition]}}
    world.core.patch(APPLICATION_SET, name, ARGOCD, status, subresource="status")


def is_refreshed(world: Clusters, name: str) -> bool:
    found = world.core.get(APPLICATION_SET, name, ARGOCD)
    return names.REFRESH_SET.items() <= (found["metadata"].get("annotations") or {}).items()


def test_a_set_is_refreshed_until_it_has_no_error_that_may_pass(
    world: Clusters, toolbox: Toolbox
) -> None:
    path = toolbox.module("argocd") / "manifests/crds/applicationset-crd.yaml"
    crds = manifests.read({path.name: path.read_bytes()})
    manifests.apply_all(world.core, crds)
    manifests.wait_served(world.core, crds)
    for name, topology in (("applications", "demo"), ("applications-protected", "other")):
        item = argocd_object("ApplicationSet", name, application_set(topology))
        world.core.apply(item, manager="test")
        fail(world, name, LATE_PROJECT)
    destination = {"name": "in-cluster", "namespace": ARGOCD}
    spec = {"project": "infrastructure", "destination": destination}
    try:
        world.core.apply(argocd_object("Application", "applications", spec), manager="test")
        world.start()
        degraded = {"status": {"health": {"status": "Degraded"}}}
        world.core.patch(APPLICATION, "applications", ARGOCD, degraded)
        eventually(lambda: is_refreshed(world, "applications"), "a refresh of the set")
        # As Argo CD does when it has looked again, with another error.
        fail(world, "applications", NO_RESPONSE)
        removed = {"metadata": {"annotations": dict.fromkeys(names.REFRESH_SET)}}
        world.core.patch(APPLICATION_SET, "applications", ARGOCD, removed)
        eventually(lambda: is_refreshed(world, "applications"), "another refresh of the set")
        assert not is_refreshed(world, "applications-protected")
    finally:
        for name in ("applications", "applications-protected"):
            world.core.delete(APPLICATION_SET, name, ARGOCD)
