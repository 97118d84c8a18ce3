"""What an Application of Argo CD says of itself. Pure."""

from __future__ import annotations

import re
from typing import Any

from k8s_ucp.kube import Object

LENGTH = 300
"""Longest text of a trouble, in characters."""

# Each of Argo CD's programs that passed an error on says so.
_PASSED_ON = re.compile(
    r"rpc error: code = \w+ desc = |failed to generate manifest for source \d+ of \d+: "
)
_Key = tuple[str, str, str, str]


def is_settled(item: Object) -> bool:
    """All that git says is there and well. What it no longer says may be there too: see kept."""
    return health_of(item) == "Healthy" and (sync_of(item) == "Synced" or bool(kept(item)))


def sync_of(item: Object) -> str:
    """Synced, OutOfSync, or Unknown."""
    return str((_status(item).get("sync") or {}).get("status") or "Unknown")


def health_of(item: Object) -> str:
    """Healthy, Progressing, Degraded and the like, or Unknown."""
    return str((_status(item).get("health") or {}).get("status") or "Unknown")


def trouble(item: Object) -> str:
    """The first error, or else the first warning, in few words; empty where there is none."""
    status = _status(item)
    conditions = status.get("conditions") or []
    errors = [each for each in conditions if not str(each.get("type")).endswith("Warning")]
    texts = [str(each.get("message")) for each in (*errors, *conditions)]
    operation = status.get("operationState") or {}
    if operation.get("phase") in ("Failed", "Error"):
        texts.insert(len(errors), str(operation.get("message")))
    return _short(texts[0]) if texts else ""


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


def _short(text: str) -> str:
    """One line with beginning and end: what was tried, and what came of it."""
    text = " ".join(_PASSED_ON.sub("", text).split())
    if len(text) <= LENGTH:
        return text
    return f"{text[: LENGTH // 3]} ... {text[-2 * LENGTH // 3 :]}"


def _status(item: Object) -> dict[str, Any]:
    return item.get("status") or {}


def _key(resource: dict[str, Any]) -> _Key:
    group, kind = str(resource.get("group", "")), str(resource.get("kind", ""))
    return group, kind, str(resource.get("namespace", "")), str(resource.get("name", ""))


def _shown(resource: dict[str, Any]) -> str:
    _, kind, namespace, name = _key(resource)
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
