"""Syncers of the core repository: mirrors of the topology, and connection Secrets. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from k8s_ucp.gitops.render.values import databases, local_databases
from k8s_ucp.names import CONNECTION
from k8s_ucp.topology.rules.names import LOCAL_DATABASES, database_syncer

if TYPE_CHECKING:
    from k8s_ucp.topology import App, Database, Mirror, Team, Topology

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RenderedSyncerEntry:
    """An item of `spec.data` as the template renders it. Empty fields are left out."""

    namespace: str
    target_namespace: str
    kind: str = "secret"
    name: str = ""
    labels: Pairs = ()
    cluster: str = ""
    environments: tuple[str, ...] = ()
    target_name: str = ""
    keys: Pairs = ()
    deletion_policy: str = "Delete"
    conflict_policy: str = "Refuse"


@dataclass(frozen=True)
class SyncerFile:
    """`mirrors/<name>.yaml`."""

    name: str
    entries: tuple[RenderedSyncerEntry, ...]


def syncers(topology: Topology) -> list[SyncerFile]:
    """Syncers of the core repository, without empty ones.

    One for each mirror, one for each app with a database, one for all databases that run in app
    clusters, and one for each team.
    """
    databases = {each.name: each for each in topology.spec.databases}
    found = [
        *(_of_mirror(each) for each in topology.spec.mirrors),
        *(
            _of_database(topology, each, databases[each.database])
            for each in topology.spec.apps
            if each.database in databases
        ),
        _of_local_databases(topology),
        *(_of_team(topology, each) for each in topology.spec.teams),
    ]
    return [each for each in found if each.entries]


def _of_mirror(mirror: Mirror) -> SyncerFile:
    source, targets = mirror.source, mirror.targets
    entry = RenderedSyncerEntry(
        namespace=source.namespace,
        name=source.name or "",
        labels=tuple(sorted(source.labels.items())),
        kind=source.kind,
        environments=targets.environments,
        target_namespace=targets.namespace,
        target_name=targets.name or "",
        keys=tuple(sorted(targets.keys.items())),
        deletion_policy=mirror.deletion_policy,
        conflict_policy=mirror.conflict_policy,
    )
    return SyncerFile(mirror.name, (entry,))


def _of_database(topology: Topology, app: App, database: Database) -> SyncerFile:
    names = database.environments or tuple(each.name for each in topology.spec.environments)
    return SyncerFile(
        database_syncer(app.name),
        tuple(
            RenderedSyncerEntry(
                namespace=databases.NAMESPACE,
                name=databases.connection_secret(database.name, each),
                cluster=topology.app_cluster(each),
                target_namespace=app.home,
                target_name=databases.COPY,
            )
            for each in names
        ),
    )


def _of_local_databases(topology: Topology) -> SyncerFile:
    """Database pods get the same Secret as the apps, since it contains the password."""
    return SyncerFile(
        LOCAL_DATABASES,
        tuple(
            RenderedSyncerEntry(
                namespace=databases.NAMESPACE,
                name=databases.connection_secret(each.name, environment.name),
                cluster=topology.app_cluster(environment.name),
                target_namespace=local_databases.NAMESPACE,
                target_name=each.name + databases.SUFFIX,
            )
            for environment in local_databases.environments_with_local(topology)
            for each in local_databases.local_databases(topology, environment)
        ),
    )


def _of_team(topology: Topology, team: Team) -> SyncerFile:
    """The connection Secrets of a team's claims, each to the environment named in the claim."""
    return SyncerFile(
        team.namespace,
        tuple(
            RenderedSyncerEntry(
                namespace=team.namespace,
                labels=((CONNECTION, each.name),),
                cluster=topology.app_cluster(each.name),
                target_namespace=team.namespace,
            )
            for each in topology.spec.environments
        ),
    )
