"""Argo Rollouts, built from its pinned module, as a host process with an embedded cluster."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp import process
from k8s_ucp.components import argo_rollouts, manifests
from k8s_ucp.components.argo_rollouts import ArgoRollouts
from k8s_ucp.components.host.machine import Host
from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.kube import Kind, Kube
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import StateFolder
from tests.conftest import CACHE
from tests.control_planes import PAUSE_IMAGE, control_planes, eventually, made_with

pytestmark = pytest.mark.engines

ROLLOUT = Kind("argoproj.io/v1alpha1", "Rollout", "rollouts")
REPLICA_SET = Kind("apps/v1", "ReplicaSet", "replicasets")


@dataclass
class Running:
    kube: Kube
    rollouts: ArgoRollouts
    placement: HostPlacement

    def status(self) -> dict[str, Any]:
        return self.kube.get(ROLLOUT, "web", "default").get("status") or {}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, toolbox: Toolbox) -> Iterator[Running]:
    from k8s_ucp.tools.catalogue import ROLLOUTS
    from k8s_ucp.tools.installer import Installer

    built = Installer(CACHE, lambda event: None).install(ROLLOUTS)
    runtime = Path(f"/tmp/ucp-test-{os.getpid()}/rollouts")
    with control_planes(tmp_path_factory.mktemp("rollouts"), toolbox) as planes:
        provider = planes.provider()
        kinds = manifests.read(argo_rollouts.engine_manifests(built.module(argo_rollouts.NAME)))
        crds = [each for each in kinds if each.is_crd]
        kube = made_with(provider, "demo-stage", toolbox, crds)
        state = StateFolder(planes.root / "one" / "my files")
        state.make()
        kubeconfig = state.kubeconfig("demo-stage")
        kubeconfig.write_text(json.dumps(provider.kubeconfig("demo-stage")))
        kubeconfig.chmod(0o600)
        manifests.apply_all(kube, [each for each in kinds if not each.is_crd])
        host = Host(state, runtime, built, {}, kubeconfig)
        placement = HostPlacement(state, runtime)
        rollouts = ArgoRollouts(host, "stage", kubeconfig)
        try:
            placement.ensure_running()
            placement.start(rollouts.programs())
            eventually(lambda: rollouts.ready().ready, rollouts.ready)
            yield Running(kube, rollouts, placement)
        finally:
            placement.stop_all()
            planes.ports.release(str(host.folder(argo_rollouts.NAME, "stage")))
            kube.close()
            shutil.rmtree(runtime, ignore_errors=True)
    runtime.parent.rmdir()


def rollout(image: str) -> dict[str, Any]:
    labels = {"app": "web"}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 4,
            "selector": {"matchLabels": labels},
            "strategy": {"canary": {"steps": [{"setWeight": 25}, {"pause": {}}]}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    }


def test_a_canary_gets_a_quarter_of_the_pods_until_it_is_promoted(running: Running) -> None:
    kube = running.kube
    kube.apply(rollout(PAUSE_IMAGE))
    eventually(lambda: running.status().get("phase") == "Healthy", running.status)
    assert running.status()["readyReplicas"] == 4

    kube.apply(rollout(f"{PAUSE_IMAGE}.1"))
    eventually(lambda: running.status().get("phase") == "Paused", running.status)
    canary = running.status()["currentPodHash"]
    eventually(lambda: sizes(kube).get(canary) == 1, lambda: sizes(kube))
    assert sum(sizes(kube).values()) == 4

    # As `kubectl argo rollouts promote --full` does.
    change = {"status": {"promoteFull": True}}
    kube.patch(ROLLOUT, "web", "default", change, subresource="status")
    eventually(lambda: running.status().get("phase") == "Healthy", running.status)
    assert running.status()["stableRS"] == canary
    eventually(lambda: sizes(kube).get(canary) == 4, lambda: sizes(kube))


def sizes(kube: Kube) -> dict[str, int]:
    """Desired replicas by the hash of the pod template."""
    return {
        each["metadata"]["labels"]["rollouts-pod-template-hash"]: each["spec"]["replicas"]
        for each in kube.list_all(REPLICA_SET, "default")
        if "rollouts-pod-template-hash" in each["metadata"].get("labels", {})
    }


def test_argo_rollouts_listens_on_loopback_only(running: Running) -> None:
    state = running.placement.states()[running.rollouts.name]
    found = process.listeners(state.pid)
    assert len(found) == 2
    assert {address for address, _ in found} == {"127.0.0.1"}
