"""EC2: networks, security groups and machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from k8s_ucp.aws.kind import AwsKind, Call, Describe, Found, Parameters, by_name, fields_of, kind_of
from k8s_ucp.managed.external import Declared


def _ec2(
    kind: str,
    plural: str,
    noun: str,
    *,
    tags: str,
    fields: Mapping[str, str],
    references: Mapping[str, str] = {},
    id: str = "",
    **more: Any,
) -> AwsKind:
    """Common parts of EC2's resources: `CreateVpc`, `DescribeVpcs` by `VpcIds`, `DeleteVpc`."""
    id = id or f"{noun}Id"
    return AwsKind(
        kind_of("ec2", kind, plural),
        "ec2",
        create=f"Create{noun}",
        describe=Describe(f"Describe{noun}s", by_name(f"{id}s", listed=True), f"{noun}s.0"),
        delete=f"Delete{noun}",
        delete_ask=by_name(id),
        fields=fields,
        id_at=more.pop("id_at", f"{noun}.{id}"),
        tags=tags,
        references=references,
        **more,
    )


def _rule(declared: Declared) -> dict[str, Any]:
    """One rule in the format of permissions."""
    asked = declared.parameters
    permission: dict[str, Any] = {
        "IpProtocol": str(asked.get("protocol", "-1")),
        "FromPort": asked.get("fromPort", -1),
        "ToPort": asked.get("toPort", -1),
    }
    if blocks := asked.get("cidrBlocks"):
        permission["IpRanges"] = [{"CidrIp": each} for each in blocks]
    if source := asked.get("sourceSecurityGroupId"):
        permission["UserIdGroupPairs"] = [{"GroupId": source}]
    return {"GroupId": asked.get("securityGroupId"), "IpPermissions": [permission]}


def _is_rule(declared: Declared, found: Found) -> bool:
    asked = declared.parameters
    source = (found.get("ReferencedGroupInfo") or {}).get("GroupId")
    return (
        found.get("IsEgress", False) is (asked.get("type") == "egress")
        and found.get("IpProtocol") == str(asked.get("protocol", "-1"))
        and found.get("FromPort", -1) == asked.get("fromPort", -1)
        and found.get("ToPort", -1) == asked.get("toPort", -1)
        and source == asked.get("sourceSecurityGroupId")
        and found.get("CidrIpv4") in (asked.get("cidrBlocks") or [None])
    )


def _rule_operation(verb: str) -> Callable[[Declared], str]:
    return lambda declared: (
        f"{verb}SecurityGroup"
        f"{'Egress' if declared.parameters.get('type') == 'egress' else 'Ingress'}"
    )


def _attribute(field: str) -> Describe:
    """An attribute of a VPC; each needs a separate call."""
    return Describe(
        "DescribeVpcAttribute",
        lambda declared: {"VpcId": declared.name, "Attribute": field},
        "",
        only=field,
    )


_VPC_ATTRIBUTES = {
    "enableDnsHostnames": "EnableDnsHostnames",
    "enableDnsSupport": "EnableDnsSupport",
}


def _changed_vpc(declared: Declared, found: Found) -> Iterable[Call]:
    for field, name in _VPC_ATTRIBUTES.items():
        wanted = declared.parameters.get(field)
        if wanted is not None and wanted != found[name]["Value"]:
            yield "ModifyVpcAttribute", {"VpcId": declared.name, name: {"Value": wanted}}


def _changed_subnet(declared: Declared) -> Parameters:
    wanted = declared.parameters["mapPublicIpOnLaunch"]
    return {"SubnetId": declared.name, "MapPublicIpOnLaunch": {"Value": wanted}}


def _attached_gateway(declared: Declared, found: Found) -> Iterable[Call]:
    yield from _detached_gateway(declared, found)
    yield (
        "AttachInternetGateway",
        {"InternetGatewayId": declared.name, "VpcId": declared.parameters["vpcId"]},
    )


def _detached_gateway(declared: Declared, found: Found) -> Iterable[Call]:
    for each in found.get("Attachments") or ():
        yield (
            "DetachInternetGateway",
            {"InternetGatewayId": declared.name, "VpcId": each["VpcId"]},
        )


def _deleted_gateway(declared: Declared, found: Found) -> Iterable[Call]:
    yield from _detached_gateway(declared, found)
    yield "DeleteInternetGateway", {"InternetGatewayId": declared.name}


def _route(declared: Declared) -> Parameters:
    return {
        "RouteTableId": declared.parameters.get("routeTableId"),
        "DestinationCidrBlock": declared.parameters.get("destinationCidrBlock"),
    }


def _changed_instance(declared: Declared, _: Found) -> Iterable[Call]:
    """AWS changes the type of stopped machines only."""
    wanted = declared.parameters["instanceType"]
    yield "StopInstances", {"InstanceIds": [declared.name]}
    yield (
        "ModifyInstanceAttribute",
        {
            "InstanceId": declared.name,
            "InstanceType": {"Value": wanted},
        },
    )
    yield "StartInstances", {"InstanceIds": [declared.name]}


VPC = _ec2(
    "VPC",
    "vpcs",
    "Vpc",
    tags="vpc",
    fields=fields_of("cidrBlock", "instanceTenancy"),
    late={"instanceTenancy": "InstanceTenancy"},
    also=tuple(_attribute(field) for field in _VPC_ATTRIBUTES),
    compared={field: f"{name}.Value" for field, name in _VPC_ATTRIBUTES.items()},
    changes=_changed_vpc,
)
SUBNET = _ec2(
    "Subnet",
    "subnets",
    "Subnet",
    tags="subnet",
    fields=fields_of("cidrBlock", "vpcId", "availabilityZone"),
    references={"vpcId": "VPC"},
    late={"availabilityZone": "AvailabilityZone"},
    compared={"mapPublicIpOnLaunch": "MapPublicIpOnLaunch"},
    update="ModifySubnetAttribute",
    update_ask=_changed_subnet,
)
SECURITY_GROUP = _ec2(
    "SecurityGroup",
    "securitygroups",
    "SecurityGroup",
    tags="security-group",
    fields=fields_of("description", "vpcId"),
    references={"vpcId": "VPC"},
    id="GroupId",
    id_at="GroupId",
    more=lambda declared: {"GroupName": declared.parameters.get("name", declared.object_name)},
)
INTERNET_GATEWAY = _ec2(
    "InternetGateway",
    "internetgateways",
    "InternetGateway",
    tags="internet-gateway",
    fields={},
    references={"vpcId": "VPC"},
    compared={"vpcId": "Attachments.0.VpcId"},
    changes=_attached_gateway,
    deletion=_deleted_gateway,
)
ROUTE_TABLE = _ec2(
    "RouteTable",
    "routetables",
    "RouteTable",
    tags="route-table",
    fields=fields_of("vpcId"),
    references={"vpcId": "VPC"},
)
ROUTE = AwsKind(
    kind_of("ec2", "Route", "routes"),
    "ec2",
    create="CreateRoute",
    describe=Describe(
        "DescribeRouteTables",
        lambda declared: {"RouteTableIds": [declared.parameters.get("routeTableId")]},
        "RouteTables.0.Routes",
        lambda declared, found: (
            found.get("DestinationCidrBlock") == declared.parameters.get("destinationCidrBlock")
        ),
    ),
    delete="DeleteRoute",
    delete_ask=_route,
    fields=fields_of("routeTableId", "destinationCidrBlock", "gatewayId"),
    compared={"gatewayId": "GatewayId"},
    update="ReplaceRoute",
    update_ask=lambda declared: {
        **_route(declared),
        "GatewayId": declared.parameters.get("gatewayId"),
    },
    at_provider={"state": "State"},
    references={"routeTableId": "RouteTable", "gatewayId": "InternetGateway"},
)
ROUTE_TABLE_ASSOCIATION = AwsKind(
    kind_of("ec2", "RouteTableAssociation", "routetableassociations"),
    "ec2",
    create="AssociateRouteTable",
    describe=Describe(
        "DescribeRouteTables",
        lambda declared: {
            "Filters": [
                {
                    "Name": "association.route-table-association-id",
                    "Values": [declared.name],
                }
            ]
        },
        "RouteTables.0.Associations",
        lambda declared, found: found.get("RouteTableAssociationId") == declared.name,
    ),
    lookup=Describe(
        "DescribeRouteTables",
        lambda declared: {"RouteTableIds": [declared.parameters.get("routeTableId")]},
        "RouteTables.0.Associations",
        lambda declared, found: found.get("SubnetId") == declared.parameters.get("subnetId"),
    ),
    delete="DisassociateRouteTable",
    delete_ask=by_name("AssociationId"),
    fields=fields_of("routeTableId", "subnetId"),
    id_at="AssociationId",
    id_key="RouteTableAssociationId",
    references={"routeTableId": "RouteTable", "subnetId": "Subnet"},
)
SECURITY_GROUP_RULE = AwsKind(
    kind_of("ec2", "SecurityGroupRule", "securitygrouprules"),
    "ec2",
    create=_rule_operation("Authorize"),
    describe=Describe(
        "DescribeSecurityGroupRules",
        lambda declared: {
            "Filters": [
                {"Name": "group-id", "Values": [declared.parameters.get("securityGroupId")]}
            ]
        },
        "SecurityGroupRules",
        _is_rule,
    ),
    deletion=lambda declared, _: [(_rule_operation("Revoke")(declared), _rule(declared))],
    fields={},
    more=_rule,
    at_provider={"securityGroupRuleId": "SecurityGroupRuleId"},
    references={"securityGroupId": "SecurityGroup", "sourceSecurityGroupId": "SecurityGroup"},
)
INSTANCE = AwsKind(
    kind_of("ec2", "Instance", "instances"),
    "ec2",
    create="RunInstances",
    describe=Describe(
        "DescribeInstances", by_name("InstanceIds", listed=True), "Reservations.0.Instances.0"
    ),
    lookup_filters=(
        {
            "Name": "instance-state-name",
            "Values": ["pending", "running", "stopping", "stopped"],
        },
    ),
    # Called only for existing ones: terminated ones stay visible for a while.
    deletion=lambda declared, _: [("TerminateInstances", {"InstanceIds": [declared.name]})],
    fields=fields_of(
        "instanceType", "keyName", "subnetId", ami="ImageId", vpcSecurityGroupIds="SecurityGroupIds"
    ),
    more=lambda _: {"MinCount": 1, "MaxCount": 1},
    id_at="Instances.0.InstanceId",
    tags="instance",
    compared={"instanceType": "InstanceType"},
    changes=_changed_instance,
    state_at="State.Name",
    ready_states=("running",),
    gone_states=("terminated", "shutting-down"),
    details=lambda _, found: (
        {"privateIp": found["PrivateIpAddress"]} if found.get("PrivateIpAddress") else {}
    ),
    at_provider={
        "arn": "Arn",
        "privateIp": "PrivateIpAddress",
        "publicIp": "PublicIpAddress",
        "instanceState": "State.Name",
    },
    references={"subnetId": "Subnet", "vpcSecurityGroupIds": "SecurityGroup"},
)

KINDS = (
    VPC,
    SUBNET,
    SECURITY_GROUP,
    SECURITY_GROUP_RULE,
    INTERNET_GATEWAY,
    ROUTE_TABLE,
    ROUTE,
    ROUTE_TABLE_ASSOCIATION,
    INSTANCE,
)
