"""Status says why the pods of an unhealthy Application don't run, not only that it waits."""

from __future__ import annotations

from typing import Any

from k8s_ucp.inspect.pods.failures import FailingPods, failing, without_pods
from k8s_ucp.inspect.pods.problems import reason_and_pods
from tests.unit.inspect.pods.waiting_application import WAITING

CRASHES = {
    "name": "web",
    "state": {
        "waiting": {
            "reason": "CrashLoopBackOff",
            "message": "back-off 5m0s restarting failed container=web pod=web-7d-x_shop(1234)",
        }
    },
    "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
}
UNPULLED = {
    "name": "web",
    "state": {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling "web:9"'}},
}
STARTING = {"name": "web", "state": {"waiting": {"reason": "ContainerCreating"}}}
ENDED = {"name": "job", "state": {"terminated": {"reason": "Error", "exitCode": 2}}}


def pod(owner: str, container: dict[str, Any], phase: str = "Running") -> dict[str, Any]:
    kind, _, name = owner.partition(" ")
    owners = [{"kind": kind, "name": name, "controller": True}] if owner else []
    return {
        "metadata": {"name": "one", "namespace": "shop", "ownerReferences": owners},
        "status": {"phase": phase, "containerStatuses": [container]},
    }


def words(*pods: dict[str, Any]) -> list[str]:
    return [str(each) for each in failing(pods)]


def test_pods_that_crash_or_lack_their_image_are_reported_once_for_each_owner() -> None:
    assert words(pod("ReplicaSet web-7d", CRASHES), pod("ReplicaSet web-7d", CRASHES)) == [
        "2 pods of ReplicaSet shop/web-7d: container web: CrashLoopBackOff (OOMKilled, exit code"
        " 137)"
    ]
    assert words(pod("", UNPULLED, "Pending")) == [
        'Pod shop/one: container web: ImagePullBackOff (Back-off pulling "web:9")'
    ]


def test_pods_that_start_or_were_replaced_are_no_failures() -> None:
    assert (
        words(pod("ReplicaSet web-7d", STARTING), pod("ReplicaSet web-7d", ENDED, "Failed")) == []
    )
    leaving = pod("ReplicaSet web-7d", CRASHES)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert words(leaving) == []
    assert words(pod("Job migrate", ENDED, "Failed")) == [
        "a pod of Job shop/migrate: container job: Error, exit code 2"
    ]


def test_a_quota_that_refuses_pods_is_named() -> None:
    refused = {
        "type": "ReplicaFailure",
        "status": "True",
        "message": 'pods "web-7d-x" is forbidden: exceeded quota: small, requested: pods=1',
    }
    item = {
        "metadata": {"name": "web-7d", "namespace": "shop"},
        "status": {"conditions": [refused]},
    }
    assert [str(each) for each in without_pods([item])] == [
        "ReplicaSet shop/web-7d can't create its pods: exceeded quota: small, requested: pods=1"
    ]


def test_only_pods_of_the_applications_unhealthy_workloads_count() -> None:
    pods = [
        FailingPods("shop", "ReplicaSet web-7d", "crashes"),
        FailingPods("shop", "ReplicaSet other-7d", "crashes, too"),
        FailingPods("elsewhere", "ReplicaSet web-7d", "crashes, too"),
    ]
    said = reason_and_pods(WAITING, {"demo-stage": pods, "demo-prod": pods})
    assert said.endswith("; a pod of ReplicaSet shop/web-7d: crashes")
    assert "too" not in said
