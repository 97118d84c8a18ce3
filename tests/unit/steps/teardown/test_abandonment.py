"""Resources abandoned by name, and the message of a wait that timed out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.context import StartContext
from k8s_ucp.engine.journal import Journal
from k8s_ucp.errors import DeadlineExceeded, UcpError, UsageError
from k8s_ucp.inspect.teardown.abandoned import AbandonedRecord, AbandonedResource
from k8s_ucp.kube import Kind, Object
from k8s_ucp.steps.teardown.abandonment import (
    abandon,
    abandoned_uids,
    check_named,
    command_for,
    commands_for,
    is_abandoned,
    keep_names,
    wait_deleted,
)
from k8s_ucp.steps.teardown.cloud_record import CloudRecord, RecordedResource
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
OTHER: Object = {
    **VPC,
    "metadata": {"name": "other", "namespace": "ucp-clusters", "uid": "2"},
    "spec": {"forProvider": {"region": "eu-west-3"}},
}


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


NAMES = ("net", "VPC/net", "vpc-1", "demo-far", "orders-far", "us-east-1")


@pytest.mark.parametrize("name", NAMES)
def test_a_resource_can_be_abandoned_by_each_of_its_names(context: StartContext, name: str) -> None:
    context.teardown.abandon = frozenset([name])
    assert is_abandoned(context, VPC)
    assert not is_abandoned(context, OTHER)
    check_named(context, [VPC], ())


def test_an_abandoned_resource_is_recorded_and_its_finalizer_removed(context: StartContext) -> None:
    context.teardown.abandon = frozenset(["net"])
    abandon(context, [VPC, OTHER])
    (found,) = AbandonedRecord(context.state.abandoned).resources()
    assert (found.what, found.error) == ("VPC vpc-1 in us-east-1", "no route")
    assert vars(context)["kube"].patched == [("net", None)]
    assert abandoned_uids(context) == {"1"}
    assert context.state.abandoned.stat().st_mode & 0o777 == 0o600
    abandon(context, [VPC])
    assert len(AbandonedRecord(context.state.abandoned).resources()) == 1


def test_an_unknown_name_to_abandon_is_refused(context: StartContext) -> None:
    context.teardown.abandon = frozenset(["nett"])
    with pytest.raises(UsageError, match="nett"):
        check_named(context, [VPC], ())
    record = AbandonedRecord(context.state.abandoned)
    record.add([AbandonedResource("VPC nett", "", "2026-01-01T00:00:00Z", "3")])
    check_named(context, [], ())


@pytest.mark.parametrize("name", NAMES)
def test_a_rerun_accepts_the_name_of_a_resource_already_abandoned(
    context: StartContext, name: str
) -> None:
    context.teardown.abandon = frozenset([name])
    abandon(context, [VPC])
    check_named(context, [], ())


def test_a_rerun_accepts_the_name_of_a_resource_deleted_meanwhile(
    context: StartContext,
) -> None:
    """Deleted by the interrupted run, or between the two runs."""
    context.teardown.abandon = frozenset(["orders-far"])
    with pytest.raises(UsageError):
        check_named(context, [], ())
    context.journal = Journal(context.state.journal, "destroy")
    keep_names(context)
    context.journal.end("failed")
    check_named(context, [], ())
    keep_names(context, ["vpc-9"])
    context.journal.end("interrupted")
    context.teardown.abandon = frozenset(["orders-far", "vpc-9"])
    check_named(context, [], ())
    # After a completed teardown nothing is left to abandon.
    context.journal.end("done")
    with pytest.raises(UsageError, match="orders-far, vpc-9"):
        check_named(context, [], ())


def test_recorded_resources_of_clusters_and_clouds_can_be_abandoned(context: StartContext) -> None:
    balancer = RecordedResource("LoadBalancer", "web", "web", "s1", "lb-1", cluster="demo-far")
    CloudRecord(context.state.cloud_record).add_resources([balancer, RecordedResource.of(VPC)])
    for name in ("lb-1", "LoadBalancer/web", "demo-far", "vpc-1", "us-east-1"):
        context.teardown.abandon = frozenset([name])
        check_named(context, [], ())


def test_a_resource_recreated_by_a_start_can_be_abandoned_again(context: StartContext) -> None:
    context.teardown.abandon = frozenset(["net"])
    abandon(context, [VPC])
    again = {**VPC, "metadata": {**VPC["metadata"], "uid": "9"}}
    abandon(context, [again])
    (found,) = AbandonedRecord(context.state.abandoned).resources()
    assert (found.what, found.uid) == ("VPC vpc-1 in us-east-1", "9")


def test_the_advised_command_contains_all_options_of_the_run(context: StartContext) -> None:
    context.teardown.delete_data, context.teardown.abandon = True, frozenset(["demo-far"])
    assert command_for(context, ["VPC/net", "demo-far"]) == (
        "ucp destroy --delete-data --abandon demo-far --abandon VPC/net"
    )


def test_a_wait_that_times_out_reports_commands_for_the_stuck_resources(
    context: StartContext,
) -> None:
    context.teardown.longest_wait = 0.0
    with pytest.raises(DeadlineExceeded, match="VPC net") as caught:
        wait_deleted(
            context, "deletion of networks", lambda: ("VPC net", [VPC]), lambda _: None, seconds=900
        )
    assert caught.value.next is not None
    assert "describe vpc.ec2.aws.m.upbound.io net -n ucp-clusters" in caught.value.next
    assert "ucp destroy --abandon VPC/net" in caught.value.next


def test_commands_quote_folder_names_with_spaces(tmp_path: Path) -> None:
    found = StartContext(workspace=Workspace.at(tmp_path / "my work"), topology=default())
    file = found.state.kubeconfig("demo-core")
    assert f"kubectl --kubeconfig '{file}' describe" in commands_for(found, [VPC])


def test_a_corrupt_record_is_reported(context: StartContext) -> None:
    context.state.abandoned.write_text("[{")
    with pytest.raises(UcpError, match="corrupt"):
        AbandonedRecord(context.state.abandoned).resources()
