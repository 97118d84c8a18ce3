"""The status of Syncers, as commands list it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from k8s_ucp import names
from k8s_ucp.kube import Object
from k8s_ucp.reconciler.mirrors.rules import SOURCE_MISSING
from k8s_ucp.reconciler.mirrors.spec import Selector
from k8s_ucp.reconciler.mirrors.status import NO_TARGET
from k8s_ucp.reconciler.runtime.conditions import find, is_true
from k8s_ucp.topology import Topology


def mirror_rows(
    syncers: Sequence[Object], topology: Topology | None = None
) -> list[dict[str, Any]]:
    """The `mirrors` of `ucp status -o json`, sorted by name.

    topology: adds `waitsFor`, the stopped environments that are all that a mirror waits for.
    """
    return [
        {
            "name": each["metadata"]["name"],
            "ready": is_true(each, names.READY) and not each["metadata"].get("deletionTimestamp"),
            "targets": [
                _target(target) for target in (each.get("status") or {}).get("targets", [])
            ],
            **({"waitsFor": stopped} if (stopped := _waits_for(each, topology)) else {}),
        }
        for each in _sorted(syncers)
    ]


def mirror_details(syncers: Sequence[Object]) -> list[dict[str, Any]]:
    """The rows of `mirror_rows` with more fields, for `ucp mirror list`."""
    found = []
    for row, item in zip(mirror_rows(syncers), _sorted(syncers), strict=True):
        namespace, status = item["metadata"]["namespace"], item.get("status") or {}
        details = {
            "namespace": namespace,
            "sources": [_source(each, namespace) for each in item["spec"]["data"]],
            "copies": status.get("copies", 0),
            "synced": status.get("synced", 0),
            "message": why(item),
        }
        found.append(row | details)
    return found


def stopped_targets(item: Object, topology: Topology) -> list[str]:
    """The stopped environments for which a mirror waits; empty if it lacks anything else."""
    stopped = topology.stopped_environments
    targets = (item.get("status") or {}).get("targets") or []
    if behind := {each["cluster"] for each in targets if not _target(each)["ready"]}:
        found = [each for each in stopped if topology.app_cluster(each) in behind]
        return found if len(found) == len(behind) else []
    ready = find(item, names.READY)
    if ready is None or ready["reason"] != NO_TARGET:
        return []
    entries = (each.get("targetSelector") for each in item["spec"]["data"])
    selectors = [Selector.of(each) for each in entries if each is not None]
    return [
        name
        for name in stopped
        if any(each.matches({names.ENVIRONMENT: name}) for each in selectors)
    ]


def _waits_for(item: Object, topology: Topology | None) -> list[str]:
    if topology is None or is_true(item, names.READY):
        return []
    return stopped_targets(item, topology)


def _sorted(syncers: Sequence[Object]) -> list[Object]:
    return sorted(
        syncers, key=lambda each: (each["metadata"]["name"], each["metadata"]["namespace"])
    )


def why(item: Object) -> str:
    """Reason and message of the condition Ready, unless it is true."""
    ready = find(item, names.READY)
    if ready is None:
        return "not reconciled yet"
    return "" if ready["status"] == "True" else f"{ready['reason']}: {ready['message']}"


def lacks_source(item: Object) -> bool:
    """Whether a mirror that is not ready waits for an object that it copies."""
    ready = find(item, names.READY)
    return ready is not None and ready["status"] != "True" and ready["reason"] == SOURCE_MISSING


def _target(target: Object) -> dict[str, Any]:
    condition = find({"status": target}, names.SYNCED)
    return {
        "cluster": target["cluster"],
        "ready": condition is not None and condition["status"] == "True",
        "message": condition["message"] if condition else "",
    }


def _source(entry: Object, own: str) -> str:
    selector = entry.get("sourceSelector")
    what = entry.get("sourceName") or "+".join(
        f"{name}={value}" for name, value in (selector or {}).get("matchLabels", {}).items()
    )
    where = entry.get("sourceNamespace") or own
    return f"{entry.get('kinds', 'secret')} {where}/{what or '*'}"
