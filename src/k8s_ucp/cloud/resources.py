"""The operations that create or delete resources, and where the resource's id is. Pure.

Other operations are in the ledger without an id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Effect:
    """An operation's effect on a resource.

    id: the parameter with its id, or, if the cloud assigns the id, a path in the response.
    """

    kind: str
    id: str
    makes: bool


def _pair(kind: str, made: str, made_id: str, deleted: str, deleted_id: str) -> dict[str, Effect]:
    return {made: Effect(kind, made_id, True), deleted: Effect(kind, deleted_id, False)}


EFFECTS: Mapping[str, Mapping[str, Effect]] = {
    "ec2": {
        **_pair("vpc", "CreateVpc", "Vpc.VpcId", "DeleteVpc", "VpcId"),
        **_pair("subnet", "CreateSubnet", "Subnet.SubnetId", "DeleteSubnet", "SubnetId"),
        **_pair(
            "internet-gateway",
            "CreateInternetGateway",
            "InternetGateway.InternetGatewayId",
            "DeleteInternetGateway",
            "InternetGatewayId",
        ),
        **_pair(
            "route-table",
            "CreateRouteTable",
            "RouteTable.RouteTableId",
            "DeleteRouteTable",
            "RouteTableId",
        ),
        **_pair(
            "route-table-association",
            "AssociateRouteTable",
            "AssociationId",
            "DisassociateRouteTable",
            "AssociationId",
        ),
        **_pair(
            "security-group", "CreateSecurityGroup", "GroupId", "DeleteSecurityGroup", "GroupId"
        ),
        **_pair(
            "instance",
            "RunInstances",
            "Instances.0.InstanceId",
            "TerminateInstances",
            "InstanceId.1",
        ),
    },
    "eks": {
        **_pair("cluster", "CreateCluster", "cluster.name", "DeleteCluster", "name"),
        **_pair(
            "node-group",
            "CreateNodegroup",
            "nodegroup.nodegroupName",
            "DeleteNodegroup",
            "nodegroupName",
        ),
    },
    "iam": {
        **_pair("role", "CreateRole", "Role.RoleName", "DeleteRole", "RoleName"),
        **_pair("policy", "CreatePolicy", "Policy.Arn", "DeletePolicy", "PolicyArn"),
    },
    "rds": {
        **_pair(
            "db-instance",
            "CreateDBInstance",
            "DBInstance.DBInstanceIdentifier",
            "DeleteDBInstance",
            "DBInstanceIdentifier",
        ),
        **_pair(
            "db-subnet-group",
            "CreateDBSubnetGroup",
            "DBSubnetGroup.DBSubnetGroupName",
            "DeleteDBSubnetGroup",
            "DBSubnetGroupName",
        ),
        **_pair(
            "db-snapshot",
            "CreateDBSnapshot",
            "DBSnapshot.DBSnapshotIdentifier",
            "DeleteDBSnapshot",
            "DBSnapshotIdentifier",
        ),
    },
    "route53": {
        **_pair("hosted-zone", "CreateHostedZone", "HostedZone.Id", "DeleteHostedZone", "Id"),
    },
    "s3": {**_pair("bucket", "CreateBucket", "Bucket", "DeleteBucket", "Bucket")},
}


def effect_of(service: str, operation: str) -> Effect | None:
    """An operation's effect on a resource; None if it neither creates nor deletes one."""
    return EFFECTS.get(service, {}).get(operation)


def id_of(effect: Effect, parameters: Mapping[str, Any], answer: Any) -> str:
    """The id of the resource; "" if there is none."""
    asked = parameters.get(effect.id)
    if asked is not None or not effect.makes:
        return str(asked or "").rpartition("/")[2]
    found = answer
    for part in effect.id.split("."):
        if isinstance(found, list):
            found = found[int(part)] if part.isdigit() and int(part) < len(found) else None
        else:
            found = found.get(part) if isinstance(found, Mapping) else None
    # Hosted zones have a path as id.
    return str(found or "").rpartition("/")[2]
