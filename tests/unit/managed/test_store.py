"""Writes to a managed resource, and conflicts with other writers."""

from __future__ import annotations

import base64
from typing import Any, cast

import pytest

from k8s_ucp.kube import Conflict, Kind, Kube
from k8s_ucp.managed.reconcile import FINALIZER, ManagedChange, ReferenceMissing
from k8s_ucp.managed.references import ResourceReference
from k8s_ucp.managed.store import KubeStore
from k8s_ucp.names import CREATION_PENDING

SUBNET = Kind("ec2.aws.m.upbound.io/v1beta1", "Subnet", "subnets")
VPC = Kind("ec2.aws.m.upbound.io/v1beta1", "VPC", "vpcs")


class ChangingKube:
    """Another writer changes the object before each of the first `others` patches."""

    def __init__(self, item: dict[str, Any], others: int = 0) -> None:
        self.item, self.others = item, others
        self.patches: list[dict[str, Any]] = []

    def get(self, kind: Kind, name: str, namespace: str | None) -> dict[str, Any]:
        return self.item

    def find(self, kind: Kind, name: str, namespace: str | None) -> dict[str, Any] | None:
        return {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "annotations": {"crossplane.io/external-name": "vpc-1"},
            },
            "status": {"conditions": []},
        }

    def patch(
        self, kind: Kind, name: str, namespace: str, change: dict[str, Any], *, subresource: str
    ) -> dict[str, Any]:
        metadata = self.item["metadata"]
        if self.others:
            self.others -= 1
            version = str(int(metadata["resourceVersion"]) + 1)
            finalizers = [*metadata.get("finalizers", ()), f"other-{version}"]
            metadata = {**metadata, "resourceVersion": version, "finalizers": finalizers}
            self.item = {**self.item, "metadata": metadata}
        asked = change.get("metadata", {})
        if asked.get("resourceVersion", metadata["resourceVersion"]) != metadata["resourceVersion"]:
            raise Conflict(f"{name} has changed")
        self.patches.append(change)
        return self.item


def subnet(**metadata: Any) -> dict[str, Any]:
    item = SUBNET.object("a", "team", spec={"forProvider": {"vpcIdRef": {"name": "shared"}}})
    item["metadata"] |= {"resourceVersion": "1", **metadata}
    return item


def store(kube: ChangingKube) -> KubeStore:
    references = (ResourceReference("vpcId", "VPC"),)
    return KubeStore(cast(Kube, kube), SUBNET, references, {"VPC": VPC}, {}, lambda: 0.0)


def test_reference_finalizer_and_annotation_are_one_patch() -> None:
    kube = ChangingKube(subnet())
    resolved = store(kube).resolve(kube.item)
    assert kube.patches == []

    store(kube).write(
        kube.item, ManagedChange({CREATION_PENDING: "now"}, resolved.found, finalizer=True)
    )

    assert resolved.parameters == {"vpcIdRef": {"name": "shared"}, "vpcId": "vpc-1"}
    assert kube.patches == [
        {
            "metadata": {
                "annotations": {CREATION_PENDING: "now"},
                "resourceVersion": "1",
                "finalizers": [FINALIZER],
            },
            "spec": {"forProvider": {"vpcId": "vpc-1"}},
        }
    ]


@pytest.mark.parametrize("present", [True, False])
def test_nothing_is_written_without_changes(present: bool) -> None:
    kube = ChangingKube(subnet(finalizers=[FINALIZER] if present else []))
    store(kube).write(kube.item, ManagedChange(finalizer=present))
    store(kube).write(kube.item, ManagedChange())
    assert kube.patches == []


def test_a_finalizer_added_concurrently_by_another_writer_is_kept() -> None:
    kube = ChangingKube(subnet(), others=2)
    store(kube).write(kube.item, ManagedChange(finalizer=True))
    assert kube.patches[0]["metadata"]["finalizers"] == ["other-2", "other-3", FINALIZER]


def test_an_object_that_keeps_changing_raises_a_conflict() -> None:
    kube = ChangingKube(subnet(), others=9)
    with pytest.raises(Conflict):
        store(kube).write(kube.item, ManagedChange({CREATION_PENDING: "now"}, finalizer=True))
    assert kube.patches == []


def test_a_password_that_is_not_text_is_reported_without_its_value() -> None:
    class Secrets(ChangingKube):
        def find(self, kind: Kind, name: str, namespace: str | None) -> dict[str, Any]:
            return {"data": {"password": base64.b64encode(b"\xff\xfehunter2").decode()}}

    item = subnet()
    item["spec"]["forProvider"] = {"passwordSecretRef": {"name": "db", "key": "password"}}
    passwords = {"passwordSecretRef": "password"}
    kube = cast(Kube, Secrets(item))
    with pytest.raises(ReferenceMissing, match="the key password of Secret db is not text"):
        KubeStore(kube, SUBNET, (), {}, passwords, lambda: 0.0).resolve(item)
