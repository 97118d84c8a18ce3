"""Rollout state from the status of Deployments, StatefulSets and pods."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.components.pods.component import missing_of, trouble_of


def workload(kind: str = "Deployment", generation: int = 2, **status: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "metadata": {"name": "it", "generation": generation},
        "spec": {"replicas": 2},
        "status": {"observedGeneration": 2, "replicas": 2, **status},
    }


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (workload(updatedReplicas=2, readyReplicas=2), ""),
        (workload(generation=3, updatedReplicas=2, readyReplicas=2), "not observed"),
        (workload(updatedReplicas=1, readyReplicas=2), "1 of 2 pods are updated"),
        (workload(updatedReplicas=2, readyReplicas=1), "1 of 2 pods are ready"),
        (workload(updatedReplicas=2), "0 of 2 pods are ready"),
        (workload(updatedReplicas=2, readyReplicas=2, replicas=3), "pods of the previous version"),
        ({"kind": "Deployment", "metadata": {"generation": 1}}, "not observed"),
        # A StatefulSet that was never changed has no updatedReplicas.
        (workload("StatefulSet", currentRevision="a", updateRevision="a", readyReplicas=2), ""),
        (
            workload("StatefulSet", currentRevision="a", updateRevision="b", readyReplicas=2),
            "0 of 2 pods are updated",
        ),
    ],
)
def test_the_rollout_state_of_a_workload_is_explained(item: dict[str, Any], words: str) -> None:
    said = missing_of(item)
    assert said == "" if not words else words in said


def test_a_workload_scaled_to_zero_is_rolled_out() -> None:
    item = workload(replicas=0)
    item["spec"]["replicas"] = 0
    assert missing_of(item) == ""


def container(name: str, **state: Any) -> dict[str, Any]:
    return {"name": name, "state": state}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({}, ""),
        ({"containerStatuses": [container("c", running={})]}, ""),
        ({"containerStatuses": [container("c", waiting={"reason": "ContainerCreating"})]}, ""),
        (
            {
                "containerStatuses": [
                    container("c", waiting={"reason": "ImagePullBackOff", "message": "no\n  such"})
                ]
            },
            "c: ImagePullBackOff, no such",
        ),
        (
            {"initContainerStatuses": [container("i", terminated={"exitCode": 3, "reason": "E"})]},
            "i: E",
        ),
        ({"initContainerStatuses": [container("i", terminated={"exitCode": 0})]}, ""),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Full"}]},
            "not scheduled: Full",
        ),
    ],
)
def test_the_problem_of_a_pod_is_explained(status: dict[str, Any], words: str) -> None:
    assert trouble_of({"status": status}) == words
