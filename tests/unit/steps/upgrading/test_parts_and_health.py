"""What is upgraded in which order, and what holds an upgrade up."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.steps.upgrading.health import Steadiness, unwell, well
from k8s_ucp.steps.upgrading.parts import not_upgraded, numbers, parts
from tests.unit.gitops.topologies import demo, on_clouds


def test_the_core_comes_first_and_environments_as_they_promote() -> None:
    assert [each.name for each in parts(demo())] == [
        *("core", "crossplane", "argocd", "stage", "prod")
    ]
    assert parts(demo(addons={"argo-rollouts": True}))[-1].name == "argo-rollouts"


def test_what_others_upgrade_is_named_with_what_to_do() -> None:
    assert parts(on_clouds()) == []
    assert "ucp start" in not_upgraded(on_clouds())["eu"]
    assert not_upgraded(demo()) == {}


@pytest.mark.parametrize(
    ("older", "newer"), [("3.5.9", "3.5.10"), ("v1.34.4", "v1.35.0"), ("2.9", "2.10.0-rc.1")]
)
def test_versions_are_compared_by_their_numbers(older: str, newer: str) -> None:
    assert numbers(older) < numbers(newer)


def status(**changed: Any) -> dict[str, Any]:
    """Of a topology that is well, but for what is changed."""
    cluster = {"ready": True, "registered": True, "reachable": True}
    return {
        "core": {"name": "demo-core", "ready": True},
        "components": [{"name": "argocd", "ready": True}],
        "programs": [{"name": "kube-scheduler of demo-core", "ready": True}],
        "mirrors": [],
        "environments": [{"name": "stage", "cluster": cluster}],
        "applications": [{"name": "echo-stage", "sync": "Synced", "health": "Healthy"}],
        "claims": [{"kind": "Postgres", "namespace": "shop", "name": "db", "ready": True}],
        **changed,
    }


def test_what_was_unwell_before_holds_nobody_up() -> None:
    sick = status(applications=[{"name": "echo-stage", "sync": "OutOfSync", "health": "Degraded"}])
    assert unwell(well(sick), sick, {}) == []
    assert unwell(well(status()), status(), {}) == []


def test_what_was_well_and_is_not_is_named_with_its_reason() -> None:
    before = well(status())
    gone = status(applications=[], claims=[])
    assert unwell(before, gone, {"echo-stage": "no cluster"}) == [
        "application echo-stage: no cluster",
        "claim Postgres shop/db is not well",
    ]
    assert unwell(before, status(), {}, old=["echo-stage"]) == [
        "application echo-stage: not refreshed yet"
    ]


def test_a_program_of_a_control_plane_that_ended_is_not_well() -> None:
    ended = status(programs=[{"name": "kube-scheduler of demo-core", "ready": False}])
    why = {"program kube-scheduler of demo-core": "not running"}
    assert unwell(well(status()), ended, why) == [
        "program kube-scheduler of demo-core: not running"
    ]


def test_a_program_that_ends_itself_over_and_over_is_never_steady() -> None:
    steady = Steadiness()
    assert [steady.seconds({"kube-scheduler": run}, now) for now, run in enumerate("112")] == [
        *(0, 1, 0)
    ]
    assert steady.seconds({"kube-scheduler": "2"}, 9.0) == 7
    steady.end()
    assert steady.seconds({"kube-scheduler": "2"}, 10.0) == 0
