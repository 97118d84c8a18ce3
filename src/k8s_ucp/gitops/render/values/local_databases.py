"""Databases that run in app clusters (`provider: local`): environments, images, clients. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from k8s_ucp.topology.placement import runs_in_cluster

if TYPE_CHECKING:
    from k8s_ucp.topology import Database, Environment, Topology

NAMESPACE = "ucp-databases"
"""Namespace of their pods on app clusters."""
_RELEASES = {"14": "14.20", "15": "15.15", "16": "16.11", "17": "17.7", "18": "18.1"}
"""Tags of the official image by major version; minor releases contain only fixes."""
_REQUESTS = {"small": ("100m", "256Mi"), "medium": ("500m", "1Gi"), "large": ("2", "4Gi")}


@dataclass(frozen=True)
class LocalDatabase:
    """Template values for its StatefulSet."""

    image: str
    cpu: str
    memory: str
    clients: tuple[str, ...]
    """Namespaces whose pods may connect: those of the apps that use the database."""


def local_databases(topology: Topology, environment: Environment) -> list[Database]:
    """Local databases of an environment, in the order of ucp.yaml."""
    return [each for each in topology.spec.databases if runs_in_cluster(each, environment)]


def environments_with_local(topology: Topology) -> list[Environment]:
    """Environments whose clusters run databases."""
    return [each for each in topology.spec.environments if local_databases(topology, each)]


def local_database(topology: Topology, database: Database) -> LocalDatabase:
    """The template values for a local database."""
    release = _RELEASES.get(database.version, database.version)
    cpu, memory = _REQUESTS[database.size]
    clients = {each.home for each in topology.spec.apps if each.database == database.name}
    return LocalDatabase(
        database.image or f"docker.io/library/postgres:{release}",
        cpu,
        memory,
        tuple(sorted(clients)),
    )
