"""A commit that was rejected, or whose hook fails, is not Synced, whatever Argo CD reports."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.gitops.promotion.gates import classify
from k8s_ucp.inspect.applications import is_settled
from k8s_ucp.sync_status import sync_of


def application(
    sync: str, phase: str, *, by: str = "k8s-ucp", revision: str = "abc", retries: int = 0
) -> dict[str, Any]:
    return {
        "status": {
            "sync": {"status": sync, "revision": "abc"},
            "health": {"status": "Healthy"},
            "operationState": {
                "phase": phase,
                "retryCount": retries,
                "operation": {"initiatedBy": {"automated": True, "username": by}},
                "syncResult": {"revision": revision},
            },
        }
    }


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (application("Synced", "Running"), "OutOfSync"),
        # A repeated sync fetches the newest commit itself.
        (application("Synced", "Running", revision="older"), "OutOfSync"),
        (application("Synced", "Failed"), "OutOfSync"),
        (application("Synced", "Error"), "OutOfSync"),
        (application("Synced", "Failed", revision="older"), "Synced"),
        (application("Synced", "Succeeded"), "Synced"),
        (application("Synced", "Failed", by="somebody"), "Synced"),
        # A hook that runs after the objects are Synced.
        (application("Synced", "Running", by="", retries=2), "OutOfSync"),
        (application("Synced", "Running", by=""), "Synced"),
        (application("Synced", "Succeeded", by="", retries=2), "Synced"),
        (application("Unknown", "Running"), "Unknown"),
        ({"status": {"sync": {"status": "Synced"}}}, "Synced"),
        ({}, "Unknown"),
    ],
)
def test_a_sync_that_fails_makes_an_application_out_of_sync(
    item: dict[str, Any], expected: str
) -> None:
    assert sync_of(item) == expected


def test_a_rejected_commit_is_not_settled_and_holds_up_the_next_environment() -> None:
    rejected = application("Synced", "Running")
    assert not is_settled(rejected)
    assert classify(rejected, {}).state == "waiting"
    assert is_settled(application("Synced", "Succeeded"))
    assert classify(application("Synced", "Succeeded"), {}).state == "open"
