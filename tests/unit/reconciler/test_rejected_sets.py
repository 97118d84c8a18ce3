"""Which ApplicationSets are refreshed because an AppProject was late."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.reconciler.applications.rejected_sets import needs_refresh, only_degraded

AT = 1_764_000_000.0
"""2025-11-24T16:00:00Z."""
LATE = {
    "type": "ErrorOccurred",
    "status": "True",
    "reason": "ApplicationValidationError",
    "message": "application references project ucp-echo which does not exist",
    "lastTransitionTime": "2025-11-24T15:59:58Z",
}


def application_set(*conditions: dict[str, str], topology: str = "demo") -> dict[str, Any]:
    template = {"metadata": {"labels": {"k8s-ucp.io/topology": topology}}}
    return {"spec": {"template": template}, "status": {"conditions": list(conditions)}}


def test_a_set_that_has_just_rejected_an_application_is_refreshed() -> None:
    assert needs_refresh(application_set(LATE), "demo", AT)


@pytest.mark.parametrize(
    "change",
    [
        {"status": "False"},
        {"reason": "ApplicationParamsGenerationError"},
        {"type": "ParametersGenerated"},
        {"lastTransitionTime": "2025-11-24T15:59:00Z"},
        {"lastTransitionTime": "soon"},
    ],
)
def test_other_errors_and_lasting_ones_are_left_to_argo_cd(change: dict[str, str]) -> None:
    assert not needs_refresh(application_set({**LATE, **change}), "demo", AT)


def test_sets_of_others_are_left_alone() -> None:
    assert not needs_refresh(application_set(LATE, topology="other"), "demo", AT)
    assert not needs_refresh({"spec": {"template": {"metadata": {}}}}, "demo", AT)


def test_only_a_degraded_application_of_sets_is_looked_at() -> None:
    metadata = {"name": "applications"}
    degraded = {"metadata": metadata, "status": {"health": {"status": "Degraded"}}}
    assert only_degraded(degraded) == {"metadata": metadata}
    assert only_degraded({"metadata": metadata}) is None
    assert only_degraded({**degraded, "status": {"health": {"status": "Healthy"}}}) is None
