"""What a person gives up by name, and what a wait that ended says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.context import StartContext
from k8s_ucp.errors import DeadlineExceeded, UcpError, UsageError
from k8s_ucp.inspect.abandoned import AbandonedRecord, AbandonedResource
from k8s_ucp.kube import Kind, Object
from k8s_ucp.steps.teardown.abandonment import (
    abandon,
    abandoned_uids,
    check_named,
    is_abandoned,
    wait_gone,
)
from k8s_ucp.topology import default
from k8s_ucp.workspace import Workspace

VPC: Object = {
    "apiVersion": "ec2.aws.m.upbound.io/v1beta1",
    "kind": "VPC",
    "metadata": {
        "name": "net",
        "namespace": "ucp-clusters",
        "uid": "1",
        "labels": {"k8s-ucp.io/environment": "far", "crossplane.io/composite": "orders-far"},
        "annotations": {"crossplane.io/external-name": "vpc-1"},
    },
    "spec": {"forProvider": {"region": "us-east-1"}},
    "status": {"conditions": [{"type": "Synced", "status": "False", "message": "no route"}]},
}
OTHER: Object = {**VPC, "metadata": {"name": "other", "namespace": "ucp-clusters", "uid": "2"}}


class Core:
    def __init__(self) -> None:
        self.patched: list[Any] = []

    def kind_of(self, api_version: str, kind: str) -> Kind:
        return Kind(api_version, kind, f"{kind.lower()}s")

    def patch(self, _: Kind, name: str, namespace: str, change: Any) -> None:
        self.patched.append((name, change["metadata"]["finalizers"]))


@pytest.fixture
def context(tmp_path: Path) -> StartContext:
    found = StartContext(workspace=Workspace.at(tmp_path), topology=default())
    found.state.make()
    vars(found)["kube"] = Core()
    return found


@pytest.mark.parametrize("name", ["net", "VPC/net", "vpc-1", "demo-far", "orders-far"])
def test_each_of_its_names_gives_it_up(context: StartContext, name: str) -> None:
    context.abandon = frozenset([name])
    assert is_abandoned(context, VPC)
    assert not is_abandoned(context, OTHER)
    check_named(context, [VPC], ())


def test_it_is_written_down_and_forgotten_by_the_core_alone(context: StartContext) -> None:
    context.abandon = frozenset(["net"])
    abandon(context, [VPC, OTHER])
    (found,) = AbandonedRecord(context.state.abandoned).resources()
    assert (found.what, found.error) == ("VPC vpc-1 in us-east-1", "no route")
    assert vars(context)["kube"].patched == [("net", None)]
    assert abandoned_uids(context) == {"1"}
    assert context.state.abandoned.stat().st_mode & 0o777 == 0o600
    abandon(context, [VPC])
    assert len(AbandonedRecord(context.state.abandoned).resources()) == 1


def test_nothing_of_that_name_is_no_typing_error_that_passes(context: StartContext) -> None:
    context.abandon = frozenset(["nett"])
    with pytest.raises(UsageError, match="nett"):
        check_named(context, [VPC], ())
    record = AbandonedRecord(context.state.abandoned)
    record.add([AbandonedResource("VPC nett", "", "2026-01-01T00:00:00Z", "3")])
    check_named(context, [], ())


def test_a_wait_ends_with_the_commands_for_what_is_stuck(context: StartContext) -> None:
    context.longest_wait = 0.0
    with pytest.raises(DeadlineExceeded, match="VPC net") as caught:
        wait_gone(
            context, "deletion of networks", lambda: ("VPC net", [VPC]), lambda _: None, seconds=900
        )
    assert caught.value.next is not None
    assert "describe vpc.ec2.aws.m.upbound.io net -n ucp-clusters" in caught.value.next
    assert "ucp destroy --abandon VPC/net" in caught.value.next


def test_a_damaged_record_is_not_passed_over(context: StartContext) -> None:
    context.state.abandoned.write_text("[{")
    with pytest.raises(UcpError, match="corrupt"):
        AbandonedRecord(context.state.abandoned).resources()
