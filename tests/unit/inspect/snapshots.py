"""A topology of two environments, and snapshots of its clusters."""

from __future__ import annotations

from typing import Any

from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot, ComponentStatus
from k8s_ucp.topology import default

TOPOLOGY = default("demo", ["stage", "prod"])


def cluster(environment: str, *, leaving: bool = False, **conditions: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": f"demo-{environment}",
        "labels": {"k8s-ucp.io/environment": environment},
    }
    if leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = [
        {"type": kind, "status": status, "reason": "Because", "message": f"it is {status}"}
        for kind, status in conditions.items()
    ]
    return {"metadata": metadata, "spec": {"provider": "embedded"}, "status": {"conditions": found}}


def registration(environment: str, name: str = "", **labels: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"cluster-{name or f'demo-{environment}'}",
            "labels": {"k8s-ucp.io/environment": environment, **labels},
            "annotations": {"k8s-ucp.io/token-expires-at": "2026-01-02T00:00:00Z"},
        }
    }


WELL = ClusterSnapshot(
    core_ready=True,
    environments=["prod", "stage"],
    clusters=[cluster("prod", Ready="True", Reachable="True")],
    registrations=[registration("prod")],
    applications=[
        {
            "metadata": {
                "name": "echo-prod",
                "labels": {"k8s-ucp.io/app": "echo", "k8s-ucp.io/environment": "prod"},
            },
            "status": {
                "sync": {"status": "Synced", "revision": "abc"},
                "health": {"status": "Healthy"},
                "summary": {"images": ["echo:1"]},
            },
        },
        {"metadata": {"name": "clusters"}},
    ],
    answering=frozenset({"demo-prod"}),
    components=[ComponentStatus("argocd", "v1", True, "host")],
)
