"""Why an Application isn't well, in Argo CD's words without their wrapping."""

from __future__ import annotations

from typing import Any

from k8s_ucp.applications import LENGTH, trouble

ORPHANS = {"type": "OrphanedResourceWarning", "message": "4 orphaned resources"}
FETCH = {
    "type": "ComparisonError",
    "message": "Failed to load target state: failed to generate manifest for source 1 of 1: "
    "rpc error: code = Unknown desc = failed to initialize repository resources: "
    "rpc error: code = Internal desc = Failed to fetch default: "
    "`git fetch origin --tags --force --prune` failed exit status 128:\nfatal: "
    "could not read Username for 'http://g': terminal prompts disabled",
}
FAILED = {"phase": "Failed", "message": "one object is wrong"}


def application(*conditions: dict[str, str], **status: Any) -> dict[str, Any]:
    return {"status": {"conditions": list(conditions), **status}}


def test_errors_come_first_and_warnings_last() -> None:
    assert trouble(application(ORPHANS, FETCH, operationState=FAILED)).startswith("Failed to load")
    assert trouble(application(ORPHANS, operationState=FAILED)) == "one object is wrong"
    assert trouble(application(ORPHANS)) == "4 orphaned resources"
    assert trouble(application(operationState={"phase": "Running", "message": "x"})) == ""
    assert trouble({}) == ""


def test_the_cause_is_shown_however_often_it_was_passed_on() -> None:
    said = trouble(application(FETCH))
    assert "rpc error" not in said
    assert "\n" not in said
    assert said.endswith("could not read Username for 'http://g': terminal prompts disabled")
    long = trouble(application({"type": "ComparisonError", "message": "a" * 999 + " the cause"}))
    assert long.endswith(" the cause")
    assert len(long) == LENGTH + len(" ... ")
