"""The contract of a managed resource's provider under failures, verified in the cloud's ledger.

Each test declares its own resources; at its end, as many have been deleted as created.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from k8s_ucp.aws import client
from k8s_ucp.aws.crds import USAGE
from k8s_ucp.cloud.faults import CloudFault
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import CONFIG_MAP, NAMESPACE, SECRET
from k8s_ucp.managed.policies import ACTIONS
from k8s_ucp.reconciler.manager import Manager
from tests.contracts.provider_harness import (
    Death,
    Desk,
    Killed,
    condition,
    config,
    external_name,
    ref_to,
)
from tests.control_planes import eventually
from tests.unit.compositions.platform import claim, composed, machine

pytestmark = pytest.mark.engines

VPC, ROLE, DATABASE = "VPC.ec2", "Role.iam", "Instance.rds"
POLICY = json.dumps({"Version": "2012-10-17", "Statement": []})
FIELDS: dict[str, dict[str, Any]] = {
    VPC: {"cidrBlock": "10.0.0.0/16", "enableDnsHostnames": True},
    ROLE: {"assumeRolePolicy": POLICY},
    DATABASE: {
        "engine": "postgres",
        "instanceClass": "db.t4g.small",
        "allocatedStorage": 10,
        "username": "app",
        "password": "long-enough",
        "skipFinalSnapshot": True,
    },
    "Zone.route53": {"name": "example.com"},
    "Bucket.s3": {},
    "InternetGateway.ec2": {},
    "Instance.ec2": {"ami": "ami-12c6146b", "instanceType": "t3.small"},
}
CREATE_STEPS, DELETE_STEPS = 10, 5
"""Steps of a VPC from its declaration to Ready, and from deletion to its end, plus one more."""
VPC_AND_ROLE = pytest.mark.parametrize("kind", [VPC, pytest.param(ROLE, marks=pytest.mark.slow)])


@pytest.fixture(autouse=True)
def balanced(desk: Desk) -> Iterator[None]:
    before = desk.cloud.number
    yield
    desk.cloud.fail()
    assert not desk.cloud.left(before), "made and deleted differ"


def test_a_declared_resource_is_created_once_with_conditions_and_an_event(desk: Desk) -> None:
    before = desk.cloud.number
    desk.declare(VPC, "one", FIELDS[VPC])

    there = desk.settle(VPC, "one")

    assert there is not None
    assert condition(there, "Synced")[:2] == ("True", "ReconcileSuccess")
    assert condition(there, "Ready")[:2] == ("True", "Available")
    assert there["status"]["atProvider"]["id"] == external_name(there)
    assert there["spec"]["forProvider"]["instanceTenancy"] == "default"
    assert there["metadata"]["finalizers"] == ["finalizer.managedresource.crossplane.io"]
    assert "CreatedExternalResource" in {each["reason"] for each in desk.events("one")}
    assert desk.cloud.made(before) == {"vpc": 1}
    desk.remove(VPC, "one")


def test_reconciling_a_ready_resource_changes_nothing(desk: Desk) -> None:
    desk.declare(VPC, "calm", FIELDS[VPC])
    there = desk.settle(VPC, "calm")
    before = desk.cloud.number

    assert desk.settle(VPC, "calm") == there
    assert desk.cloud.number == before
    desk.remove(VPC, "calm")


def test_an_instance_of_a_local_compute_claim_needs_no_network(desk: Desk) -> None:
    (composed_machine,) = composed(machine("local"))
    desk.declare("Instance.ec2", "box", composed_machine["spec"]["forProvider"])

    there = desk.settle("Instance.ec2", "box")

    assert condition(there, "Ready")[:2] == ("True", "Available")
    desk.remove("Instance.ec2", "box")


def test_an_existing_resource_with_the_external_name_is_adopted(desk: Desk) -> None:
    desk.cloud.call("iam", "CreateRole", RoleName="older", AssumeRolePolicyDocument=POLICY)
    before = desk.cloud.number
    annotations = {"crossplane.io/external-name": "older"}
    desk.declare(ROLE, "younger", FIELDS[ROLE], metadata={"annotations": annotations})

    desk.settle(ROLE, "younger")

    assert desk.cloud.number == before
    desk.remove(ROLE, "younger")


def test_a_changed_declaration_is_applied_to_the_cloud(desk: Desk) -> None:
    desk.declare(DATABASE, "grows", FIELDS[DATABASE])
    desk.settle(DATABASE, "grows")
    desk.patch(DATABASE, "grows", {"spec": {"forProvider": {"allocatedStorage": 20}}})

    desk.settle(DATABASE, "grows")

    found = desk.cloud.call("rds", "DescribeDBInstances", DBInstanceIdentifier="grows")
    assert found["DBInstances"][0]["AllocatedStorage"] == 20
    desk.remove(DATABASE, "grows")


def test_drift_in_the_cloud_is_reverted(desk: Desk) -> None:
    desk.declare(VPC, "drifts", FIELDS[VPC])
    vpc = external_name(desk.settle(VPC, "drifts"))
    changed: dict[str, Any] = {"VpcId": vpc, "EnableDnsHostnames": {"Value": False}}
    desk.cloud.call("ec2", "ModifyVpcAttribute", **changed)

    desk.settle(VPC, "drifts")

    asked = {"VpcId": vpc, "Attribute": "enableDnsHostnames"}
    assert desk.cloud.call("ec2", "DescribeVpcAttribute", **asked)["EnableDnsHostnames"]["Value"]
    desk.remove(VPC, "drifts")


def test_a_resource_deleted_in_the_cloud_is_created_again(desk: Desk) -> None:
    desk.declare(VPC, "returns", FIELDS[VPC])
    first = external_name(desk.settle(VPC, "returns"))
    desk.cloud.call("ec2", "DeleteVpc", VpcId=first)

    assert external_name(desk.settle(VPC, "returns")) not in ("", first)
    desk.remove(VPC, "returns")


@pytest.mark.parametrize("kind", FIELDS)
def test_deleting_an_object_deletes_its_resource(desk: Desk, kind: str) -> None:
    before = desk.cloud.number
    desk.declare(kind, "goes", FIELDS[kind])
    desk.settle(kind, "goes")
    desk.remove(kind, "goes")
    assert sum(desk.cloud.made(before).values()) == 1


def test_an_object_whose_resource_cannot_be_deleted_stays_and_shows_the_clouds_error(
    desk: Desk,
) -> None:
    desk.declare(VPC, "used", FIELDS[VPC])
    vpc = external_name(desk.settle(VPC, "used"))
    subnet = desk.cloud.call("ec2", "CreateSubnet", VpcId=vpc, CidrBlock="10.0.1.0/24")["Subnet"]
    desk.delete(VPC, "used")

    with pytest.raises(UcpError, match="DependencyViolation"):
        desk.look(desk.controller(), VPC, "used")

    there = desk.get(VPC, "used")
    assert "DependencyViolation" in condition(there, "Synced")[2]
    assert condition(there, "Ready")[1] == "Deleting"
    told = [each for each in desk.events("used") if each["type"] == "Warning"]
    assert [each["reason"] for each in told] == ["CannotDeleteExternalResource"]
    desk.cloud.call("ec2", "DeleteSubnet", SubnetId=subnet["SubnetId"])
    assert desk.settle(VPC, "used") is None


def test_a_database_with_deletion_protection_is_not_deleted(desk: Desk) -> None:
    desk.declare(DATABASE, "kept", {**FIELDS[DATABASE], "deletionProtection": True})
    desk.settle(DATABASE, "kept")
    desk.delete(DATABASE, "kept")
    with pytest.raises(UcpError, match="deletion protection"):
        desk.look(desk.controller(), DATABASE, "kept")

    off = {"DBInstanceIdentifier": "kept", "DeletionProtection": False}
    desk.cloud.call("rds", "ModifyDBInstance", **off)
    assert desk.settle(DATABASE, "kept") is None


def test_a_paused_resource_is_not_reconciled_until_it_is_resumed(desk: Desk) -> None:
    before = desk.cloud.number
    desk.declare(VPC, "waits", FIELDS[VPC])
    pause = {"metadata": {"annotations": {"crossplane.io/paused": "true"}}}
    desk.patch(VPC, "waits", pause)

    assert condition(desk.settle(VPC, "waits"), "Synced")[1] == "ReconcilePaused"
    assert desk.cloud.number == before
    desk.patch(VPC, "waits", {"metadata": {"annotations": {"crossplane.io/paused": None}}})
    assert condition(desk.settle(VPC, "waits"), "Ready")[0] == "True"
    desk.patch(VPC, "waits", pause)
    desk.delete(VPC, "waits")
    assert desk.settle(VPC, "waits") is not None
    desk.patch(VPC, "waits", {"metadata": {"annotations": {"crossplane.io/paused": None}}})
    assert desk.settle(VPC, "waits") is None


SUPPORTED = (
    ["*"],
    ["Observe", "Create", "Update", "Delete"],
    ["Observe", "Create", "Update", "LateInitialize"],
    ["Observe", "Create", "Update"],
    ["Observe", "Create", "Delete", "LateInitialize"],
    ["Observe", "Create", "Delete"],
    ["Observe", "Create", "LateInitialize"],
    ["Observe", "Create"],
    ["Observe", "Update"],
    ["Observe", "Update", "LateInitialize"],
    ["Observe", "Delete"],
    ["Observe", "Update", "Delete"],
    ["Observe"],
    ["Observe", "LateInitialize"],
)


@pytest.mark.parametrize("policies", SUPPORTED, ids=lambda each: "-".join(each))
def test_only_actions_in_the_management_policies_are_taken(desk: Desk, policies: list[str]) -> None:
    may = frozenset(ACTIONS if policies == ["*"] else policies)
    name = "p-" + "-".join(each.strip("*")[:3].lower() for each in policies).strip("-")
    absent, here = f"{name}-absent", f"{name}-here"
    desk.declare(VPC, absent, FIELDS[VPC], managementPolicies=policies)
    if "Create" in may:
        assert external_name(desk.settle(VPC, absent))
    else:
        with pytest.raises(UcpError, match="does not exist"):
            desk.settle(VPC, absent, looks=2)
    older = desk.cloud.call("ec2", "CreateVpc", CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    annotations = {"crossplane.io/external-name": older}
    desk.declare(
        VPC, here, FIELDS[VPC], managementPolicies=policies, metadata={"annotations": annotations}
    )
    there = desk.settle(VPC, here)
    assert there is not None
    assert ("instanceTenancy" in there["spec"]["forProvider"]) is ("LateInitialize" in may)
    asked = {"VpcId": older, "Attribute": "enableDnsHostnames"}
    hostnames = desk.cloud.call("ec2", "DescribeVpcAttribute", **asked)["EnableDnsHostnames"]
    assert hostnames["Value"] is ("Update" in may)
    for each in (absent, here):
        vpc = external_name(desk.get(VPC, each))
        desk.remove(VPC, each)
        left = desk.cloud.call("ec2", "DescribeVpcs")["Vpcs"]
        is_left = vpc in [item["VpcId"] for item in left]
        assert is_left is (bool(vpc) and "Delete" not in may)
        if is_left:
            desk.cloud.call("ec2", "DeleteVpc", VpcId=vpc)


@pytest.mark.parametrize("policies", [["Create"], ["Update", "Delete"], ["LateInitialize"]])
def test_unsupported_management_policies_are_reported(desk: Desk, policies: list[str]) -> None:
    before = desk.cloud.number
    desk.declare(VPC, "odd", FIELDS[VPC], managementPolicies=policies)

    assert "managementPolicies" in condition(desk.settle(VPC, "odd"), "Synced")[2]
    assert desk.cloud.number == before
    desk.patch(VPC, "odd", {"spec": {"managementPolicies": ["*"]}})
    desk.remove(VPC, "odd")


def test_a_reference_waits_for_the_referenced_resource(desk: Desk) -> None:
    desk.declare("Subnet.ec2", "inner", {"cidrBlock": "10.0.1.0/24", "vpcIdRef": {"name": "outer"}})
    with pytest.raises(UcpError, match="VPC outer does not exist"):
        desk.settle("Subnet.ec2", "inner", looks=2)
    desk.declare(VPC, "outer", FIELDS[VPC])
    with pytest.raises(UcpError, match="VPC outer is not in the cloud yet"):
        desk.settle("Subnet.ec2", "inner", looks=2)
    vpc = external_name(desk.settle(VPC, "outer"))

    inner = desk.settle("Subnet.ec2", "inner")

    assert inner is not None
    assert inner["spec"]["forProvider"]["vpcId"] == vpc
    desk.remove("Subnet.ec2", "inner")
    desk.remove(VPC, "outer")


def test_a_selector_matches_labels_and_controller(desk: Desk) -> None:
    def owned(name: str, **labels: str) -> dict[str, Any]:
        uid = desk.kube.apply(CONFIG_MAP.object(name, "team"))["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}
        return {"ownerReferences": [{**owner, "controller": True}], "labels": labels}

    desk.declare(VPC, "a", FIELDS[VPC], metadata=owned("u1", env="prod"))
    desk.declare(VPC, "b", FIELDS[VPC], metadata=owned("u2", env="prod"))
    chosen = external_name(desk.settle(VPC, "b"))
    desk.settle(VPC, "a")
    selector = {"matchLabels": {"env": "prod"}, "matchControllerRef": True}
    given = {"cidrBlock": "10.0.1.0/24", "vpcIdSelector": selector}
    desk.declare("Subnet.ec2", "c", given, metadata=owned("u2"))

    subnet = desk.settle("Subnet.ec2", "c")

    assert subnet is not None
    assert subnet["spec"]["forProvider"]["vpcId"] == chosen
    desk.remove("Subnet.ec2", "c")
    desk.remove(VPC, "a")
    desk.remove(VPC, "b")


def test_a_network_in_another_namespace_is_used_and_the_initial_name_is_kept(desk: Desk) -> None:
    """As in a team's claim: initProvider sets the firewall's name at its creation only."""
    network = desk.declare(VPC, "net", FIELDS[VPC])
    vpc = external_name(desk.settle(VPC, "net"))
    desk.kube.apply(NAMESPACE.object("shared"))
    known_as = {"crossplane.io/external-name": vpc}
    shared = {**network, "metadata": {"name": "net", "namespace": "shared"}}
    shared["metadata"]["annotations"] = known_as
    shared["spec"] = {**network["spec"], "managementPolicies": ["Observe"]}
    desk.kube.apply(shared, manager="test")
    desk.controller().reconcile("VPC.ec2.aws.m.upbound.io/shared/net")
    given = {"description": "d", "vpcIdRef": {"name": "net", "namespace": "shared"}}
    desk.declare("SecurityGroup.ec2", "wall", given, initProvider={"name": "first"})
    desk.settle("SecurityGroup.ec2", "wall")
    desk.patch("SecurityGroup.ec2", "wall", {"spec": {"initProvider": {"name": "second"}}})

    wall = desk.settle("SecurityGroup.ec2", "wall")

    found = desk.cloud.call("ec2", "DescribeSecurityGroups", GroupIds=[external_name(wall)])
    assert [each["GroupName"] for each in found["SecurityGroups"]] == ["first"]
    assert [each["VpcId"] for each in found["SecurityGroups"]] == [vpc]
    desk.remove("SecurityGroup.ec2", "wall")
    desk.remove(VPC, "net")


def _secret(desk: Desk, name: str) -> dict[str, str]:
    data = desk.kube.get(SECRET, name, "team")["data"]
    return {key: base64.b64decode(each).decode() for key, each in data.items()}


def test_a_database_waits_for_its_password_and_writes_a_connection_secret(desk: Desk) -> None:
    fields = {key: each for key, each in FIELDS[DATABASE].items() if key != "password"}
    fields["passwordSecretRef"] = {"name": "given", "key": "password"}
    to = {"writeConnectionSecretToRef": {"name": "connects"}}
    desk.declare(DATABASE, "data", fields, **to)
    with pytest.raises(UcpError, match="Secret given has no key password yet"):
        desk.settle(DATABASE, "data", looks=1)
    desk.kube.apply(SECRET.object("given", "team", stringData={"password": "long-enough"}))

    there = desk.settle(DATABASE, "data")

    told = _secret(desk, "connects")
    assert (told["username"], told["password"], told["port"]) == ("app", "long-enough", "5432")
    assert told["endpoint"] == f"{told['host']}:{told['port']}"
    assert "long-enough" not in json.dumps(there)
    desk.remove(DATABASE, "data")


def test_a_foreign_secret_is_never_overwritten(desk: Desk) -> None:
    desk.kube.apply(SECRET.object("theirs", "team", stringData={"key": "value"}))
    desk.declare(
        DATABASE, "greedy", FIELDS[DATABASE], writeConnectionSecretToRef={"name": "theirs"}
    )
    with pytest.raises(UcpError, match="connection secret theirs already exists"):
        desk.settle(DATABASE, "greedy", looks=4)
    assert _secret(desk, "theirs") == {"key": "value"}
    desk.remove(DATABASE, "greedy")


def test_nothing_is_created_without_the_provider_configuration(desk: Desk) -> None:
    before = desk.cloud.number
    ref = {"kind": "ClusterProviderConfig", "name": "other"}
    desk.declare(VPC, "foreign", FIELDS[VPC], providerConfigRef=ref)
    with pytest.raises(UcpError, match="ClusterProviderConfig other: it does not exist"):
        desk.settle(VPC, "foreign", looks=2)
    assert desk.cloud.number == before
    other = config()
    other["metadata"]["name"] = "other"
    desk.kube.apply(other)
    desk.settle(VPC, "foreign")
    desk.remove(VPC, "foreign")


@pytest.mark.parametrize("kind", FIELDS)
def test_a_lost_response_to_a_creation_creates_no_second_resource(desk: Desk, kind: str) -> None:
    before = desk.cloud.number
    desk.declare(kind, "lost", FIELDS[kind])
    desk.cloud.fail(CloudFault("lost", operation="Create*", times=1))
    if kind == "Instance.ec2":
        desk.cloud.fail(CloudFault("lost", operation="RunInstances", times=1))

    there = desk.settle(kind, "lost")

    assert condition(there, "Ready")[0] == "True"
    assert sum(desk.cloud.made(before).values()) == 1
    assert [each.answered for each in desk.cloud.entries(before) if each.made] == [False]
    desk.remove(kind, "lost")


def test_a_lost_response_to_a_deletion_is_recovered_from(desk: Desk) -> None:
    desk.declare(VPC, "ends", FIELDS[VPC])
    desk.settle(VPC, "ends")
    desk.cloud.fail(CloudFault("lost", operation="DeleteVpc", times=1))
    desk.remove(VPC, "ends")


def test_neither_of_two_candidates_for_a_lost_creation_is_adopted(desk: Desk) -> None:
    desk.declare(VPC, "twice", FIELDS[VPC])
    there = desk.settle(VPC, "twice")
    spec = [{"ResourceType": "vpc", "Tags": [
        {"Key": "crossplane-namespace", "Value": "team"},
        {"Key": "crossplane-name", "Value": "twice"},
    ]}]  # fmt: skip
    asked: dict[str, Any] = {"CidrBlock": "10.0.0.0/16", "TagSpecifications": spec}
    other = desk.cloud.call("ec2", "CreateVpc", **asked)["Vpc"]["VpcId"]
    later = {"crossplane.io/external-create-pending": "2999-01-01T00:00:00+00:00"}
    desk.patch(VPC, "twice", {"metadata": {"annotations": later}})

    asks = desk.settle(VPC, "twice")

    assert "cannot determine creation result" in condition(asks, "Synced")[2]
    assert external_name(asks) == external_name(there)
    desk.cloud.call("ec2", "DeleteVpc", VpcId=other)
    gone = {"crossplane.io/external-create-pending": None}
    desk.patch(VPC, "twice", {"metadata": {"annotations": gone}})
    desk.remove(VPC, "twice")


@pytest.mark.parametrize("operation", ["CreateVpc", "DescribeVpcs", "DeleteVpc"])
@pytest.mark.parametrize(
    ("fault", "told"),
    [("unavailable", "ServiceUnavailable"), ("throttle", "RequestLimitExceeded")],
)
def test_an_error_of_the_cloud_is_reported_and_retried(
    desk: Desk, operation: str, fault: str, told: str
) -> None:
    before = desk.cloud.number
    desk.declare(VPC, "again", FIELDS[VPC])
    if operation != "CreateVpc":
        desk.settle(VPC, "again")
    if operation == "DeleteVpc":
        desk.delete(VPC, "again")
    desk.cloud.fail(CloudFault(fault, operation=operation, times=2))

    with pytest.raises(UcpError, match=told):
        desk.settle(VPC, "again", looks=2)

    assert told in condition(desk.get(VPC, "again"), "Synced")[2]
    desk.settle(VPC, "again")
    assert desk.cloud.made(before) == {"vpc": 1}
    if operation != "DeleteVpc":
        desk.remove(VPC, "again")


@pytest.mark.parametrize("operation", ["CreateVpc", "DescribeVpcs", "DeleteVpc"])
def test_a_call_that_hangs_times_out(
    desk: Desk, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = replace(desk.cloud.account, caller=f"impatient/{operation}")
    before = desk.cloud.number
    desk.declare(VPC, "hangs", FIELDS[VPC])
    if operation != "CreateVpc":
        desk.settle(VPC, "hangs")
    if operation == "DeleteVpc":
        desk.delete(VPC, "hangs")
    desk.cloud.fail(CloudFault("hang", operation=operation, seconds=1.0, times=1))

    with monkeypatch.context() as hurried, pytest.raises(UcpError, match="timeout"):
        hurried.setattr(client, "CALL_SECONDS", 0.3)
        desk.look(desk.controller(aws=impatient), VPC, "hangs")

    desk.settle(VPC, "hangs")
    assert desk.cloud.made(before) == {"vpc": 1}
    if operation != "DeleteVpc":
        desk.remove(VPC, "hangs")


def _until_death(desk: Desk, kind: str, death: Death) -> bool:
    """Reconcile until the process dies or the object settles; whether it died."""
    try:
        desk.settle(kind, "dies", controller=desk.controller(death))
    except Killed:
        return True
    return False


@VPC_AND_ROLE
@pytest.mark.parametrize("step", range(1, CREATE_STEPS + 1))
def test_a_crash_at_any_step_of_a_creation_creates_no_second_resource(
    desk: Desk, kind: str, step: int
) -> None:
    before = desk.cloud.number
    desk.declare(kind, "dies", FIELDS[kind])
    died = _until_death(desk, kind, Death(step))
    assert died or kind != VPC or step == CREATE_STEPS

    there = desk.settle(kind, "dies")

    assert condition(there, "Ready")[0] == "True"
    assert sum(desk.cloud.made(before).values()) == 1
    desk.remove(kind, "dies")


@VPC_AND_ROLE
@pytest.mark.parametrize("step", range(1, DELETE_STEPS + 1))
def test_a_crash_at_any_step_of_a_deletion_leaves_nothing(desk: Desk, kind: str, step: int) -> None:
    desk.declare(kind, "dies", FIELDS[kind])
    desk.settle(kind, "dies")
    desk.delete(kind, "dies")
    died = _until_death(desk, kind, Death(step))
    assert died or step == DELETE_STEPS

    assert desk.settle(kind, "dies") is None


@pytest.mark.parametrize("kind", ["ClusterProviderConfig", "ProviderConfig"])
def test_a_provider_configuration_is_kept_while_a_resource_uses_it(desk: Desk, kind: str) -> None:
    desk.configure("shared", kind)
    there = desk.declare(ROLE, "user", FIELDS[ROLE], providerConfigRef=ref_to("shared", kind))
    desk.settle(ROLE, "user")
    uid = there["metadata"]["uid"]
    (usage,) = desk.usages(kind, "shared")
    assert usage["metadata"]["name"] == uid
    assert [each["uid"] for each in usage["metadata"]["ownerReferences"]] == [uid]
    assert usage["providerConfigRef"] == ref_to("shared", kind)
    assert usage["resourceRef"]["name"] == "user"
    found = desk.account("shared", kind)
    assert found is not None
    assert found["metadata"]["finalizers"] == ["in-use.crossplane.io"]
    assert found["status"]["users"] == 1

    desk.unconfigure("shared", kind)
    found = desk.account("shared", kind)

    assert condition(found, "Terminating")[:2] == ("True", "InUse")
    message = condition(found, "Terminating")[2]
    assert message == "Blocking deletion while usages still exist: Role team/user"
    desk.remove(ROLE, "user")
    assert desk.usages(kind, "shared") == []
    assert desk.account("shared", kind) is None


def test_a_resource_that_changes_its_provider_configuration_releases_the_old_one(
    desk: Desk,
) -> None:
    for name in ("before", "after"):
        desk.configure(name)
    desk.declare(ROLE, "moves", FIELDS[ROLE], providerConfigRef=ref_to("before"))
    desk.settle(ROLE, "moves")
    desk.patch(ROLE, "moves", {"spec": {"providerConfigRef": ref_to("after")}})
    desk.settle(ROLE, "moves")

    assert [desk.counted(each) for each in ("before", "after")] == [0, 1]
    desk.unconfigure("before")
    assert desk.account("before") is None
    desk.remove(ROLE, "moves")
    desk.unconfigure("after")
    assert desk.account("after") is None


def test_an_orphaned_resource_releases_its_provider_configuration(desk: Desk) -> None:
    desk.configure("left")
    policies = ["Observe", "Create", "Update", "LateInitialize"]
    given = {"providerConfigRef": ref_to("left"), "managementPolicies": policies}
    desk.declare(ROLE, "orphan", FIELDS[ROLE], **given)
    desk.settle(ROLE, "orphan")
    desk.remove(ROLE, "orphan")
    assert desk.counted("left") == 0
    desk.unconfigure("left")
    assert desk.account("left") is None
    desk.cloud.call("iam", "DeleteRole", RoleName="orphan")


def test_a_restored_usage_of_a_missing_resource_does_not_block_deletion(desk: Desk) -> None:
    desk.configure("restored")
    labels = {
        "crossplane.io/provider-config": "restored",
        "crossplane.io/provider-config-kind": "ClusterProviderConfig",
    }
    resource = {"apiVersion": "iam.aws.m.upbound.io/v1beta1", "kind": "Role", "name": "gone"}
    desk.kube.apply(
        USAGE.object(
            "orphaned",
            "team",
            labels=labels,
            providerConfigRef=ref_to("restored"),
            resourceRef=resource,
        )
    )
    assert desk.counted("restored") == 0
    assert desk.usages("ClusterProviderConfig", "restored") == []
    desk.unconfigure("restored")
    assert desk.account("restored") is None


def test_resources_composed_from_a_local_claim_become_a_database(desk: Desk) -> None:
    """No environment is on AWS, so no network is referenced."""
    children = {each["kind"]: each for each in composed(claim("local", namespace="team"))}
    for each in children.values():
        each["metadata"].pop("ownerReferences", None)
    given = {"password": base64.b64encode(b"long-enough").decode()}
    desk.kube.apply({**children["Secret"], "data": given}, manager="test")
    desk.kube.apply(children["Instance"], manager="test")

    there = desk.settle(DATABASE, "orders-instance")

    assert condition(there, "Ready")[0] == "True"
    assert external_name(there) == "demo-orders-in-ns-team"
    connection = desk.kube.get(SECRET, "orders-instance", "team")["data"]
    assert base64.b64decode(connection["password"]) == b"long-enough"
    assert {"host", "port", "username"} < set(connection)
    desk.remove(DATABASE, "orders-instance")


def test_the_reconciler_creates_declared_resources_and_reverts_drift(desk: Desk) -> None:
    settings = desk.settings(cloud_poll_seconds=0.5, controllers=frozenset({"managed-resources"}))
    before = desk.cloud.number
    reconciler = Manager(settings, {})
    reconciler.start()
    try:
        ref = {"name": "net"}
        desk.declare("Subnet.ec2", "part", {"cidrBlock": "10.0.1.0/24", "vpcIdRef": ref})
        desk.declare(VPC, "net", FIELDS[VPC])
        for kind, name in ((VPC, "net"), ("Subnet.ec2", "part")):
            eventually(
                lambda kind=kind, name=name: condition(desk.get(kind, name), "Ready")[0] == "True",
                lambda kind=kind, name=name: desk.get(kind, name),
                30,
            )
        vpc = external_name(desk.get(VPC, "net"))
        off = {"VpcId": vpc, "EnableDnsHostnames": {"Value": False}}
        desk.cloud.call("ec2", "ModifyVpcAttribute", **off)
        asked = {"VpcId": vpc, "Attribute": "enableDnsHostnames"}
        eventually(
            lambda: desk.cloud.call("ec2", "DescribeVpcAttribute", **asked)["EnableDnsHostnames"][
                "Value"
            ],
        )
        desk.delete(VPC, "net")
        desk.delete("Subnet.ec2", "part")
        eventually(lambda: desk.get(VPC, "net") is None)
    finally:
        reconciler.stop(5)
    assert desk.cloud.made(before) == {"vpc": 1, "subnet": 1}


PROGRAM = """
import json, sys
from pathlib import Path
from k8s_ucp.aws.client import AwsAccount
from k8s_ucp.reconciler.manager import run
from k8s_ucp.reconciler.runtime.settings import Settings
run(Settings(kubeconfig=Path(sys.argv[1]), machine="here", topology="demo",
             controllers=frozenset({"managed-resources"}), aws=AwsAccount(*json.loads(sys.argv[2])),
             lease_seconds=3), {})
"""


def test_a_process_killed_during_a_creation_creates_no_second_resource(desk: Desk) -> None:
    account = desk.cloud.account
    told = [account.endpoint, account.access_key, account.secret_key, "killed"]
    words = [sys.executable, "-c", PROGRAM, str(desk.kubeconfig), json.dumps(told)]
    before = desk.cloud.number
    desk.cloud.fail(CloudFault("slow", operation="CreateVpc", seconds=1.5, times=1))
    desk.declare(VPC, "killed", FIELDS[VPC])
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # Once the fault is consumed, the call is running.
    eventually(lambda: not desk.cloud.has_faults(), lambda: desk.get(VPC, "killed"))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    eventually(lambda: desk.cloud.made(before) == {"vpc": 1})

    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: condition(desk.get(VPC, "killed"), "Ready")[0] == "True")
        desk.delete(VPC, "killed")
        eventually(lambda: desk.get(VPC, "killed") is None)
    finally:
        process.terminate()
        process.wait()
    assert desk.cloud.made(before) == {"vpc": 1}
