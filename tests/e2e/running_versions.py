"""What runs in a topology, by version."""

from __future__ import annotations

import json

from tests.e2e.world import Workbench


def pods(world: Workbench, cluster: str) -> dict[str, tuple[str, str, int]]:
    """UID, start time and restarts of every pod."""
    kube = world.kube(cluster)
    found = {}
    for each in kube.list_all(kube.kind_of("v1", "Pod")):
        status = each["status"]
        restarts = sum(one["restartCount"] for one in status.get("containerStatuses", []))
        name = f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        found[name] = (each["metadata"]["uid"], status.get("startTime", ""), restarts)
    kube.close()
    return found


def versions(world: Workbench) -> dict[str, str]:
    return {each["name"]: each["version"] for each in world.status()["components"]}


def kubernetes_of(world: Workbench, cluster: str) -> str:
    record = world.state / "clusters" / f"{world.topology}-{cluster}" / "cluster.json"
    return str(json.loads(record.read_text())["version"])
