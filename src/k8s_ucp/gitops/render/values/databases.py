"""Databases of environments: their regions, names and network access. Pure."""

from __future__ import annotations

from k8s_ucp.clouds import CLOUDS
from k8s_ucp.gitops.render.values.clouds import region_of, without_zone
from k8s_ucp.gitops.render.values.cluster_overlays import (
    EVERYTHING,
    ClusterOverlay,
    Patches,
    bases_of,
    common_operations,
    network_patches,
)
from k8s_ucp.names import CLUSTERS_NAMESPACE
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology import Database, Environment, Topology
from k8s_ucp.topology.rules.names import DATABASE_COPY

PARTS = {
    "Postgres": ("subnets", "firewall", "inside", "instance", "database", "user"),
    "Compute": ("machine",),
}
"""The resources that the platform's Compositions create in clouds, by kind."""


def databases_of(topology: Topology, environment: str) -> list[Database]:
    """The databases of an environment, in the order of ucp.yaml."""
    return [
        each
        for each in topology.spec.databases
        if not each.environments or environment in each.environments
    ]


def database_name(database: Database) -> str:
    """Name of the database in Postgres, and of its user."""
    name = database.name.replace("-", "_")
    return name if name[0].isalpha() else f"db_{name}"


def database_region(database: Database, environment: Environment) -> str:
    """A database's region: its own, else that of the environment's cluster."""
    if database.region:
        return without_zone(database.region)
    if PROVIDERS[environment.cluster.provider].cloud == database.provider:
        return without_zone(region_of(environment))
    services = CLOUDS[database.provider].services
    assert services
    return services.region


def database_access(topology: Topology, environment: Environment) -> ClusterOverlay:
    """Network resources that databases need: a peering, and on another cloud the network itself."""
    found = databases_of(topology, environment.name)
    here = PROVIDERS[environment.cluster.provider].cloud
    bases: list[str] = []
    references: set[str] = set()
    patches: Patches = []
    for cloud in CLOUDS.values():
        of_cloud = [each for each in found if each.provider == cloud.name]
        if not (of_cloud and cloud.services):
            continue
        region = database_region(of_cloud[0], environment)
        if cloud.services.access:
            bases.append(f"base/{cloud.name}-access")
            references |= set(cloud.services.access)
        for provider, info in PROVIDERS.items():
            if info.managed and info.cloud == cloud.name != here:
                bases.append(f"../clusters/base/{provider}-network")
                references |= set(info.managed.reference_paths)
                patches += network_patches(provider, region)
    if bases:
        common = common_operations(environment, flagged=True)
        if common:
            patches.append((EVERYTHING, common))
    return ClusterOverlay(tuple(bases), None, tuple(sorted(references)), patches)


def base_folders(topology: Topology) -> set[str]:
    """Folders below clusters/base that the topology's clusters and databases use."""
    used = {base for each in topology.spec.environments for base in bases_of(each)}
    for each in topology.spec.environments:
        for base in database_access(topology, each).bases:
            if base.startswith("../clusters/base/"):
                used.add(base.rpartition("/")[2])
    return used


NAMESPACE = CLUSTERS_NAMESPACE
"""Namespace of databases and their connection Secrets on the core cluster."""
COPY = DATABASE_COPY
"""The Secret that an app reads, in its own namespace."""
KEYS = ("endpoint", "port", "username", "password", "database")
"""Keys of that Secret."""
SUFFIX = "-connection"


def connection_secret(database: str, environment: str) -> str:
    """Name of the connection Secret on the core cluster."""
    return f"{database}-{environment}{SUFFIX}"
