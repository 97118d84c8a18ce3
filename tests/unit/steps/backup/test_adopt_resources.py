"""Adoption of a previous core's resources: when one counts as observed, and interruptions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from k8s_ucp.context import AdoptionResult, StartContext
from k8s_ucp.steps.backup import adopt_resources
from k8s_ucp.steps.backup.adopt_resources import ADOPTING, RESTS, has_begun, unseen


def resource(status: str, message: str = "", reason: str = "ReconcileError") -> dict[str, Any]:
    condition = {"type": "Synced", "status": status, "reason": reason, "message": message}
    return {"status": {"conditions": [condition]}}


def test_a_resource_is_observed_if_it_exists_in_the_cloud_or_no_longer_does() -> None:
    assert unseen(resource("True")) == ""
    said = "observe failed: the external resource does not exist"
    assert unseen(resource("False", said)) == ""


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"status": {"conditions": []}},
        resource("False", "cannot get referenced ClusterProviderConfig default: it does not exist"),
        resource("False", "an account that may not look: AccessDenied"),
        resource("False"),
    ],
)
def test_a_resource_that_could_not_be_observed_is_waited_for(item: dict[str, Any]) -> None:
    assert unseen(item) != ""


@pytest.mark.parametrize("which", ["managed", "composite", "application"])
def test_an_interrupted_adoption_is_detected_while_any_object_is_paused(
    monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """All resources may be adopted while composites or Applications are still paused."""
    resting = {"metadata": {"annotations": {"k8s-ucp.io/adopting": "null"}}}
    found = {"managed": [{"metadata": {}}], "composite": [], "application": [{"metadata": {}}]}
    monkeypatch.setattr(adopt_resources, "composites", lambda _: found["composite"])
    state = SimpleNamespace(managed=lambda: [("", None, each) for each in found["managed"]])
    kube = SimpleNamespace(list_all=lambda *_: found["application"])
    context = cast(StartContext, SimpleNamespace(kube=kube, core_state=state))
    assert not has_begun(context)
    found[which].append(resting)
    assert has_begun(context)


def test_a_resumed_application_is_refreshed_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    """Argo CD skipped it while paused, and would refresh it only when its comparison expires."""
    patches: list[dict[str, Any]] = []
    resting = {"metadata": {"name": "clusters", "annotations": {RESTS: "true", ADOPTING: "null"}}}
    kube = SimpleNamespace(
        list_all=lambda *_: [resting], patch=lambda *rest: patches.append(rest[-1])
    )
    state = SimpleNamespace(managed=list, restored=tuple, note_restored=lambda *_: None)
    context = SimpleNamespace(kube=kube, core_state=state, adoption=AdoptionResult())
    monkeypatch.setattr(adopt_resources, "composites", lambda _: [])
    adopt_resources.adopt_resources.run(cast(StartContext, context), lambda _: None)
    (changed,) = patches
    assert changed["metadata"]["annotations"] == {
        RESTS: None,
        ADOPTING: None,
        "argocd.argoproj.io/refresh": "normal",
    }
