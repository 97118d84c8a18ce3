"""EKS: clusters, their nodes, and the kubeconfig of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from k8s_ucp.aws.kind import AwsKind, Call, Describe, Found, Parameters, by_name, kind_of
from k8s_ucp.managed.external import CloudFailed, Declared

CONTROL_PLANE = "control-plane"
"""The program behind a cluster."""


def _cluster_name(declared: Declared) -> str:
    return str(declared.parameters.get("clusterName") or "")


def _deletion(declared: Declared, _: Found) -> Iterable[Call]:
    # EKS refuses this itself; moto doesn't support the flag.
    if declared.parameters.get("deletionProtection"):
        raise CloudFailed(
            f"DeleteCluster: InvalidRequestException: deletion protection of {declared.name} is on"
        )
    return [("DeleteCluster", {"name": declared.name})]


def _node_group(declared: Declared) -> Parameters:
    return {"clusterName": _cluster_name(declared), "nodegroupName": declared.name}


def _scaled(declared: Declared) -> Parameters:
    return {**_node_group(declared), "scalingConfig": declared.parameters["scalingConfig"]}


def _access(_: Declared, found: Found) -> Mapping[str, str]:
    """The keys that the real provider writes."""
    if not found.get("kubeconfig"):
        return {}
    return {
        "kubeconfig": found["kubeconfig"],
        "endpoint": found["endpoint"],
        "clusterCA": found["certificateAuthority"]["data"],
    }


_NETWORK = ("subnetIds", "securityGroupIds", "endpointPrivateAccess", "endpointPublicAccess")
_SIZES = tuple(f"scalingConfig.{each}Size" for each in ("desired", "min", "max"))

CLUSTER = AwsKind(
    kind_of("eks", "Cluster", "clusters"),
    "eks",
    create="CreateCluster",
    describe=Describe("DescribeCluster", by_name("name"), "cluster"),
    deletion=_deletion,
    fields={
        **{each: each for each in ("roleArn", "version", "tags")},
        **{f"vpcConfig.{each}": f"resourcesVpcConfig.{each}" for each in _NETWORK},
    },
    more=by_name("name"),
    state_at="status",
    ready_states=("ACTIVE",),
    at_provider={
        "id": "name",
        **{each: each for each in ("arn", "status", "version", "endpoint")},
        "certificateAuthority": "certificateAuthority",
    },
    references={
        "roleArn": "Role",
        "vpcConfig.subnetIds": "Subnet",
        "vpcConfig.securityGroupIds": "SecurityGroup",
    },
    backing=CONTROL_PLANE,
)
CLUSTER_AUTH = AwsKind(
    kind_of("eks", "ClusterAuth", "clusterauths"),
    "eks",
    create="",
    describe=Describe(
        "DescribeCluster", lambda declared: {"name": _cluster_name(declared)}, "cluster"
    ),
    fields={},
    state_at="status",
    ready_states=("ACTIVE",),
    details=_access,
    references={"clusterName": "Cluster"},
    backing=CONTROL_PLANE,
    backed=_cluster_name,
)
NODE_GROUP = AwsKind(
    kind_of("eks", "NodeGroup", "nodegroups"),
    "eks",
    create="CreateNodegroup",
    describe=Describe("DescribeNodegroup", _node_group, "nodegroup"),
    delete="DeleteNodegroup",
    delete_ask=_node_group,
    fields={
        **{
            each: each
            for each in (
                "amiType",
                "capacityType",
                "diskSize",
                "instanceTypes",
                "labels",
                "scalingConfig",
                "tags",
                "version",
            )
        },
        "nodeRoleArn": "nodeRole",
        "subnetIds": "subnets",
    },
    more=_node_group,
    compared={each: each for each in _SIZES},
    update="UpdateNodegroupConfig",
    update_ask=_scaled,
    state_at="status",
    ready_states=("ACTIVE",),
    at_provider={"arn": "nodegroupArn", "id": "nodegroupName", "status": "status"},
    references={"clusterName": "Cluster", "nodeRoleArn": "Role", "subnetIds": "Subnet"},
)

KINDS = (CLUSTER, CLUSTER_AUTH, NODE_GROUP)
