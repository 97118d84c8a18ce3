"""The status of Syncers, as commands list it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from k8s_ucp import names
from k8s_ucp.kube import Object
from k8s_ucp.reconciler.runtime.conditions import find, is_true


def mirror_rows(syncers: Sequence[Object]) -> list[dict[str, Any]]:
    """The `mirrors` of `ucp status -o json`, sorted by name."""
    return [
        {
            "name": each["metadata"]["name"],
            "ready": is_true(each, names.READY) and not each["metadata"].get("deletionTimestamp"),
            "targets": [
                _target(target) for target in (each.get("status") or {}).get("targets", [])
            ],
        }
        for each in _sorted(syncers)
    ]


def mirror_details(syncers: Sequence[Object]) -> list[dict[str, Any]]:
    """The same with more fields, for `ucp mirror list`."""
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
