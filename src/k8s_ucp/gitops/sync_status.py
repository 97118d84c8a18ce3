"""Whether Argo CD has deployed what is in git, as its Application reports it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from k8s_ucp import names


def sync_of(application: Mapping[str, Any]) -> str:
    """Synced, OutOfSync, or Unknown.

    OutOfSync also while a sync fails and is repeated, though Argo CD reports Synced: half a minute
    after an API server rejected the commit (argo-cd issue 28722), or if a hook fails.
    """
    status = application.get("status") or {}
    sync = status.get("sync") or {}
    if sync.get("status") == "Synced" and _fails(status.get("operationState") or {}, sync):
        return "OutOfSync"
    return str(sync.get("status") or "Unknown")


def _fails(operation: Mapping[str, Any], sync: Mapping[str, Any]) -> bool:
    """Whether the last sync has not succeeded yet, after a rejected commit or a failed attempt.

    One of the reconciler's that was terminated counts as long as its commit is the current one.
    """
    initiator = (operation.get("operation") or {}).get("initiatedBy") or {}
    is_ours, phase = initiator.get("username") == names.OURS, operation.get("phase")
    if phase == "Running":
        return is_ours or bool(operation.get("retryCount"))
    revision = (operation.get("syncResult") or {}).get("revision")
    return is_ours and phase != "Succeeded" and revision == sync.get("revision")
