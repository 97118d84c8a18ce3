"""What remains of ucp's resources according to the cloud, beside others' in the same account."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.aws.read_back import ReadBack
from k8s_ucp.aws.resource import AwsResource
from k8s_ucp.cloud.faults import CloudFault
from k8s_ucp.managed.external import CloudFailed, Declared
from tests.simulated_cloud import CloudInThread, cloud_in_thread

REGION = "sa-east-1"
DATABASE = "Instance.rds.aws.m.upbound.io"
VPC, SUBNET, ROLE = (
    "VPC.ec2.aws.m.upbound.io",
    "Subnet.ec2.aws.m.upbound.io",
    "Role.iam.aws.m.upbound.io",
)


@pytest.fixture
def cloud(tmp_path: Any) -> Iterator[CloudInThread]:
    with cloud_in_thread(tmp_path / "cloud") as found:
        yield found


def made(
    cloud: CloudInThread, kind: str, *, namespace: str = "ucp-clusters", **parameters: Any
) -> Declared:
    wanted = Declared({"region": REGION, **parameters}, "", "ours", namespace)
    name = AwsResource(cloud.account, KINDS[kind]).create(wanted)
    return Declared(wanted.parameters, name, "ours", namespace)


def test_resource_is_found_by_name_until_it_is_deleted(cloud: CloudInThread) -> None:
    vpc = made(cloud, VPC, cidrBlock="10.1.0.0/16")
    assert ReadBack(cloud.account).exists(VPC, vpc)
    AwsResource(cloud.account, KINDS[VPC]).delete(vpc)
    assert not ReadBack(cloud.account).exists(VPC, vpc)
    missing = Declared({"region": REGION}, "demo-stage", "ours", "ucp-clusters")
    assert not ReadBack(cloud.account).exists(ROLE, missing)


def test_cloud_has_nothing_of_an_earlier_one_in_the_same_process(tmp_path: Any) -> None:
    for name in ("earlier", "later"):
        with cloud_in_thread(tmp_path / name) as cloud:
            made(cloud, VPC, cidrBlock="10.1.0.0/16")
            found = cloud.call("ec2", "DescribeVpcs", region=REGION)["Vpcs"]
            assert [each["CidrBlock"] for each in found if not each["IsDefault"]] == ["10.1.0.0/16"]


def test_last_snapshot_of_a_deleted_database_is_found(cloud: CloudInThread) -> None:
    asked = {"engine": "postgres", "instanceClass": "db.t4g.small", "allocatedStorage": 10}
    declared = Declared(
        {"region": REGION, "username": "app", "password": "long-enough", **asked},
        "orders-read-back",
        "ours",
        "ucp-clusters",
    )
    database = AwsResource(cloud.account, KINDS[DATABASE])
    database.create(declared)
    look = ReadBack(cloud.account)
    assert look.last_snapshot(DATABASE, declared) == ""
    database.delete(declared)
    assert not look.exists(DATABASE, declared)
    assert look.last_snapshot(DATABASE, declared) == "orders-read-back-final"


def test_cloud_that_does_not_answer_is_retried_once_and_not_taken_for_empty(
    cloud: CloudInThread,
) -> None:
    vpc = made(cloud, VPC, cidrBlock="10.1.0.0/16")
    look = ReadBack(cloud.account)
    cloud.fail(CloudFault("unavailable", operation="DescribeVpcs", times=1))
    assert look.exists(VPC, vpc), "once may be an accident"
    cloud.fail(CloudFault("unavailable", operation="DescribeVpcs"))
    with pytest.raises(CloudFailed, match="DescribeVpcs: ServiceUnavailable"):
        look.exists(VPC, vpc)
    with pytest.raises(CloudFailed, match="DescribeVpcs: ServiceUnavailable"):
        look.tagged(REGION, ["ucp-clusters"])
    cloud.fail()
    with pytest.raises(CloudFailed):
        look.exists(VPC, vpc)
    assert look.tagged("us-east-1", ["nobody"]) == [], "other regions are asked"
    AwsResource(cloud.account, KINDS[VPC]).delete(vpc)


def test_tags_distinguish_resources_of_ucp_from_foreign_ones(cloud: CloudInThread) -> None:
    """No managed resource existed for the foreign ones."""
    others = [
        cloud.call("ec2", "CreateVpc", REGION, CidrBlock=f"10.{number}.0.0/16")["Vpc"]["VpcId"]
        for number in range(50, 60)
    ]
    space = "team-orders"  # The simulator keeps resources for the whole process.
    vpc = made(cloud, VPC, namespace=space, cidrBlock="10.1.0.0/16")
    subnet = made(cloud, SUBNET, namespace=space, cidrBlock="10.1.1.0/24", vpcId=vpc.name)
    before = cloud.number
    look = ReadBack(cloud.account)
    found = {*look.tagged(REGION, [space]), *look.tagged("us-east-1", [space])}
    assert found == {("VPC", "ours", vpc.name), ("Subnet", "ours", subnet.name)}
    assert not {each[2] for each in found} & set(others)
    assert look.tagged(REGION, ["team-shop"]) == []
    assert cloud.number == before, "it only looks"
    for kind, each in ((SUBNET, subnet), (VPC, vpc)):
        AwsResource(cloud.account, KINDS[kind]).delete(each)
