"""Where components run and what the core cluster needs, by its provider. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k8s_ucp.clouds import CLOUDS
from k8s_ucp.cluster_provider import Placement, ProviderInfo
from k8s_ucp.providers import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from k8s_ucp.topology.model import Topology
    from k8s_ucp.topology.parts import Clouds, Database, Environment


NO_DATA = "simulated: holds no data"


def in_pods(topology: Topology) -> bool:
    """Whether the components run as pods of the core cluster."""
    return _core(topology).placement is Placement.PODS


def core_is_existing(topology: Topology) -> bool:
    """Whether somebody else created the core cluster."""
    return _core(topology).adopts


def can_load_images(topology: Topology) -> bool:
    """Whether this machine can copy images to the core's nodes; otherwise nodes pull them."""
    return _core(topology).loads_images


def needs_git_server(topology: Topology) -> bool:
    """Whether pods read local repositories, which needs a git server in the core cluster."""
    return in_pods(topology) and topology.spec.git.provider == "local"


def is_simulated(topology: Topology, provider: str) -> bool:
    """Whether clusters of this provider simulate their pods, or belong to a simulated cloud.

    provider: may be unknown, if it comes from a cluster of another version.
    """
    info = PROVIDERS.get(provider)
    return info is not None and (info.simulated or info.cloud in topology.spec.clouds.simulated)


def with_rollouts(topology: Topology) -> list[str]:
    """Running environments whose Argo Rollouts is a process of this machine: pods are simulated."""
    if not topology.spec.addons.argo_rollouts:
        return []
    return [
        each.name
        for each in topology.spec.environments
        if PROVIDERS[each.cluster.provider].simulated and each.state == "running"
    ]


def writes_elsewhere(topology: Topology) -> bool:
    """Whether a core on this machine writes to clouds or clusters that another core can write to.

    False for cores elsewhere, which keep running when this machine doesn't respond.
    """
    core, spec = _core(topology), topology.spec
    if core.adopts or core.remote:
        return False
    infos = [PROVIDERS[each.cluster.provider] for each in spec.environments]
    clouds = {each.cloud for each in infos} | {each.provider for each in spec.databases}
    real = {each for each in clouds if each in CLOUDS} - set(spec.clouds.simulated)
    return bool(real) or any(each.adopts for each in infos)


def runs_in_cluster(database: Database, environment: Environment) -> bool:
    """Whether the database is a pod in the environment's cluster: local, with real pods."""
    return (
        database.provider == "local"
        and (not database.environments or environment.name in database.environments)
        and not PROVIDERS[environment.cluster.provider].simulated
    )


def proposed_database_provider(clouds: Clouds, environments: Iterable[Environment]) -> str:
    """Default provider of a database: one with which it holds data.

    A simulated cloud's databases listen on this machine, where real pods can't reach them.
    """
    played = [each for each in clouds.simulated if CLOUDS[each].services]
    infos = [PROVIDERS[each.cluster.provider] for each in environments]
    if played and all(each.simulated or each.cloud in clouds.simulated for each in infos):
        return played[0]
    return "local"


def simulated_databases(topology: Topology) -> dict[str, list[str]]:
    """{local database: environments where it is a connection only and holds no data}"""
    spec = topology.spec
    found = {
        each.name: [
            environment.name
            for environment in spec.environments
            if environment.name in (each.environments or [environment.name])
            and not runs_in_cluster(each, environment)
        ]
        for each in spec.databases
        if each.provider == "local"
    }
    return {name: environments for name, environments in found.items() if environments}


def _core(topology: Topology) -> ProviderInfo:
    return PROVIDERS[topology.spec.core.provider]
