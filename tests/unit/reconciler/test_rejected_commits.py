"""Which Applications get a sync because the API server rejects their commit."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.reconciler.applications.rejected_commits import missing_sync, only_rejected

REJECTED = {
    "type": "ComparisonError",
    "message": "Failed to compare desired state to live state: failed to calculate diff: error "
    "calculating server side diff: serverSideDiff error: error running server side apply in dryrun "
    'mode for resource Deployment/echo: Deployment.apps "echo" is invalid',
}
UNREADABLE = {"type": "ComparisonError", "message": "Failed to load target state: no such path"}
WARNING = {"type": "OrphanedResourceWarning", "message": "serverSideDiff error"}
RETRY = {"limit": -1, "refresh": True, "backoff": {"duration": "1s"}}
POLICY = {"automated": {"prune": True}, "syncOptions": ["ServerSideApply=true"], "retry": RETRY}


def application(
    *conditions: dict[str, str],
    policy: dict[str, Any] = POLICY,
    operation: dict[str, Any] | None = None,
    last: dict[str, Any] | None = None,
    **metadata: str,
) -> dict[str, Any]:
    return {
        "metadata": {"name": "echo-stage", "resourceVersion": "7", **metadata},
        "spec": {"syncPolicy": policy},
        "operation": operation,
        "status": {
            "sync": {"status": "Unknown", "revision": "abc"},
            "conditions": list(conditions),
            "operationState": last,
        },
    }


def ended(phase: str, by: str = "k8s-ucp", revision: str = "abc") -> dict[str, Any]:
    return {
        "phase": phase,
        "operation": {"initiatedBy": {"username": by}},
        "syncResult": {"revision": revision},
    }


def test_a_rejected_commit_is_synced_by_the_policy_of_its_application() -> None:
    assert missing_sync(application(WARNING, REJECTED)) == {
        "metadata": {"resourceVersion": "7"},
        "operation": {
            "initiatedBy": {"automated": True, "username": "k8s-ucp"},
            "retry": RETRY,
            "sync": {"revision": "abc", "prune": True, "syncOptions": ["ServerSideApply=true"]},
        },
    }


@pytest.mark.parametrize(
    "item",
    [
        application(),
        application(WARNING),
        application(UNREADABLE),
        application(REJECTED, policy={}),
        application(REJECTED, policy={"automated": {"enabled": False}}),
        application(REJECTED, operation={"sync": {}}),
        application(REJECTED, last=ended("Running", by="")),
        application(REJECTED, last=ended("Terminating", by="")),
        application(REJECTED, deletionTimestamp="2026-01-01T00:00:00Z"),
        {"metadata": {"name": "new"}},
    ],
    ids=[
        "no error",
        "warning",
        "unreadable",
        "by hand",
        "paused",
        "requested",
        "running",
        "terminating",
        "deleted",
        "new",
    ],
)
def test_no_other_application_is_synced(item: dict[str, Any]) -> None:
    assert missing_sync(item) is None


def test_a_terminated_sync_is_started_again_only_for_another_commit() -> None:
    assert missing_sync(application(REJECTED, last=ended("Failed"))) is None
    assert missing_sync(application(REJECTED, last=ended("Failed", revision="older")))
    assert missing_sync(application(REJECTED, last=ended("Failed", by="somebody")))
    assert missing_sync(application(REJECTED, last=ended("Succeeded")))


def test_the_watch_keeps_only_rejected_applications_and_of_them_only_the_identity() -> None:
    assert only_rejected(application(UNREADABLE)) is None
    assert only_rejected(application(REJECTED)) == {
        "metadata": {"name": "echo-stage", "resourceVersion": "7"}
    }
