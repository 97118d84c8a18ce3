"""Applications that a drain deletes, and cloud resources that it waits for."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.kube import Conflict
from k8s_ucp.reconciler.draining import (
    applications_of,
    delete_applications,
    failed_deletions,
    holding,
    in_words,
    request_refresh,
)
from tests.unit.reconciler.objects import Object

CONTROLLED = {"ownerReferences": [{"kind": "ApplicationSet", "controller": True, "name": "apps"}]}
GENERATED = {**CONTROLLED, "labels": {"k8s-ucp.io/topology": "demo"}}
MARKED = {"labels": {"app.kubernetes.io/managed-by": "k8s-ucp"}}


def application(name: str, destination: Object, **metadata: Any) -> Object:
    return {
        "metadata": {"name": name, "namespace": "argocd", **metadata},
        "spec": {"destination": destination},
    }


def test_a_drain_deletes_our_applications_and_keeps_foreign_ones() -> None:
    everyone = [
        application("echo-stage", {"name": "demo-stage"}, **GENERATED),
        application("echo-prod", {"name": "demo-prod"}, **GENERATED),
        application("by-address", {"server": "https://a:1"}, **GENERATED),
        application("marked", {"name": "demo-stage"}, **MARKED),
        application("by-hand", {"name": "demo-stage"}),
        application("of-another-set", {"name": "demo-stage"}, **CONTROLLED),
        {"metadata": {"name": "half"}, "spec": {}},
    ]
    ours, others = applications_of(everyone, "demo-stage", "https://a:1")
    assert [each["metadata"]["name"] for each in ours] == ["echo-stage", "by-address", "marked"]
    assert [each["metadata"]["name"] for each in others] == ["by-hand", "of-another-set"]


def test_an_unknown_address_matches_nothing() -> None:
    found = applications_of([application("a", {"server": ""}, **GENERATED)], "demo", "")
    assert found == ([], [])


class Patches:
    """Records patches instead of applying them."""

    def __init__(self, conflict: bool = False) -> None:
        self.made: list[tuple[str, Object]] = []
        self.conflict = conflict

    def patch(self, kind: Any, name: str, namespace: str, change: Object) -> None:
        if self.conflict:
            raise Conflict("it was changed")
        self.made.append((name, change))


def leaving(name: str, phase: str, *, operation: bool = True) -> Object:
    item = application(name, {}, deletionTimestamp="2026-01-01T00:00:00Z", resourceVersion="7")
    item["status"] = {"operationState": {"phase": phase}}
    return {**item, "operation": {}} if operation else item


def test_a_sync_that_blocks_a_deletion_is_terminated() -> None:
    everyone = [
        leaving("retrying", "Running"),
        leaving("ending", "Terminating"),
        leaving("failed", "Failed"),
        leaving("done", "Running", operation=False),
    ]
    api: Any = Patches()
    delete_applications(api, everyone)
    ended = {"operationState": {"phase": "Terminating"}}
    assert api.made == [("retrying", {"metadata": {"resourceVersion": "7"}, "status": ended})]
    changed: Any = Patches(conflict=True)
    delete_applications(changed, everyone)
    assert changed.made == []


def test_a_failed_deletion_is_retried_immediately_and_then_periodically() -> None:
    """Argo CD itself would retry only at its next poll."""
    failed = leaving("failed", "Failed", operation=False)
    failed["status"]["conditions"] = [{"type": "DeletionError", "message": "connection refused"}]
    stays = {**failed, "metadata": {"name": "stays", "namespace": "argocd"}}
    everyone = [failed, stays, leaving("busy", "Running")]
    assert failed_deletions(everyone, {}, now=100.0) == ["failed"]
    assert failed_deletions(everyone, {"failed": 99.0}, now=100.0) == []
    assert failed_deletions(everyone, {"failed": 80.0}, now=100.0) == ["failed"]
    api: Any = Patches()
    request_refresh(api, ["failed"])
    note = {"argocd.argoproj.io/refresh": "normal"}
    assert api.made == [("failed", {"metadata": {"annotations": note}})]


def service(type: str, ingress: list[Object] | None = None, **metadata: Any) -> Object:
    return {
        "metadata": {"name": "web", "namespace": "echo", **metadata},
        "spec": {"type": type},
        "status": {"loadBalancer": {"ingress": ingress} if ingress else {}},
    }


@pytest.mark.parametrize(
    ("item", "holds"),
    [
        (service("ClusterIP"), False),
        (service("LoadBalancer"), False),
        (service("LoadBalancer", [{"ip": "192.0.2.1"}]), True),
        (service("LoadBalancer", finalizers=["service.kubernetes.io/load-balancer-cleanup"]), True),
    ],
)
def test_a_drain_waits_for_provisioned_load_balancers(item: Object, holds: bool) -> None:
    assert holding([item], []) == (["load balancer of Service echo/web"] if holds else [])


def volume(policy: str, driver: str) -> Object:
    notes = {"pv.kubernetes.io/provisioned-by": driver} if driver else {}
    return {
        "metadata": {"name": "pv-1", "annotations": notes},
        "spec": {"persistentVolumeReclaimPolicy": policy},
    }


@pytest.mark.parametrize(
    ("item", "holds"),
    [
        (volume("Delete", "driver"), True),
        (volume("Retain", "driver"), False),
        (volume("Delete", ""), False),
        # A folder of a node, which is deleted with the cluster.
        (volume("Delete", "rancher.io/local-path"), False),
    ],
)
def test_a_drain_waits_for_volumes_that_a_driver_will_delete(item: Object, holds: bool) -> None:
    assert holding([], [item]) == (["PersistentVolume pv-1"] if holds else [])


def test_remaining_objects_are_counted_and_listed() -> None:
    assert in_words(["a"], "Application") == "1 Application left: a"
    assert in_words(list("abcdefg"), "Application").endswith("left: a, b, c, d, e, ...")
