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
    found = str(_sync(application).get("status") or "Unknown")
    if found == "Synced" and (_is_repeated(application) or our_sync_failed(application)):
        return "OutOfSync"
    return found


def our_sync_failed(application: Mapping[str, Any]) -> bool:
    """Whether the last sync is one of the current commit that the reconciler started, and failed.

    It is repeated until it succeeds, so it failed for good if somebody terminated it.
    """
    last = _last_operation(application)
    revision = (last.get("syncResult") or {}).get("revision")
    is_current = revision == _sync(application).get("revision")
    return _is_ours(last) and last.get("phase") not in ("Running", "Succeeded") and is_current


def _is_repeated(application: Mapping[str, Any]) -> bool:
    """Whether a sync of a rejected commit runs, or one that has failed before."""
    last = _last_operation(application)
    return last.get("phase") == "Running" and (_is_ours(last) or bool(last.get("retryCount")))


def _is_ours(operation: Mapping[str, Any]) -> bool:
    """Whether the reconciler started it, which it only does for a rejected commit."""
    by = (operation.get("operation") or {}).get("initiatedBy") or {}
    return by.get("username") == names.OURS


def _last_operation(application: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (application.get("status") or {}).get("operationState") or {}
    return found


def _sync(application: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (application.get("status") or {}).get("sync") or {}
    return found
