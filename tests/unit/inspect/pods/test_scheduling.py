"""Unschedulable pods, and the number of nodes to set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.doctor.checks import findings
from k8s_ucp.inspect.doctor.examination import Examined
from k8s_ucp.inspect.pods.scheduling import UnscheduledPods, nodes_needed, unscheduled
from k8s_ucp.inspect.status import reasons
from k8s_ucp.steps.waiting import await_applications
from tests.unit.inspect.pods.waiting_application import WAITING
from tests.unit.inspect.snapshots import TOPOLOGY

RULES = "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules"
SAID = (
    f"{RULES}. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No "
    "preemption victims found for incoming pod."
)


def pod(name: str, owner: str = "", message: str = SAID) -> dict[str, Any]:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
    }
    kind, _, controller = owner.partition(" ")
    owners = [{"kind": kind, "name": controller, "controller": True}] if owner else []
    return {
        "metadata": {"name": name, "namespace": "shop", "ownerReferences": owners},
        "status": {"phase": "Pending", "conditions": [condition]},
    }


def test_unschedulable_pods_are_reported_by_owner_with_the_schedulers_message() -> None:
    new = {"metadata": {"name": "new", "namespace": "shop"}, "status": {"phase": "Pending"}}
    alone, both = unscheduled(
        [pod("b", "ReplicaSet web"), pod("alone"), new, pod("a", "ReplicaSet web")]
    )
    assert str(alone) == f"Pod shop/alone is not scheduled: {RULES}"
    assert str(both) == f"2 pods of ReplicaSet shop/web are not scheduled: {RULES}"


@pytest.mark.parametrize(
    ("owner", "pods", "replicas", "nodes"),
    [
        ("", 1, 0, 2),
        ("ReplicaSet web", 2, 0, 4),  # the next rollout needs one more
        ("StatefulSet web", 1, 3, 3),  # its other pods are created once the first is ready
    ],
)
def test_the_advised_number_of_nodes_fits_all_pods(
    owner: str, pods: int, replicas: int, nodes: int
) -> None:
    names = tuple(map(str, range(pods)))
    found = UnscheduledPods("shop", owner, names, RULES, "stage", replicas)
    assert f"set nodes: {nodes} for the cluster of environment stage" in nodes_needed([found])


PODS = UnscheduledPods("shop", "ReplicaSet web", ("a",), RULES, "stage")
WORDS = (
    "not healthy: Deployment shop/web (Waiting for rollout to finish); a pod of ReplicaSet "
    f"shop/web is not scheduled: {RULES}"
)
NEXT = "set nodes: 3 for the cluster of environment stage in ucp.yaml, then ucp start"


def test_status_doctor_and_a_waiting_start_name_the_field_to_set() -> None:
    found = {"demo-stage": [PODS], "demo-prod": [replace(PODS, environment="prod")]}
    seen = ClusterSnapshot(core_ready=True, applications=[WAITING], pods=found)
    assert reasons(seen)["web-stage"] == f"{WORDS} ({NEXT})"
    (finding,) = [
        each
        for each in findings(Examined(TOPOLOGY, seen, 0.0))
        if each.id == "application/web-stage"
    ]
    assert finding.message.endswith(WORDS)
    assert finding.next == NEXT
    (said,) = await_applications.not_yet([], [WAITING], pods=found)
    assert said.endswith(f"{WORDS} ({NEXT}))")


def test_unrelated_pods_and_clusters_without_nodes_setting_change_no_advice() -> None:
    elsewhere = replace(PODS, namespace="other")
    seen = ClusterSnapshot(
        core_ready=True, applications=[WAITING], pods={"demo-stage": [elsewhere]}
    )
    assert "not scheduled" not in reasons(seen)["web-stage"]
    theirs = replace(PODS, environment="")
    seen = replace(seen, pods={"demo-stage": [theirs]})
    assert reasons(seen)["web-stage"] == WORDS
    (finding,) = [
        each
        for each in findings(Examined(TOPOLOGY, seen, 0.0))
        if each.id == "application/web-stage"
    ]
    assert finding.next.startswith("kubectl ")
