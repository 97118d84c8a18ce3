"""What a topology asks of clouds: packages of Crossplane, accounts, regions. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.clouds import CLOUDS
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology import Environment, Topology
from k8s_ucp.topology.placement import in_pods
from k8s_ucp.topology.rules.names import package_name

_CONTRIB = "xpkg.crossplane.io/crossplane-contrib"
FUNCTIONS = {"patch-and-transform": f"{_CONTRIB}/function-patch-and-transform:v0.10.8"}
"""Composition functions that the platform's kinds are made with."""
PLATFORM_CLOUDS = tuple(name for name, each in CLOUDS.items() if each.services)
"""Clouds that the platform's own kinds (api/) are composed on."""
LOCAL = "local"
"""In the place of a cloud: this machine, by what it simulates."""


@dataclass(frozen=True)
class Package:
    """A package of Crossplane, pinned. family: the others of its cloud depend on it."""

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
    """Those in use that need a credential of the user's."""
    return [each for each in clouds(topology) if each not in topology.spec.clouds.simulated]


def packages(topology: Topology, cloud: str) -> list[Package]:
    """What Crossplane needs for a cloud: the family, then one package a service in use."""
    info, names = CLOUDS[cloud], set[str]()
    for each in topology.spec.environments:
        provider = PROVIDERS[each.cluster.provider]
        if provider.managed and provider.cloud == cloud:
            names |= set(provider.managed.packages)
    if info.services:
        names |= set(info.services.packages)
    found = [Package(info.family.rpartition("/")[2], f"{info.family}:{info.version}", family=True)]
    found += [
        Package(each, f"{_CONTRIB}/{each}:{info.version}", family=False) for each in sorted(names)
    ]
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


def project_of(topology: Topology, cloud: str) -> str | None:
    """Where the packages of a cloud make things, if it parts accounts like that."""
    return getattr(getattr(topology.spec.credentials, cloud, None), "project", None)


def endpoint_of(topology: Topology, cloud: str) -> str | None:
    """Who answers in a cloud's place, if anybody does."""
    return getattr(getattr(topology.spec.credentials, cloud, None), "endpoint", None)


def services(topology: Topology, cloud: str) -> list[str]:
    """What the packages of a cloud call, besides what says whose a credential is."""
    names = (each.name for each in packages(topology, cloud) if not each.family)
    return sorted({"sts", *(name.removeprefix(f"provider-{cloud}-") for name in names)})


def platform_clouds(topology: Topology) -> list[str]:
    """Clouds that the platform's own kinds are made on here."""
    return [each for each in clouds(topology) if each in PLATFORM_CLOUDS]


def claim_providers(topology: Topology) -> list[str]:
    """Those of the Compositions that a topology has: its clouds, and this machine where it can."""
    return platform_clouds(topology) + ([LOCAL] if topology.spec.clouds.simulated else [])


def composes(topology: Topology) -> bool:
    """Claims are composed: the core runs functions, or this machine does for a simulated cloud."""
    return in_pods(topology) or bool(topology.spec.clouds.simulated)


def region_of(environment: Environment) -> str:
    """Region or zone of an environment's cluster."""
    cluster = environment.cluster
    managed = PROVIDERS[cluster.provider].managed
    region = cluster.region or (managed.region if managed else "")
    return without_zone(region) if cluster.autopilot else region


def without_zone(region: str) -> str:
    """europe-west9-a -> europe-west9; anything else stays."""
    head, _, last = region.rpartition("-")
    return head if len(last) == 1 and last.isalpha() and head.count("-") else region
