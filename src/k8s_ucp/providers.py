"""The table of cluster providers: the one place where a provider is added.

A row has all properties on which other code bases decisions; no code checks for a provider's name.
The code that creates the clusters is a separate package, which the row names: `clusters/<name>/`.
Pure.
"""

from __future__ import annotations

from k8s_ucp.cluster_provider import (
    ManagedCluster,
    ManagedFields,
    Network,
    Placement,
    ProviderInfo,
)

DEFAULT = "embedded"
"""For topologies that name none."""

_ROWS = (
    ProviderInfo(
        "embedded",
        "k8s_ucp.clusters.embedded.provider:make",
        core=True,
        network=Network.LOOPBACK,
        placement=Placement.HOST,
        simulated=True,
        takes_seed=True,
        can_copy=True,
        linux_only=True,
        pinned_version=True,
        keys=("nodes",),
        megabytes=550,
        comment="processes on this machine; workloads are simulated",
        offer="control planes as processes on this machine, with simulated workloads",
        folder="clusters",
    ),
    ProviderInfo(
        "kind",
        "k8s_ucp.clusters.kind.provider:make",
        core=True,
        network=Network.CONTAINERS,
        loads_images=True,
        unavailable="k8s_ucp.clusters.kind.provider:why_unavailable",
        removed_by_stop=True,
        keys=("ports",),
        tools=("kind",),
        megabytes=900,
        comment="clusters in containers of Docker, podman or nerdctl",
        offer="clusters in containers, with real pods",
    ),
    ProviderInfo(
        "gke",
        "k8s_ucp.clusters.gke.provider:make",
        core=True,
        cloud="gcp",
        managed=ManagedCluster(
            ("provider-gcp-compute", "provider-gcp-container"),
            region="europe-west9-a",
            group="container.gcp.m.upbound.io",
            kinds={"Cluster": "clusters"},
            references="clusterRef networkRef subnetworkRef",
            fields=(
                ManagedFields(
                    "Cluster",
                    "location=region deletionProtection=protection minMasterVersion=version",
                ),
                ManagedFields("Subnetwork", "region=area", network=True),
                ManagedFields("NodePool", "nodeConfig/machineType=size"),
            ),
            status_has_authority=True,
            own_subnetwork="subnetworkRef",
        ),
        remote=True,
        keys=("region", "size", "network", "autopilot"),
        longest_name=40,
        create_seconds=1800.0,
        access_seconds=3600.0,
    ),
    ProviderInfo(
        "existing",
        "k8s_ucp.clusters.existing.provider:make",
        core=True,
        adopts=True,
        keys=("context", "adopt"),
    ),
    ProviderInfo(
        "eks",
        cloud="aws",
        managed=ManagedCluster(
            ("provider-aws-ec2", "provider-aws-eks", "provider-aws-iam"),
            region="eu-west-3",
            group="eks.aws.m.upbound.io",
            kinds={"Cluster": "clusters", "ClusterAuth": "clusterauths"},
            references="clusterNameRef gatewayIdRef nodeRoleArnRef roleArnRef roleRef "
            "routeTableIdRef subnetIdRef subnetIdRefs vpcConfig/subnetIdRefs vpcIdRef",
            fields=(
                ManagedFields(
                    "Cluster", "region=region deletionProtection=protection version=version"
                ),
                ManagedFields("ClusterAuth", "region=region"),
                ManagedFields("NodeGroup", "region=region instanceTypes/0=size"),
                ManagedFields(
                    "VPC|Subnet|InternetGateway|RouteTable|RouteTableAssociation|Route",
                    "region=region",
                    network=True,
                ),
                ManagedFields("Subnet", "availabilityZone=zone-a", ".*-a", network=True),
                ManagedFields("Subnet", "availabilityZone=zone-b", ".*-b", network=True),
            ),
            status_has_authority=True,
            kubeconfig_kind="ClusterAuth",
        ),
        keys=("region", "size", "zones"),
        # IAM allows 64 characters, and the control plane's role has `-control-plane` in its name.
        longest_name=50,
    ),
    ProviderInfo(
        "aks",
        cloud="azure",
        managed=ManagedCluster(
            ("provider-azure-containerservice", "provider-azure-network"),
            region="francecentral",
            group="containerservice.azure.m.upbound.io",
            kinds={"KubernetesCluster": "kubernetesclusters"},
            references="defaultNodePool/vnetSubnetIdRef dnsPrefix resourceGroupNameRef "
            "virtualNetworkNameRef",
            fields=(
                ManagedFields(
                    "KubernetesCluster",
                    "location=region kubernetesVersion=version defaultNodePool/vmSize=size",
                ),
                ManagedFields("ResourceGroup|VirtualNetwork", "location=region"),
            ),
        ),
        keys=("region", "size"),
        # The nodes' resource group has the name twice, and the region: 80 characters at most.
        longest_name=34,
    ),
    ProviderInfo(
        "digitalocean",
        cloud="digitalocean",
        managed=ManagedCluster(
            (),
            region="fra1",
            group="kubernetes.digitalocean.m.crossplane.io",
            kinds={"Cluster": "clusters"},
            references="name vpcUuidRef",
            fields=(
                ManagedFields("Cluster", "region=region version=version nodePool/0/size=size"),
                ManagedFields("VPC", "region=region"),
            ),
        ),
        needs_version="such as 1.33.1-do.0: "
        "DigitalOcean offers few versions at a time and has no default",
        keys=("region", "size"),
        longest_name=63,
    ),
)

PROVIDERS = {each.name: each for each in _ROWS}
"""By name, in the order in which messages list them."""


def core_providers() -> tuple[str, ...]:
    """Providers of core clusters."""
    return tuple(each.name for each in PROVIDERS.values() if each.core)


def offered_cores(placement: Placement | None = None) -> tuple[str, ...]:
    """Providers of core clusters that need no configuration besides a flag.

    placement: where the components have to run. Others need more settings: repositories, an image.
    """
    return tuple(
        each.name
        for each in PROVIDERS.values()
        if each.offer and placement in (None, each.placement)
    )


def local_providers() -> tuple[str, ...]:
    """Providers of environments whose clusters are LocalClusters."""
    return tuple(each.name for each in PROVIDERS.values() if not each.managed)


def cloud_providers() -> tuple[str, ...]:
    """Providers of environments whose clusters are Crossplane's managed resources."""
    return tuple(each.name for each in PROVIDERS.values() if each.managed)


def environment_providers() -> tuple[str, ...]:
    """Providers of environments."""
    return (*local_providers(), *cloud_providers())
