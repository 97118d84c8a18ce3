"""What an Application of Argo CD says of itself. Pure."""

from __future__ import annotations

from typing import Any

from k8s_ucp.kube import Object

_Key = tuple[str, str, str, str]


def is_settled(item: Object) -> bool:
    """All that git says is there and well. What it no longer says may be there too: see kept."""
    health = (_status(item).get("health") or {}).get("status")
    return health == "Healthy" and (sync_of(item) == "Synced" or bool(kept(item)))


def sync_of(item: Object) -> str:
    """Synced, OutOfSync, or Unknown."""
    return str((_status(item).get("sync") or {}).get("status") or "Unknown")


def kept(item: Object) -> list[str]:
    """Objects that git no longer says and that stay on purpose, where nothing else differs.

    Namespaces and data are never pruned (`Prune=false`): Argo CD goes on calling the Application
    OutOfSync, and skips them each time.
    """
    status = _status(item)
    results = ((status.get("operationState") or {}).get("syncResult") or {}).get("resources") or []
    skipped = {_key(each) for each in results if each.get("status") == "PruneSkipped"}
    different = [each for each in status.get("resources") or [] if each.get("status") != "Synced"]
    if sync_of(item) != "OutOfSync" or not all(
        each.get("requiresPruning") and _key(each) in skipped for each in different
    ):
        return []
    return sorted(_shown(each) for each in different)


def _status(item: Object) -> dict[str, Any]:
    return item.get("status") or {}


def _key(resource: dict[str, Any]) -> _Key:
    group, kind = str(resource.get("group", "")), str(resource.get("kind", ""))
    return group, kind, str(resource.get("namespace", "")), str(resource.get("name", ""))


def _shown(resource: dict[str, Any]) -> str:
    _, kind, namespace, name = _key(resource)
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
