"""What the cloud itself says is left of ours, beside what others have in the same account."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.aws.read_back import last_snapshot, still_there, tagged
from k8s_ucp.aws.resource import AwsResource
from k8s_ucp.cloud.faults import CloudFault
from k8s_ucp.managed.external import Declared
from tests.simulated_cloud import CloudInThread, cloud_in_thread

REGION = "sa-east-1"
"""Of no other test: moto keeps what they made in this process; a new cloud gives the same ids."""
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


def test_what_is_left_is_found_by_name_until_it_is_gone(cloud: CloudInThread) -> None:
    vpc = made(cloud, VPC, cidrBlock="10.1.0.0/16")
    assert still_there(cloud.account, VPC, vpc) == "the cloud still has it"
    AwsResource(cloud.account, KINDS[VPC]).delete(vpc)
    assert still_there(cloud.account, VPC, vpc) == ""
    missing = Declared({"region": REGION}, "demo-stage", "ours", "ucp-clusters")
    assert still_there(cloud.account, ROLE, missing) == ""


def test_the_last_snapshot_of_a_database_is_known(cloud: CloudInThread) -> None:
    asked = {"engine": "postgres", "instanceClass": "db.t4g.small", "allocatedStorage": 10}
    declared = Declared(
        {"region": REGION, "username": "app", "password": "long-enough", **asked},
        "orders-read-back",
        "ours",
        "ucp-clusters",
    )
    database = AwsResource(cloud.account, KINDS[DATABASE])
    database.create(declared)
    assert last_snapshot(cloud.account, DATABASE, declared) == ""
    database.delete(declared)
    assert still_there(cloud.account, DATABASE, declared) == ""
    assert last_snapshot(cloud.account, DATABASE, declared) == "orders-read-back-final"


def test_a_cloud_that_does_not_tell_counts_as_left(cloud: CloudInThread) -> None:
    vpc = made(cloud, VPC, cidrBlock="10.1.0.0/16")
    cloud.fail(CloudFault("unavailable", operation="DescribeVpcs"))
    assert "can't be read" in still_there(cloud.account, VPC, vpc)
    cloud.fail()
    AwsResource(cloud.account, KINDS[VPC]).delete(vpc)


def test_tags_tell_ours_from_what_others_have_beside_it(cloud: CloudInThread) -> None:
    """Of what was made behind our back no object was ever known."""
    others = [
        cloud.call("ec2", "CreateVpc", REGION, CidrBlock=f"10.{number}.0.0/16")["Vpc"]["VpcId"]
        for number in range(50, 60)
    ]
    space = "team-orders"  # The simulator's memory outlives a test.
    vpc = made(cloud, VPC, namespace=space, cidrBlock="10.1.0.0/16")
    subnet = made(cloud, SUBNET, namespace=space, cidrBlock="10.1.1.0/24", vpcId=vpc.name)
    before = cloud.number
    found = set(tagged(cloud.account, [REGION, "us-east-1"], [space]))
    assert found == {("VPC", "ours", vpc.name), ("Subnet", "ours", subnet.name)}
    assert not {each[2] for each in found} & set(others)
    assert list(tagged(cloud.account, [REGION], ["team-shop"])) == []
    assert cloud.number == before, "it only looks"
    for kind, each in ((SUBNET, subnet), (VPC, vpc)):
        AwsResource(cloud.account, KINDS[kind]).delete(each)
