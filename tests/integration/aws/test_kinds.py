"""Every AWS kind of the table, in the simulated cloud: created, found again, changed, deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.aws.resource import AwsResource
from k8s_ucp.managed.external import Declared
from tests.simulated_cloud import CloudInThread, cloud_in_thread

REGION = "eu-west-3"
POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": "sts:AssumeRole",
            "Principal": {"Service": "eks.amazonaws.com"},
        }
    ],
}
DATABASE = {
    "engine": "postgres",
    "instanceClass": "db.t4g.small",
    "allocatedStorage": 10,
    "username": "app",
    "password": "long-enough",
    "skipFinalSnapshot": True,
}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "VPC.ec2": (
        {"cidrBlock": "10.1.0.0/16", "enableDnsHostnames": True, "tags": {"team": "web"}},
        {"enableDnsHostnames": False},
    ),
    "Subnet.ec2": (
        {"cidrBlock": "10.0.1.0/24", "vpcId": "$vpc", "mapPublicIpOnLaunch": True},
        {"mapPublicIpOnLaunch": False},
    ),
    "SecurityGroup.ec2": ({"description": "web", "vpcId": "$vpc"}, {}),
    "SecurityGroupRule.ec2": (
        {
            "type": "ingress",
            "protocol": "tcp",
            "fromPort": 5432,
            "toPort": 5432,
            "cidrBlocks": ["10.0.0.0/16"],
            "securityGroupId": "$group",
        },
        {},
    ),
    "InternetGateway.ec2": ({"vpcId": "$vpc"}, {"vpcId": "$other"}),
    "RouteTable.ec2": ({"vpcId": "$vpc"}, {}),
    "Route.ec2": (
        {"routeTableId": "$table", "destinationCidrBlock": "0.0.0.0/0", "gatewayId": "$gateway"},
        {},
    ),
    "RouteTableAssociation.ec2": ({"routeTableId": "$table", "subnetId": "$subnet"}, {}),
    "Instance.ec2": (
        {"ami": "ami-12c6146b", "instanceType": "t3.small", "subnetId": "$subnet"},
        {"instanceType": "t3.medium"},
    ),
    "Role.iam": (
        {"assumeRolePolicy": json.dumps(POLICY)},
        {"assumeRolePolicy": json.dumps(POLICY).replace("eks", "ec2")},
    ),
    "RolePolicyAttachment.iam": (
        {"role": "$role", "policyArn": "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"},
        {},
    ),
    "SubnetGroup.rds": ({"description": "two", "subnetIds": ["$subnet"]}, {}),
    "Instance.rds": (DATABASE, {"instanceClass": "db.t4g.large", "allocatedStorage": 20}),
    "Snapshot.rds": ({"dbInstanceIdentifier": "$database"}, {}),
    "Zone.route53": ({"name": "example.com", "comment": "ours"}, {}),
    "Record.route53": (
        {"zoneId": "$zone", "name": "www.example.org", "type": "A", "ttl": 60, "records": ["::1"]},
        {"records": ["10.0.0.1"]},
    ),
    "Bucket.s3": ({}, {}),
}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudInThread]:
    with cloud_in_thread(tmp_path_factory.mktemp("cloud")) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def ids(cloud: CloudInThread) -> dict[str, str]:
    """Ids of the resources that the cases refer to."""
    vpc = cloud.call("ec2", "CreateVpc", CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    other = cloud.call("ec2", "CreateVpc", CidrBlock="10.2.0.0/16")["Vpc"]["VpcId"]
    subnet = cloud.call("ec2", "CreateSubnet", VpcId=vpc, CidrBlock="10.0.9.0/24")
    group = cloud.call("ec2", "CreateSecurityGroup", GroupName="g", Description="g", VpcId=vpc)
    cloud.call("iam", "CreateRole", RoleName="r", AssumeRolePolicyDocument=json.dumps(POLICY))
    cloud.call(
        "rds",
        "CreateDBInstance",
        DBInstanceIdentifier="d",
        DBInstanceClass="db.t4g.small",
        Engine="postgres",
        AllocatedStorage=10,
        MasterUsername="app",
        MasterUserPassword="long-enough",
    )
    zone = cloud.call("route53", "CreateHostedZone", Name="example.org", CallerReference="x")
    table = cloud.call("ec2", "CreateRouteTable", VpcId=vpc)["RouteTable"]["RouteTableId"]
    gateway = cloud.call("ec2", "CreateInternetGateway")["InternetGateway"]["InternetGatewayId"]
    cloud.call("ec2", "AttachInternetGateway", InternetGatewayId=gateway, VpcId=other)
    return {
        "$vpc": vpc,
        "$other": cloud.call("ec2", "CreateVpc", CidrBlock="10.3.0.0/16")["Vpc"]["VpcId"],
        "$subnet": subnet["Subnet"]["SubnetId"],
        "$group": group["GroupId"],
        "$role": "r",
        "$database": "d",
        "$zone": zone["HostedZone"]["Id"].rpartition("/")[2],
        "$table": table,
        "$gateway": gateway,
    }


def test_every_kind_has_a_case() -> None:
    short = {
        key.partition(".aws.m.")[0] for key in KINDS if not key.endswith("eks.aws.m.upbound.io")
    }
    assert set(CASES) == short


@pytest.mark.parametrize("case", CASES)
def test_resource_of_every_kind_is_created_recovered_changed_and_deleted(
    case: str, cloud: CloudInThread, ids: dict[str, str]
) -> None:
    kind = KINDS[f"{case}.aws.m.upbound.io"]
    resource = AwsResource(cloud.account, kind)

    def given(fields: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(fields)
        for name, value in ids.items():
            text = text.replace(f'"{name}"', f'"{value}"')
        return {"region": REGION, **json.loads(text)}

    start, change = CASES[case]
    before = cloud.number
    name = "k-" + case.replace(".", "-").lower()
    wanted = Declared(given(start), name if kind.named_by_us else "", "made", "team")
    assert not resource.observe(wanted).exists
    assert resource.recover(wanted) == ""

    made = replace(wanted, name=resource.create(wanted))
    assert resource.recover(wanted) == made.name
    other = replace(wanted, namespace="other")
    if not kind.named_by_us and not case.startswith("RouteTableAssociation"):
        assert resource.recover(other) == ""
    _settle(resource, made)
    changed = replace(made, parameters={**made.parameters, **given(change)})
    assert resource.observe(changed).up_to_date is not bool(change)
    _settle(resource, changed)

    resource.delete(changed)
    assert not resource.observe(changed).exists
    resource.delete(changed)
    assert resource.recover(wanted) == ""
    assert not cloud.left(before)


def test_records_and_zones_beyond_a_page_are_found(cloud: CloudInThread) -> None:
    def zone(name: str) -> str:
        made = cloud.call("route53", "CreateHostedZone", Name=name, CallerReference=f"team/{name}")
        return str(made["HostedZone"]["Id"]).rpartition("/")[2]

    *_, last = [zone(f"zone{number:03}.org") for number in range(101)]
    names = [f"host{number:03}.zone100.org" for number in range(301)]
    values = {"Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "10.0.0.1"}]}
    changes = [
        {"Action": "UPSERT", "ResourceRecordSet": {"Name": each, **values}} for each in names
    ]
    batch = {"Changes": changes}
    cloud.call("route53", "ChangeResourceRecordSets", HostedZoneId=last, ChangeBatch=batch)

    record = {"zoneId": last, "name": names[-1], "type": "A", "ttl": 60, "records": ["10.0.0.1"]}
    found = AwsResource(cloud.account, KINDS["Record.route53.aws.m.upbound.io"]).observe(
        Declared(record, "last", "last", "team")
    )
    assert found.exists and found.up_to_date
    resource = AwsResource(cloud.account, KINDS["Zone.route53.aws.m.upbound.io"])
    name = "zone100.org"
    assert resource.recover(Declared({"name": name}, "", name, "team")) == last


def _settle(resource: AwsResource, declared: Declared) -> None:
    if not resource.observe(declared).up_to_date:
        resource.update(declared)
    seen = resource.observe(declared)
    assert seen.exists and seen.up_to_date and seen.ready, seen
    assert seen.at_provider["id"] == declared.name


def test_database_is_restored_from_a_snapshot(cloud: CloudInThread, ids: dict[str, str]) -> None:
    cloud.call("rds", "CreateDBSnapshot", DBInstanceIdentifier="d", DBSnapshotIdentifier="s")
    resource = AwsResource(cloud.account, KINDS["Instance.rds.aws.m.upbound.io"])
    parameters = {"region": REGION, **DATABASE, "snapshotIdentifier": "s"}

    resource.create(Declared(parameters, "again", "again", "team"))

    assert cloud.entries()[-1].operation == "RestoreDBInstanceFromDBSnapshot"
    assert resource.observe(Declared(parameters, "again", "again", "team")).ready
