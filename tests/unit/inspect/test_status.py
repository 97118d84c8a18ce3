"""The data of `ucp status`, summarized from a snapshot of the clusters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from k8s_ucp.cli.inspection.status_page import page
from k8s_ucp.fence.files import FencePermit
from k8s_ucp.fence.record import FenceHolder, FenceRecord
from k8s_ucp.fence.rules import FenceVerdict
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot, ComponentStatus
from k8s_ucp.inspect.status import (
    is_healthy,
    missing_application,
    reasons,
    selected,
    summarize,
    why_environment,
)
from k8s_ucp.topology import Topology, default
from tests.unit.inspect.snapshots import TOPOLOGY, WELL, cluster, registration


def environments(seen: ClusterSnapshot, topology: Topology = TOPOLOGY) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in summarize(topology, seen)["environments"]}


def test_the_status_has_the_documented_shape() -> None:
    data = summarize(TOPOLOGY, WELL)
    assert data.keys() == {
        "topology",
        "core",
        "components",
        "fence",
        "environments",
        "applications",
        "mirrors",
        "claims",
    }
    assert data["core"] == {"name": "demo-core", "provider": "embedded", "ready": True}
    assert data["components"] == [
        {"name": "argocd", "version": "v1", "ready": True, "placement": "host"}
    ]
    theirs = ComponentStatus("argocd", "v1", True, "pods", adopted=True)
    assert summarize(TOPOLOGY, ClusterSnapshot(core_ready=True, components=[theirs]))[
        "components"
    ] == [{"name": "argocd", "version": "v1", "ready": True, "placement": "pods", "adopted": True}]
    assert environments(WELL)["prod"] == {
        "name": "prod",
        "state": "running",
        "cluster": {
            "name": "demo-prod",
            "provider": "embedded",
            "ready": True,
            "registered": True,
            "reachable": True,
            "tokenExpiresAt": "2026-01-02T00:00:00Z",
            "simulated": True,
            "addresses": {},
        },
    }
    assert data["applications"] == [
        {
            "name": "clusters",
            "app": None,
            "environment": None,
            "sync": None,
            "health": None,
            "revision": None,
            "images": [],
        },
        {
            "name": "echo-prod",
            "app": "echo",
            "environment": "prod",
            "sync": "Synced",
            "health": "Healthy",
            "revision": "abc",
            "images": ["echo:1"],
        },
    ]


def test_environments_are_listed_in_promotion_order_followed_by_undeclared_ones() -> None:
    seen = ClusterSnapshot(core_ready=True, environments=["eu", "prod"], clusters=[cluster("asia")])
    assert list(environments(seen)) == ["stage", "prod", "asia", "eu"]


def test_a_cluster_that_does_not_respond_is_not_ready() -> None:
    """The status of the LocalCluster may be older than the crash of its API server."""
    silent = ClusterSnapshot(
        core_ready=True, clusters=WELL.clusters, registrations=WELL.registrations
    )
    found = environments(silent)["prod"]["cluster"]
    assert (found["ready"], found["reachable"], found["registered"]) == (False, False, True)


def test_a_registered_cluster_that_does_not_respond_has_a_reason() -> None:
    silent = replace(WELL, answering=frozenset())
    told = why_environment(environments(silent)["prod"], reasons(silent))
    assert told == "its API server is not responding"
    assert why_environment(environments(WELL)["prod"], reasons(WELL)) == ""


def test_a_draining_cluster_is_not_registered() -> None:
    secret = registration("prod")
    secret["metadata"]["labels"] = {"k8s-ucp.io/draining": "prod"}
    seen = ClusterSnapshot(
        core_ready=True, clusters=[cluster("prod", leaving=True)], registrations=[secret]
    )
    found = environments(seen)["prod"]
    assert found["state"] == "draining"
    assert found["cluster"]["registered"] is False


def test_environments_are_not_ready_while_the_core_is_unreachable() -> None:
    seen = ClusterSnapshot(core_ready=False)
    data = summarize(TOPOLOGY, seen)
    assert [each["name"] for each in data["environments"]] == ["stage", "prod"]
    assert not any(each["cluster"]["ready"] for each in data["environments"])
    assert page(data, seen, {}).count("unknown while the core cluster does not respond") == 2


def test_reasons_are_listed_by_object_name() -> None:
    seen = ClusterSnapshot(
        core_ready=True,
        clusters=[cluster("prod", Ready="True", Registered="False"), cluster("ok", Ready="True")],
        applications=[
            {
                "metadata": {"name": "a"},
                "status": {"conditions": [{"message": "no such path"}]},
            },
            {
                "metadata": {"name": "b"},
                "status": {"operationState": {"phase": "Failed", "message": "refused"}},
            },
        ],
        components=[ComponentStatus("argocd", "v1", False, "host", "no answer")],
    )
    assert reasons(seen) == {
        "argocd": "no answer",
        "demo-prod": "Because: it is False",
        "a": "no such path",
        "b": "refused",
    }


def test_the_status_of_a_cloud_cluster_is_read_from_the_reconcilers_record() -> None:
    def note(name: str, registered: str, reachable: str) -> dict[str, Any]:
        status = cluster("stage", Registered=registered, Reachable=reachable)["status"]
        owner = {"kind": "Cluster", "namespace": "crossplane-system", "name": name}
        return {"owner": owner, "environment": "stage", "status": status}

    seen = ClusterSnapshot(
        core_ready=True,
        environments=["stage"],
        registrations=[registration("stage", "demo-stage-gke")],
        notes={"a/b": note("demo-stage-gke", "True", "True"), "a/c": note("other", "False", "")},
    )
    found = {each["name"]: each["cluster"] for each in summarize(TOPOLOGY, seen)["environments"]}
    stage = found["stage"]
    assert stage["name"] == "demo-stage-gke"
    assert (stage["ready"], stage["registered"], stage["reachable"]) == (True, True, True)
    assert found["prod"]["ready"] is False
    assert reasons(seen)["other"] == "Because: it is False"


READY = replace(WELL, environments=["prod"], applications=[WELL.applications[0]])


def test_a_topology_with_a_stopped_environment_is_healthy() -> None:
    data = summarize(default("demo", ["prod"]), READY)
    assert is_healthy(data)
    data["environments"][0] |= {"state": "stopped", "cluster": {"ready": False}}
    assert is_healthy(data), "what is stopped on purpose is no fault"


@pytest.mark.parametrize(
    "change",
    [
        {"core_ready": False},
        {"components": [ComponentStatus("argocd", "v1", ready=False, placement="host")]},
        {"answering": frozenset()},
        {"registrations": []},
        {"applications": [{"metadata": WELL.applications[0]["metadata"], "status": {}}]},
    ],
)
def test_a_topology_with_any_unhealthy_part_is_not_healthy(change: dict[str, Any]) -> None:
    seen = replace(READY, **change)
    assert not is_healthy(summarize(default("demo", ["prod"]), seen))


def test_the_core_that_holds_the_fence_is_reported() -> None:
    there = FenceHolder("2", "laptop", "/there", "kind")
    permit = FencePermit(FenceVerdict.LOST, 0.0, "boot", FenceRecord(4, there, 0.0), confirmed=True)
    told = summarize(TOPOLOGY, replace(WELL, permit=permit))
    fence = told["fence"]
    assert (fence["state"], fence["epoch"], fence["machine"]) == ("lost", 4, "laptop")
    assert "workspace /there on machine laptop" in fence["message"]
    assert not is_healthy(told)
    assert summarize(TOPOLOGY, WELL)["fence"] is None


def test_a_stopped_topology_is_reported_as_stopped() -> None:
    parts = [ComponentStatus("argocd", "v1", False, "host", "not running")]
    seen = ClusterSnapshot(core_ready=False, components=parts, stopped=True)
    data = summarize(TOPOLOGY, seen)
    text = page(data, seen, {}, start="ucp start --workspace w")

    assert (data["stopped"], is_healthy(data)) == (True, False)
    assert text.startswith("topology demo is stopped; next: ucp start --workspace w\n")
    assert [line.split()[-2:] for line in text.splitlines()[3:]] == [["stopped", "-"]] * 4


def test_a_name_selects_an_app_or_another_part_of_the_status() -> None:
    data = summarize(TOPOLOGY, WELL)
    for name in ("echo", "echo-prod"):
        found = selected(data, name)
        assert found is not None
        assert [each["name"] for each in found["applications"]] == ["echo-prod"]
        assert (found["components"], found["environments"]) == ([], [])
        assert found["core"] == data["core"]
    found = selected(data, "prod")
    assert found is not None
    assert [each["name"] for each in found["environments"]] == ["prod"]
    assert [each["name"] for each in found["applications"]] == ["echo-prod"]
    found = selected(data, "argocd")
    assert found is not None
    assert [each["name"] for each in found["components"]] == ["argocd"]
    assert selected(data, "nothing") is None


def test_a_selected_app_is_healthy_whatever_the_others_are() -> None:
    data = summarize(TOPOLOGY, WELL)
    assert not is_healthy(data)
    assert is_healthy(selected(data, "echo") or {})
    missing = {**data, "applications": [missing_application("echo", "prod")]}
    assert not is_healthy(selected(missing, "echo") or {})


def test_a_hold_is_shown_beside_its_application() -> None:
    data = summarize(TOPOLOGY, WELL)
    data["applications"][0]["held"] = ["1.4.0"]
    assert "on hold: 1.4.0" in page(data, WELL, {})
    assert "on hold" not in page(summarize(TOPOLOGY, WELL), WELL, {})


def test_mirrors_that_wait_for_what_is_stopped_are_no_fault() -> None:
    topology = default("demo", ["prod"])
    (prod,) = topology.spec.environments
    spec = topology.spec.model_copy(
        update={"environments": (prod.model_copy(update={"state": "stopped"}),)}
    )
    waiting = {
        "metadata": {"name": "db", "namespace": "ucp-clusters"},
        "spec": {"data": [{"targetSelector": {"matchLabels": {"k8s-ucp.io/environment": "prod"}}}]},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NoTarget"}]},
    }
    healthy = WELL.applications[0]
    mirrors = {
        "metadata": {"name": "mirrors"},
        "status": {"sync": {"status": "Synced"}, "health": {"status": "Progressing"}},
    }
    seen = replace(READY, applications=[healthy, mirrors], syncers=[waiting])
    data = summarize(topology.model_copy(update={"spec": spec}), seen)
    assert data["mirrors"][0]["waitsFor"] == ["prod"]
    assert is_healthy(data)
    assert not is_healthy(summarize(topology, seen)), "prod should run"
