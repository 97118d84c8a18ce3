"""What a topology asks of clouds: packages of Crossplane, accounts, regions. Pure.

A provider of clusters (gke) is one thing, the cloud that bills it (gcp) another: databases and the
platform's own kinds name clouds.
"""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.topology import Environment, Topology
from k8s_ucp.topology.rules.names import package_name

CLOUD_OF = {"gke": "gcp", "eks": "aws", "aks": "azure", "digitalocean": "digitalocean"}
"""Which cloud a provider of clusters is on."""

PACKAGE_VERSIONS = {"gcp": "v3.0.0", "aws": "v2.6.0", "azure": "v2.7.0", "digitalocean": "v1.0.1"}
_CONTRIB = "xpkg.crossplane.io/crossplane-contrib"
_PACKAGES = {
    "gke": ("provider-gcp-compute", "provider-gcp-container"),
    "eks": ("provider-aws-ec2", "provider-aws-eks", "provider-aws-iam"),
    "aks": ("provider-azure-containerservice", "provider-azure-network"),
    "digitalocean": (),
    "database on gcp": (
        "provider-gcp-compute",
        "provider-gcp-servicenetworking",
        "provider-gcp-sql",
    ),
    "database on aws": ("provider-aws-ec2", "provider-aws-rds"),
}
_FAMILIES = {
    "gcp": f"{_CONTRIB}/provider-family-gcp",
    "aws": f"{_CONTRIB}/provider-family-aws",
    "azure": f"{_CONTRIB}/provider-family-azure",
    # One package with all services; it is published in this registry only.
    "digitalocean": "xpkg.upbound.io/crossplane-contrib/provider-upjet-digitalocean",
}
FUNCTIONS = {"patch-and-transform": f"{_CONTRIB}/function-patch-and-transform:v0.10.8"}
"""Composition functions that the platform's kinds are made with."""

PLATFORM_CLOUDS = ("gcp", "aws")
"""Clouds that the platform's own kinds (api/) are composed on."""

_API_VERSIONS = {
    "gcp": "gcp.m.upbound.io/v1beta1",
    "aws": "aws.m.upbound.io/v1beta1",
    "azure": "azure.m.upbound.io/v1beta1",
    "digitalocean": "digitalocean.m.crossplane.io/v1beta1",
}
SECRETS = {
    "gcp": "gcp-creds",
    "aws": "aws-creds",
    "azure": "azure-creds",
    "digitalocean": "do-creds",
}
"""Secret in crossplane-system, key `creds`, that holds a cloud's credential."""

REGIONS = {
    "gke": "europe-west9-a",
    "eks": "eu-west-3",
    "aks": "francecentral",
    "digitalocean": "fra1",
}
"""Where clusters are unless the topology says so."""


@dataclass(frozen=True)
class Package:
    """A package of Crossplane, pinned. family: the others of its cloud depend on it."""

    name: str
    reference: str
    family: bool


@dataclass(frozen=True)
class ProviderConfig:
    """How providers get into a cloud."""

    api_version: str
    secret: str
    project: str | None


def clouds(topology: Topology) -> list[str]:
    """Clouds in use, in a fixed order."""
    spec = topology.spec
    used = {CLOUD_OF[each.cluster.provider] for each in spec.environments if _in_cloud(each)}
    used |= {each.provider for each in spec.databases if each.provider in SECRETS}
    return [each for each in SECRETS if each in used]


def packages(topology: Topology, cloud: str) -> list[Package]:
    """What Crossplane needs for a cloud: the family, then one package a service in use."""
    spec = topology.spec
    uses = {str(each.cluster.provider) for each in spec.environments if _in_cloud(each)}
    uses |= {f"database on {each.provider}" for each in spec.databases}
    names = {
        name
        for use in uses
        for name in _PACKAGES.get(use, ())
        if name.startswith(f"provider-{cloud}-")
    }
    if cloud in platform_clouds(topology):
        names |= {"provider-gcp-compute"} if cloud == "gcp" else {"provider-aws-ec2"}
        names |= set(_PACKAGES[f"database on {cloud}"])
    version = PACKAGE_VERSIONS[cloud]
    family = _FAMILIES[cloud]
    found = [Package(family.rpartition("/")[2], f"{family}:{version}", family=True)]
    found += [Package(each, f"{_CONTRIB}/{each}:{version}", family=False) for each in sorted(names)]
    return found


def other_packages(topology: Topology) -> list[tuple[str, str, str]]:
    """(kind, name, reference) of the packages that the topology lists itself."""
    listed = topology.spec.crossplane.packages
    kinds = {
        "Provider": listed.providers,
        "Configuration": listed.configurations,
        "Function": listed.functions,
    }
    return [
        (kind, package_name(reference), reference)
        for kind, references in kinds.items()
        for reference in references
    ]


def provider_config(topology: Topology, cloud: str) -> ProviderConfig:
    """How the packages of a cloud get into the account."""
    gcp = topology.spec.credentials.gcp
    project = gcp.project if cloud == "gcp" and gcp else None
    return ProviderConfig(_API_VERSIONS[cloud], SECRETS[cloud], project)


def platform_clouds(topology: Topology) -> list[str]:
    """Clouds that the platform's own kinds are made on here."""
    return [each for each in clouds(topology) if each in PLATFORM_CLOUDS]


def region_of(environment: Environment) -> str:
    """Region or zone of an environment's cluster."""
    cluster = environment.cluster
    region = cluster.region or REGIONS[cluster.provider]
    return without_zone(region) if cluster.autopilot else region


def without_zone(region: str) -> str:
    """europe-west9-a -> europe-west9; anything else stays."""
    head, _, last = region.rpartition("-")
    return head if len(last) == 1 and last.isalpha() and head.count("-") else region


def _in_cloud(environment: Environment) -> bool:
    return environment.cluster.provider in CLOUD_OF
