"""Which ApplicationSets are refreshed: an AppProject was late, or a server did not respond."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.reconciler.applications.failed_sets import only_degraded, refresh_pause

AT = 1_764_000_000.0
"""2025-11-24T16:00:00Z."""
LATE = {
    "type": "ErrorOccurred",
    "status": "True",
    "reason": "ApplicationValidationError",
    "message": "application references project ucp-echo which does not exist",
    "lastTransitionTime": "2025-11-24T15:59:58Z",
}
NO_RESPONSE = {
    **LATE,
    "reason": "ApplicationGenerationFromParamsError",
    "message": "error generating params from git: error retrieving Git Directories: rpc error: "
    "code = Unavailable desc = name resolver error: produced zero addresses",
}


def application_set(*conditions: dict[str, str], topology: str = "demo") -> dict[str, Any]:
    template = {"metadata": {"labels": {"k8s-ucp.io/topology": topology}}}
    return {"spec": {"template": template}, "status": {"conditions": list(conditions)}}


def test_a_set_that_has_just_rejected_an_application_is_refreshed() -> None:
    assert refresh_pause(application_set(LATE), "demo", AT) == 1.0


@pytest.mark.parametrize(
    "message",
    [
        NO_RESPONSE["message"],
        "failed to list refs: dial tcp 10.96.0.7:9418: connect: connection refused",
        "dial tcp: lookup git-server on 10.96.0.10:53: no such host",
    ],
)
def test_a_set_is_refreshed_for_minutes_if_a_server_did_not_respond(message: str) -> None:
    """Argo CD alone tries again after three minutes, for instance after a reboot of the core."""
    found = application_set({**NO_RESPONSE, "message": message})
    assert refresh_pause(found, "demo", AT) == 5.0
    assert refresh_pause(found, "demo", AT + 500) == 5.0
    assert refresh_pause(found, "demo", AT + 700) is None


@pytest.mark.parametrize(
    "change",
    [
        {"status": "False"},
        {"reason": "ApplicationGenerationFromParamsError"},
        {"type": "ParametersGenerated"},
        {"lastTransitionTime": "2025-11-24T15:59:00Z"},
        {"lastTransitionTime": "soon"},
    ],
)
def test_other_errors_and_lasting_ones_are_left_to_argo_cd(change: dict[str, str]) -> None:
    assert refresh_pause(application_set({**LATE, **change}), "demo", AT) is None


def test_sets_of_others_are_left_alone() -> None:
    assert refresh_pause(application_set(LATE, topology="other"), "demo", AT) is None
    assert refresh_pause({"spec": {"template": {"metadata": {}}}}, "demo", AT) is None


def test_only_a_degraded_application_of_sets_is_looked_at() -> None:
    metadata = {"name": "applications"}
    degraded = {"metadata": metadata, "status": {"health": {"status": "Degraded"}}}
    assert only_degraded(degraded) == {"metadata": metadata}
    assert only_degraded({"metadata": metadata}) is None
    assert only_degraded({**degraded, "status": {"health": {"status": "Healthy"}}}) is None
