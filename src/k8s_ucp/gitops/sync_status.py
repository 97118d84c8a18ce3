"""Whether Argo CD has deployed what is in git, as its Application reports it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from k8s_ucp import names


def sync_of(application: Mapping[str, Any]) -> str:
    """Synced, OutOfSync, or Unknown.

    OutOfSync, not Synced, while a sync that the reconciler has started fails: Argo CD takes a
    commit that the API server rejects for Synced half a minute later (argo-cd issue 28722).
    """
    status = application.get("status") or {}
    sync = status.get("sync") or {}
    if sync.get("status") == "Synced" and _is_rejected(status.get("operationState") or {}, sync):
        return "OutOfSync"
    return str(sync.get("status") or "Unknown")


def _is_rejected(operation: Mapping[str, Any], sync: Mapping[str, Any]) -> bool:
    """Whether the last sync is the reconciler's and hasn't succeeded.

    One that was terminated counts as long as its commit is the current one.
    """
    initiator = (operation.get("operation") or {}).get("initiatedBy") or {}
    if initiator.get("username") != names.OURS or operation.get("phase") == "Succeeded":
        return False
    synced = operation.get("syncResult") or {}
    return operation.get("phase") == "Running" or synced.get("revision") == sync.get("revision")
