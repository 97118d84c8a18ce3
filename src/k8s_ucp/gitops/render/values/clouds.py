"""What a topology needs from clouds: Crossplane packages, accounts, regions. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.clouds import CLOUDS, CONTRIB
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology import Environment, Topology
from k8s_ucp.topology.placement import in_pods
from k8s_ucp.topology.rules.names import package_name

FUNCTIONS = {"patch-and-transform": f"{CONTRIB}/function-patch-and-transform:v0.10.8"}
"""Composition functions that the platform's Compositions use."""
PLATFORM_CLOUDS = tuple(name for name, each in CLOUDS.items() if each.services)
"""Clouds with Compositions of the platform's own kinds (api/)."""
LOCAL = "local"
"""Used in place of a cloud: simulated services on this machine."""


@dataclass(frozen=True)
class Package:
    """A pinned Crossplane package. family: the cloud's other packages depend on it."""

    name: str
    reference: str
    family: bool


def clouds(topology: Topology) -> list[str]:
    """Clouds in use, in a fixed order."""
    spec = topology.spec
    used = {PROVIDERS[each.cluster.provider].cloud for each in spec.environments}
    used |= {each.provider for each in spec.databases}
    return [each for each in CLOUDS if each in used]


def clouds_with_accounts(topology: Topology) -> list[str]:
    """Clouds in use that require a credential of the user."""
    return [each for each in clouds(topology) if each not in topology.spec.clouds.simulated]


def packages(topology: Topology, cloud: str) -> list[Package]:
    """The Crossplane packages for a cloud: the family, then one per service in use."""
    info, names = CLOUDS[cloud], set[str]()
    for each in topology.spec.environments:
        provider = PROVIDERS[each.cluster.provider]
        if provider.managed and provider.cloud == cloud:
            names |= set(provider.managed.packages)
    if info.services:
        names |= set(info.services.packages)
    found = [Package(info.family.rpartition("/")[2], f"{info.family}:{info.version}", family=True)]
    found += [
        Package(each, f"{CONTRIB}/{each}:{info.version}", family=False) for each in sorted(names)
    ]
    return found


def other_packages(topology: Topology) -> list[tuple[str, str, str]]:
    """(kind, name, reference) of the packages that the topology lists explicitly."""
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


def project_of(topology: Topology, cloud: str) -> str | None:
    """The project in which a cloud's packages create resources, if the cloud has projects."""
    return getattr(getattr(topology.spec.credentials, cloud, None), "project", None)


def endpoint_of(topology: Topology, cloud: str) -> str | None:
    """The endpoint that replaces a cloud's API, if one is set."""
    return getattr(getattr(topology.spec.credentials, cloud, None), "endpoint", None)


def services(topology: Topology, cloud: str) -> list[str]:
    """Services that a cloud's packages call, and sts, which identifies the credential's owner."""
    names = (each.name for each in packages(topology, cloud) if not each.family)
    return sorted({"sts", *(name.removeprefix(f"provider-{cloud}-") for name in names)})


def platform_clouds(topology: Topology) -> list[str]:
    """Clouds in use that support the platform's own kinds."""
    return [each for each in clouds(topology) if each in PLATFORM_CLOUDS]


def claim_providers(topology: Topology) -> list[str]:
    """Providers with Compositions here: the clouds in use, and `local` if a cloud is simulated."""
    return platform_clouds(topology) + ([LOCAL] if topology.spec.clouds.simulated else [])


def composes(topology: Topology) -> bool:
    """Claims are composed: in pods, or on this machine for a simulated cloud."""
    return in_pods(topology) or bool(topology.spec.clouds.simulated)


def region_of(environment: Environment) -> str:
    """Region or zone of an environment's cluster."""
    cluster = environment.cluster
    managed = PROVIDERS[cluster.provider].managed
    region = cluster.region or (managed.region if managed else "")
    return without_zone(region) if cluster.autopilot else region


def without_zone(region: str) -> str:
    """europe-west9-a -> europe-west9; anything else is unchanged."""
    head, _, last = region.rpartition("-")
    return head if len(last) == 1 and last.isalpha() and head.count("-") else region
