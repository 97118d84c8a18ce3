"""What makes the bases of a cluster into the objects of one environment: names and patches. Pure.

Field names are those of the packages pinned in clouds.py. They are checked against
tests/unit/gitops/provider_fields.json, which is taken from the packages' own CRDs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from k8s_ucp.gitops.render.values.clouds import CLOUD_OF, region_of, without_zone
from k8s_ucp.gitops.render.values.permissions import taken_namespaces
from k8s_ucp.topology import Environment, Topology

Operation = tuple[str, str, object]
"""(op, JSON pointer, value) of a JSON patch."""
Target = tuple[tuple[str, str], ...]
"""What a patch is for: (key, value) pairs of a kustomize selector."""
Patches = list[tuple[Target, list[Operation]]]

REFERENCES: Mapping[str, tuple[str, ...]] = {
    "gke": (
        "spec/forProvider/clusterRef/name",
        "spec/forProvider/networkRef/name",
        "spec/forProvider/subnetworkRef/name",
        "spec/writeConnectionSecretToRef/name",
    ),
    "eks": (
        "spec/forProvider/clusterNameRef/name",
        "spec/forProvider/gatewayIdRef/name",
        "spec/forProvider/nodeRoleArnRef/name",
        "spec/forProvider/roleArnRef/name",
        "spec/forProvider/roleRef/name",
        "spec/forProvider/routeTableIdRef/name",
        "spec/forProvider/subnetIdRef/name",
        "spec/forProvider/subnetIdRefs/name",
        "spec/forProvider/vpcConfig/subnetIdRefs/name",
        "spec/forProvider/vpcIdRef/name",
        "spec/writeConnectionSecretToRef/name",
    ),
    "aks": (
        "spec/forProvider/defaultNodePool/vnetSubnetIdRef/name",
        "spec/forProvider/dnsPrefix",
        "spec/forProvider/resourceGroupNameRef/name",
        "spec/forProvider/virtualNetworkNameRef/name",
        "spec/writeConnectionSecretToRef/name",
    ),
    "digitalocean": (
        "spec/forProvider/name",
        "spec/forProvider/vpcUuidRef/name",
        "spec/writeConnectionSecretToRef/name",
    ),
}
"""Fields that carry an environment's suffix beside the names themselves."""

_SYNC_OPTIONS = "/metadata/annotations/argocd.argoproj.io~1sync-options"
_KEPT = "SkipDryRunOnMissingResource=true,Prune=false,Delete=false"
EVERYTHING: Target = (("kind", ".*"),)
_POLICIES = "/spec/managementPolicies"
_NO_DELETE = ("Observe", "Create", "Update", "LateInitialize")


@dataclass(frozen=True)
class ClusterOverlay:
    """What makes bases into the objects of one environment."""

    bases: tuple[str, ...] = ()
    region: str | None = None
    references: tuple[str, ...] = ()
    patches: Patches = field(default_factory=list)


def cluster_overlay(topology: Topology, environment: Environment) -> ClusterOverlay:
    """The overlay of an environment's cluster, on whatever provider."""
    provider = environment.cluster.provider
    if provider not in CLOUD_OF:
        return ClusterOverlay((provider,), patches=_local_patches(topology, environment))
    region = region_of(environment)
    patches = _CLUSTER_PATCHES[provider](environment, region)
    if environment.access == "scoped":
        namespaces = ",".join(taken_namespaces(topology))
        owner = "ClusterAuth" if provider == "eks" else ".*Cluster"
        pointer = "/metadata/annotations/k8s-ucp.io~1namespaces"
        patches.append(((("kind", owner),), [("add", pointer, namespaces)]))
    common = common_operations(environment, flagged=provider in ("gke", "eks"))
    if common:
        patches.append((EVERYTHING, common))
    if provider == "eks" and any(pointer == _POLICIES for _, pointer, _ in common):
        # It makes nothing in the cloud, only the kubeconfig, and an observed one would not.
        patches.append((_kind("ClusterAuth"), [("remove", _POLICIES, None)]))
    if provider == "gke" and environment.cluster.network:
        patches.append(_existing_network(environment.cluster.network))
    return ClusterOverlay(bases_of(environment), region, REFERENCES[provider], patches)


def bases_of(environment: Environment) -> tuple[str, ...]:
    cluster = environment.cluster
    if cluster.provider == "gke":
        kind = "gke-autopilot" if cluster.autopilot else "gke"
        return ("gke-existing-network" if cluster.network else "gke-network", kind)
    return ("eks-network", "eks") if cluster.provider == "eks" else (cluster.provider,)


def _kind(kind: str, name: str = "") -> Target:
    return (("kind", kind), ("name", name)) if name else (("kind", kind),)


def _gke(environment: Environment, region: str) -> Patches:
    cluster = environment.cluster
    operations: list[Operation] = [
        ("replace", "/spec/forProvider/location", region),
        ("replace", "/spec/forProvider/deletionProtection", environment.deletion_protection),
    ]
    if cluster.version:
        version = cluster.version.removeprefix("v")
        operations.append(("add", "/spec/forProvider/minMasterVersion", version))
    if cluster.network:
        # Its default subnetwork in that region.
        operations.append(("remove", "/spec/forProvider/subnetworkRef", None))
    patches: Patches = [(_kind("Cluster"), operations)]
    if not cluster.network:
        patches += network_patches("gke", region)
    if cluster.size and not cluster.autopilot:
        pointer = "/spec/forProvider/nodeConfig/machineType"
        patches.append((_kind("NodePool"), [("replace", pointer, cluster.size)]))
    return patches


def _eks(environment: Environment, region: str) -> Patches:
    cluster = environment.cluster
    operations: list[Operation] = [
        ("replace", "/spec/forProvider/region", region),
        ("replace", "/spec/forProvider/deletionProtection", environment.deletion_protection),
    ]
    if cluster.version:
        version = cluster.version.removeprefix("v")
        operations.append(("add", "/spec/forProvider/version", version))
    nodes: list[Operation] = [("replace", "/spec/forProvider/region", region)]
    if cluster.size:
        nodes.append(("replace", "/spec/forProvider/instanceTypes/0", cluster.size))
    return [
        (_kind("Cluster"), operations),
        (_kind("ClusterAuth"), [("replace", "/spec/forProvider/region", region)]),
        (_kind("NodeGroup"), nodes),
        *network_patches("eks", region),
    ]


def _aks(environment: Environment, region: str) -> Patches:
    cluster = environment.cluster
    at: Operation = ("replace", "/spec/forProvider/location", region)
    operations = [at]
    if cluster.version:
        version = cluster.version.removeprefix("v")
        operations.append(("add", "/spec/forProvider/kubernetesVersion", version))
    if cluster.size:
        operations.append(("replace", "/spec/forProvider/defaultNodePool/vmSize", cluster.size))
    return [
        (_kind("KubernetesCluster"), operations),
        (_kind("ResourceGroup|VirtualNetwork"), [at]),
    ]


def _digitalocean(environment: Environment, region: str) -> Patches:
    cluster = environment.cluster
    at: Operation = ("replace", "/spec/forProvider/region", region)
    operations = [at, ("replace", "/spec/forProvider/version", cluster.version or "")]
    if cluster.size:
        operations.append(("replace", "/spec/forProvider/nodePool/0/size", cluster.size))
    return [(_kind("Cluster"), operations), (_kind("VPC"), [at])]


_CLUSTER_PATCHES = {"gke": _gke, "eks": _eks, "aks": _aks, "digitalocean": _digitalocean}


def network_patches(provider: str, region: str) -> Patches:
    if provider == "gke":
        at: Operation = ("replace", "/spec/forProvider/region", without_zone(region))
        return [(_kind("Subnetwork"), [at])]
    at = ("replace", "/spec/forProvider/region", region)
    patches: Patches = [
        (_kind("VPC|Subnet|InternetGateway|RouteTable|RouteTableAssociation|Route"), [at])
    ]
    for zone in ("a", "b"):
        pointer = "/spec/forProvider/availabilityZone"
        operation: Operation = ("replace", pointer, f"{region}{zone}")
        patches.append((_kind("Subnet", f".*-{zone}"), [operation]))
    return patches


def common_operations(environment: Environment, *, flagged: bool) -> list[Operation]:
    """For every object. flagged: the cloud has a protection of its own that the cluster sets."""
    policies: tuple[str, ...] = environment.management_policies
    if environment.deletion_protection and not flagged and "*" in policies:
        policies = _NO_DELETE
    operations: list[Operation] = []
    if policies != ("*",):
        operations += _list_operations(_POLICIES, policies)
    if environment.deletion_protection:
        operations.append(("add", _SYNC_OPTIONS, _KEPT))
    return operations


def _existing_network(name: str) -> tuple[Target, list[Operation]]:
    """Somebody else's network is only looked at, whatever the environment's policies say."""
    external_name = "/metadata/annotations/crossplane.io~1external-name"
    observed = _list_operations(_POLICIES, ("Observe",))
    return _kind("Network"), [("add", external_name, name), *observed]


def _list_operations(pointer: str, values: Iterable[str]) -> list[Operation]:
    """Values are scalars in a patch, so a list comes item by item."""
    return [("add", pointer, EMPTY_LIST), *(("add", f"{pointer}/-", each) for each in values)]


EMPTY_LIST: tuple[()] = ()
"""Stands for [] in a patch."""


def _local_patches(topology: Topology, environment: Environment) -> Patches:
    """What an environment's LocalCluster has of its own."""
    operations: list[Operation] = []
    if environment.cluster.version:
        operations.append(("add", "/spec/version", environment.cluster.version))
    if environment.cluster.context:
        operations.append(("add", "/spec/context", environment.cluster.context))
    if environment.access == "scoped":
        namespaces = ",".join(taken_namespaces(topology))
        operations.append(("add", "/metadata/annotations/k8s-ucp.io~1namespaces", namespaces))
    if environment.deletion_protection:
        operations.append(("add", _SYNC_OPTIONS, _KEPT))
    return [(_kind("LocalCluster"), operations)] if operations else []
