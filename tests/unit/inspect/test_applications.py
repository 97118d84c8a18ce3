"""Why an Application isn't well, in Argo CD's words without their wrapping."""

from __future__ import annotations

from typing import Any

from k8s_ucp.inspect.applications import LENGTH, reason, trouble, troubles

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


REFUSED = {
    "kind": "ClusterRole",
    "name": "reader",
    "status": "SyncFailed",
    "message": "resource rbac.authorization.k8s.io:ClusterRole is not permitted in project "
    "applications",
}
RETRIED = {
    "phase": "Running",
    "retryCount": 4,
    "message": "one or more objects failed to apply. Retrying attempt #5 at 3:04PM.",
}


def test_a_sync_that_is_tried_for_ever_tells_what_it_could_not_apply() -> None:
    """Its phase is Running, as long as it is tried again."""
    result = {"resources": [{"kind": "Service", "name": "web", "status": "Synced"}, REFUSED]}
    said = trouble(application(operationState={**RETRIED, "syncResult": result}))
    assert said == (
        "ClusterRole reader: resource rbac.authorization.k8s.io:ClusterRole is not permitted in "
        "project applications (tried 5 times)"
    )
    # While it is being tried again the objects are not there, but what it said is.
    assert trouble(application(operationState=RETRIED)) == RETRIED["message"]
    # Argo CD's condition says only that something failed.
    echo = {"type": "SyncError", "message": "Failed last sync attempt: one or more objects"}
    failed = {"phase": "Failed", "message": "x", "syncResult": {"resources": [REFUSED] * 5}}
    said = trouble(application(echo, operationState=failed))
    assert said.startswith("ClusterRole reader: resource")
    assert said.endswith("; and 2 more objects")
    hook = {"kind": "Job", "namespace": "web", "name": "seed", "hookPhase": "Failed"}
    said = trouble(application(operationState={"syncResult": {"resources": [hook]}}))
    assert said == "Job web/seed: no reason given"


def test_whatever_is_not_well_is_named_where_nothing_has_failed() -> None:
    waiting = {"phase": "Running", "message": "waiting for healthy state of apps/Deployment/web"}
    assert reason(application(operationState=waiting)) == waiting["message"]
    unwell = {"kind": "Deployment", "namespace": "web", "name": "web", "status": "Synced"}
    unwell |= {"health": {"status": "Degraded"}}  # type: ignore[dict-item]
    differing = [{"kind": "Pod", "name": name, "status": "OutOfSync"} for name in "abcde"]
    assert reason(application(resources=[unwell, *differing])) == (
        "not healthy: Deployment web/web; out of sync with git: Pod a, Pod b, Pod c and 2 more"
    )


def test_an_object_that_is_not_well_is_told_with_what_argo_cd_says_of_it() -> None:
    health = {"status": "Degraded", "message": "it exceeded its progress deadline"}
    unwell = {"kind": "Deployment", "namespace": "web", "name": "web", "health": health}
    assert reason(application(resources=[unwell])) == (
        "not healthy: Deployment web/web (it exceeded its progress deadline)"
    )


def test_a_warning_is_not_the_reason_where_something_is_not_well() -> None:
    """As while an environment's cluster is away: Argo CD then knows fewer of its objects."""
    cluster = {"kind": "LocalCluster", "name": "demo-stage", "health": {"status": "Degraded"}}
    found = application(ORPHANS, resources=[cluster])
    assert reason(found) == "not healthy: LocalCluster demo-stage"
    assert reason(application(ORPHANS)) == "4 orphaned resources"


def test_whoever_waits_is_told_of_every_application_that_is_stuck() -> None:
    stuck = {"metadata": {"name": "clusters"}, **application(FETCH)}
    waiting = {"metadata": {"name": "web"}, **application()}
    well = application(FETCH, sync={"status": "Synced"}, health={"status": "Healthy"})
    (said,) = troubles([waiting, stuck, {"metadata": {"name": "api"}, **well}])
    assert said.startswith("Application clusters: Failed to load target state")


def test_a_repeated_sync_reports_its_objects_instead_of_the_attempt() -> None:
    """Argo CD removes the errors of the last attempt when it begins the next one."""
    repeats = {"phase": "Running", "retryCount": 2, "message": "Retrying operation. Attempt #2"}
    waiting = {"kind": "Job", "namespace": "web", "name": "seed", "health": {"status": "Missing"}}
    item = application(operationState=repeats, resources=[waiting])
    assert trouble(item) == ""
    assert reason(item) == "not healthy: Job web/seed"
    assert reason(application(operationState=repeats)) == repeats["message"]
