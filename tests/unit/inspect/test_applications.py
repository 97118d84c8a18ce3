"""Why an Application is not healthy: Argo CD's message, without the nested error prefixes."""

from __future__ import annotations

from typing import Any

from k8s_ucp.inspect.applications import LENGTH, NOT_COMPARED, find_problem, find_problems, reason

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
    assert find_problem(application(ORPHANS, FETCH, operationState=FAILED)).startswith(
        "Failed to load"
    )
    assert find_problem(application(ORPHANS, operationState=FAILED)) == "one object is wrong"
    assert find_problem(application(ORPHANS)) == "4 orphaned resources"
    assert find_problem(application(operationState={"phase": "Running", "message": "x"})) == ""
    healed = {"phase": "Succeeded", "retryCount": 3, "message": "successfully synced"}
    assert find_problem(application(operationState=healed)) == ""
    assert find_problem({}) == ""


def test_the_root_cause_of_a_nested_error_is_shown() -> None:
    said = find_problem(application(FETCH))
    assert "rpc error" not in said
    assert "\n" not in said
    assert said.endswith("could not read Username for 'http://g': terminal prompts disabled")
    long = find_problem(
        application({"type": "ComparisonError", "message": "a" * 999 + " the cause"})
    )
    assert long.endswith(" the cause")
    assert len(long) == LENGTH + len(" ... ")


def test_argo_cds_temporary_files_are_not_shown() -> None:
    message = 'mapping not found for name: "web" from "/dev/shm/1214180121": no matches for "X"'
    said = find_problem(application({"type": "ComparisonError", "message": message}))
    assert said == 'mapping not found for name: "web": no matches for "X"'


def test_a_new_application_has_not_been_compared_yet() -> None:
    assert reason({"metadata": {"name": "web-stage"}}) == NOT_COMPARED
    compared = application(sync={"status": "Unknown"}, health={"status": "Unknown"})
    assert reason(compared) == ""


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


def test_a_retried_sync_reports_the_objects_that_failed_to_apply() -> None:
    """Its phase stays Running while Argo CD retries."""
    result = {"resources": [{"kind": "Service", "name": "web", "status": "Synced"}, REFUSED]}
    said = find_problem(application(operationState={**RETRIED, "syncResult": result}))
    assert said == (
        "ClusterRole reader: resource rbac.authorization.k8s.io:ClusterRole is not permitted in "
        "project applications (tried 5 times)"
    )
    # During a retry, the results of the objects are absent, and the message is kept.
    assert find_problem(application(operationState=RETRIED)) == RETRIED["message"]
    # Argo CD's condition says only that something failed.
    echo = {"type": "SyncError", "message": "Failed last sync attempt: one or more objects"}
    failed = {"phase": "Failed", "message": "x", "syncResult": {"resources": [REFUSED] * 5}}
    said = find_problem(application(echo, operationState=failed))
    assert said.startswith("ClusterRole reader: resource")
    assert said.endswith("; and 2 more objects")
    hook = {"kind": "Job", "namespace": "web", "name": "seed", "hookPhase": "Failed"}
    said = find_problem(application(operationState={"syncResult": {"resources": [hook]}}))
    assert said == "Job web/seed: no reason given"


def test_unhealthy_and_out_of_sync_objects_are_named_if_nothing_failed() -> None:
    waiting = {"phase": "Running", "message": "waiting for healthy state of apps/Deployment/web"}
    assert reason(application(operationState=waiting)) == waiting["message"]
    unwell = {"kind": "Deployment", "namespace": "web", "name": "web", "status": "Synced"}
    unwell |= {"health": {"status": "Degraded"}}  # type: ignore[dict-item]
    differing = [{"kind": "Pod", "name": name, "status": "OutOfSync"} for name in "abcde"]
    assert reason(application(resources=[unwell, *differing])) == (
        "not healthy: Deployment web/web; out of sync with git: Pod a, Pod b, Pod c and 2 more"
    )


def test_an_unhealthy_object_is_reported_with_its_health_message() -> None:
    health = {"status": "Degraded", "message": "it exceeded its progress deadline"}
    unwell = {"kind": "Deployment", "namespace": "web", "name": "web", "health": health}
    assert reason(application(resources=[unwell])) == (
        "not healthy: Deployment web/web (it exceeded its progress deadline)"
    )


def test_an_unhealthy_object_takes_precedence_over_a_warning() -> None:
    """For example while an app cluster is unreachable: Argo CD then knows fewer of its objects."""
    cluster = {"kind": "LocalCluster", "name": "demo-stage", "health": {"status": "Degraded"}}
    found = application(ORPHANS, resources=[cluster])
    assert reason(found) == "not healthy: LocalCluster demo-stage"
    assert reason(application(ORPHANS)) == "4 orphaned resources"


def test_all_stuck_applications_are_reported_while_waiting() -> None:
    stuck = {"metadata": {"name": "clusters"}, **application(FETCH)}
    waiting = {"metadata": {"name": "web"}, **application()}
    well = application(FETCH, sync={"status": "Synced"}, health={"status": "Healthy"})
    (said,) = find_problems([waiting, stuck, {"metadata": {"name": "api"}, **well}])
    assert said.startswith("Application clusters: Failed to load target state")


def test_a_repeated_sync_reports_its_objects_instead_of_the_attempt() -> None:
    """Argo CD removes the errors of the last attempt when it begins the next one."""
    repeats = {"phase": "Running", "retryCount": 2, "message": "Retrying operation. Attempt #2"}
    waiting = {"kind": "Job", "namespace": "web", "name": "seed", "health": {"status": "Missing"}}
    item = application(operationState=repeats, resources=[waiting])
    assert find_problem(item) == ""
    assert reason(item) == "not healthy: Job web/seed"
    assert reason(application(operationState=repeats)) == repeats["message"]
