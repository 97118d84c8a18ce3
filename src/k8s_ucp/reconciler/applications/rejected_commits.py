"""Applications whose commit an API server rejects: finding them, and the sync that proves it. Pure.

Argo CD compares an app by a server-side dry run. If the API server rejects that, Argo CD reports a
ComparisonError, starts no sync, and takes its own empty result for "nothing differs" when it
compares the same commit again: the Application becomes Synced, though nothing of the commit was
deployed (argo-cd issue 28722). A sync of that commit fails with the reason, and is repeated until
it succeeds or a newer commit does.
"""

from __future__ import annotations

from k8s_ucp import names
from k8s_ucp.kube import Object
from k8s_ucp.sync_status import our_sync_failed

_DRY_RUN_FAILED = "serverSideDiff error"
"""Part of Argo CD's message, if the comparison failed by the dry run and not before."""


def is_rejected(application: Object) -> bool:
    """Whether the dry run of the current commit failed."""
    return any(
        each.get("type") == "ComparisonError" and _DRY_RUN_FAILED in str(each.get("message"))
        for each in _status(application).get("conditions") or []
    )


def only_rejected(application: Object) -> Object | None:
    """For the informer: the identity of an Application with a rejected commit, or nothing."""
    return {"metadata": application["metadata"]} if is_rejected(application) else None


def missing_sync(application: Object) -> Object | None:
    """The merge patch that starts the sync of a rejected commit; None if none may start.

    None may if Argo CD doesn't sync this Application automatically, if another sync runs, or if
    somebody terminated this one.
    """
    policy = (application.get("spec") or {}).get("syncPolicy") or {}
    automated = policy.get("automated")
    revision = (_status(application).get("sync") or {}).get("revision")
    if (
        automated is None
        or automated.get("enabled") is False
        or not is_rejected(application)
        or not revision
        or "deletionTimestamp" in application["metadata"]
        or _runs(application)
        or our_sync_failed(application)
    ):
        return None
    sync = {
        "revision": revision,
        "prune": bool(automated.get("prune")),
        "syncOptions": policy.get("syncOptions") or [],
    }
    # Automated, so that it obeys sync windows, as the sync would that Argo CD didn't start.
    by = {"automated": True, "username": names.OURS}
    retry = policy.get("retry") or {"limit": -1, "refresh": True}
    return {
        # The version that was read: meanwhile Argo CD may have started a sync itself.
        "metadata": {"resourceVersion": application["metadata"]["resourceVersion"]},
        "operation": {"initiatedBy": by, "retry": retry, "sync": sync},
    }


def _runs(application: Object) -> bool:
    phase = (_status(application).get("operationState") or {}).get("phase")
    return bool(application.get("operation")) or phase in ("Running", "Terminating")


def _status(application: Object) -> Object:
    return application.get("status") or {}
