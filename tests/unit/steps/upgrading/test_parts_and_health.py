"""The order of an upgrade's parts, and health problems that stop it."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.steps.upgrading.health import StabilityTimer, healthy_names, no_longer_healthy
from k8s_ucp.steps.upgrading.parts import not_upgraded, numbers, parts
from tests.unit.gitops.topologies import demo, on_clouds


def test_the_core_is_upgraded_first_and_environments_in_promotion_order() -> None:
    assert [each.name for each in parts(demo())] == [
        *("core", "crossplane", "argocd", "stage", "prod")
    ]
    assert parts(demo(addons={"argo-rollouts": True}))[-1].name == "argo-rollouts"


def test_clusters_that_ucp_does_not_upgrade_are_listed_with_the_next_command() -> None:
    assert parts(on_clouds()) == []
    assert "ucp start" in not_upgraded(on_clouds())["eu"]
    assert not_upgraded(demo()) == {}


@pytest.mark.parametrize(
    ("older", "newer"), [("3.5.9", "3.5.10"), ("v1.34.4", "v1.35.0"), ("2.9", "2.10.0-rc.1")]
)
def test_versions_are_compared_numerically(older: str, newer: str) -> None:
    assert numbers(older) < numbers(newer)


def status(**changed: Any) -> dict[str, Any]:
    """The status of a healthy topology, with the given changes."""
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


def test_parts_unhealthy_before_the_upgrade_do_not_block_it() -> None:
    sick = status(applications=[{"name": "echo-stage", "sync": "OutOfSync", "health": "Degraded"}])
    assert no_longer_healthy(healthy_names(sick), sick, {}) == []
    assert no_longer_healthy(healthy_names(status()), status(), {}) == []


def test_parts_that_became_unhealthy_are_reported_with_their_reason() -> None:
    before = healthy_names(status())
    gone = status(applications=[], claims=[])
    assert no_longer_healthy(before, gone, {"echo-stage": "no cluster"}) == [
        "application echo-stage: no cluster",
        "claim Postgres shop/db is not healthy",
    ]
    assert no_longer_healthy(before, status(), {}, stale=["echo-stage"]) == [
        "application echo-stage: not refreshed yet"
    ]


def test_a_stopped_control_plane_program_is_unhealthy() -> None:
    ended = status(programs=[{"name": "kube-scheduler of demo-core", "ready": False}])
    why = {"program kube-scheduler of demo-core": "not running"}
    assert no_longer_healthy(healthy_names(status()), ended, why) == [
        "program kube-scheduler of demo-core: not running"
    ]


def test_a_crash_looping_program_never_stable() -> None:
    timer = StabilityTimer()
    assert [timer.seconds({"kube-scheduler": run}, now) for now, run in enumerate("112")] == [
        *(0, 1, 0)
    ]
    assert timer.seconds({"kube-scheduler": "2"}, 9.0) == 7
    timer.reset()
    assert timer.seconds({"kube-scheduler": "2"}, 10.0) == 0
