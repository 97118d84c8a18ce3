"""Health of custom kinds, as the pinned Argo CD computes it with the rendered settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.process import run
from k8s_ucp.tools.toolbox import Toolbox
from tests.unit.gitops.topologies import FACTS, demo

SIMULATED = {"k8s-ucp.io/simulated": "true"}


def ready(status: str, reason: str, generation: int = 2) -> dict[str, Any]:
    condition = {"type": "Ready", "status": status, "reason": reason, "message": "why"}
    return {"observedGeneration": generation, "conditions": [condition]}


def taken(generation: int = 2, **conditions: str) -> dict[str, Any]:
    return {
        "parents": [
            {
                "conditions": [
                    {"type": each, "status": status, "observedGeneration": generation}
                    for each, status in conditions.items()
                ]
            }
        ]
    }


def synced(phase: str, health: str = "Healthy") -> dict[str, Any]:
    return {
        "sync": {"status": "Synced"},
        "health": {"status": health},
        "operationState": {"phase": phase, "message": "why"},
    }


APPLICATION = ("argoproj.io/v1alpha1", "Application")
LOCAL_CLUSTER = ("k8s-ucp.io/v1alpha1", "LocalCluster")
SYNCER = ("k8s-ucp.io/v1alpha1", "Syncer")
INGRESS = ("networking.k8s.io/v1", "Ingress")
ROUTE = ("gateway.networking.k8s.io/v1", "HTTPRoute")
ADDRESS = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
AUTOMATED = {"syncPolicy": {"automated": {"prune": True}}}

CASES: list[tuple[tuple[str, str], dict[str, Any], str]] = [
    (APPLICATION, {"spec": AUTOMATED, "status": {"health": {"status": "Healthy"}}}, "Progressing"),
    (APPLICATION, {"spec": AUTOMATED, "status": synced("Succeeded")}, "Healthy"),
    (APPLICATION, {"spec": AUTOMATED, "status": synced("Succeeded", "Degraded")}, "Degraded"),
    (APPLICATION, {"spec": AUTOMATED, "status": synced("Running")}, "Progressing"),
    (APPLICATION, {"spec": AUTOMATED, "status": synced("Failed")}, "Degraded"),
    (LOCAL_CLUSTER, {}, "Progressing"),
    (LOCAL_CLUSTER, {"status": ready("True", "Running", 1)}, "Progressing"),
    (LOCAL_CLUSTER, {"status": ready("True", "Running")}, "Healthy"),
    (SYNCER, {"status": ready("True", "Copied")}, "Healthy"),
    (SYNCER, {"status": ready("False", "SourceMissing")}, "Healthy"),
    (SYNCER, {"status": ready("False", "Copying")}, "Progressing"),
    (SYNCER, {"status": ready("False", "Conflict")}, "Degraded"),
    (INGRESS, {}, "Progressing"),
    (INGRESS, {"annotations": SIMULATED}, "Healthy"),
    (INGRESS, {"status": ADDRESS}, "Healthy"),
    (ROUTE, {}, "Progressing"),
    (ROUTE, {"annotations": SIMULATED}, "Healthy"),
    (ROUTE, {"status": taken(Accepted="True", ResolvedRefs="True")}, "Healthy"),
    (ROUTE, {"status": taken(1, Accepted="True", ResolvedRefs="True")}, "Progressing"),
    (ROUTE, {"status": taken(Accepted="True", ResolvedRefs="False")}, "Degraded"),
    (ROUTE, {"status": taken(Accepted="False")}, "Degraded"),
]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "argocd-cm.yaml"
    rendered = render(demo(addons={"ingress": "gateway"}), FACTS)
    path.write_bytes(rendered.core["platform/argocd/config/argocd-cm.yaml"])
    return path


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{kind[1]}-{number}" for number, (kind, _, _) in enumerate(CASES)]
)
def test_argocd_derives_the_health_of_an_object_from_its_status(
    case: tuple[tuple[str, str], dict[str, Any], str],
    settings: Path,
    toolbox: Toolbox,
    tmp_path: Path,
) -> None:
    (api_version, kind), more, wanted = case
    metadata = {"name": "a", "namespace": "a", "generation": 2}
    if "annotations" in more:
        metadata["annotations"] = more["annotations"]
    item = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata,
        "spec": more.get("spec", {}),
        "status": more.get("status"),
    }
    file = tmp_path / "item.yaml"
    with file.open("w") as stream:
        YAML().dump({key: value for key, value in item.items() if value is not None}, stream)
    argocd = str(toolbox.path("argocd"))
    words = ["admin", "settings", "resource-overrides", "health", str(file)]
    told = run([argocd, *words, "--argocd-cm-path", str(settings)], timeout=60)
    assert told.splitlines()[0] == f"STATUS: {wanted}"
