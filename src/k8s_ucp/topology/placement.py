"""Where the components run and what the core cluster is given, by its provider. Pure."""

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
    """The components run as pods of the core cluster."""
    return _core(topology).placement is Placement.PODS


def core_is_existing(topology: Topology) -> bool:
    """Somebody else made the core cluster."""
    return _core(topology).adopts


def can_load_images(topology: Topology) -> bool:
    """This machine can copy images into the core's nodes; other nodes pull them."""
    return _core(topology).loads_images


def needs_git_server(topology: Topology) -> bool:
    """The repositories are local, and pods read them: a server in the core cluster has them."""
    return in_pods(topology) and topology.spec.git.provider == "local"


def is_simulated(topology: Topology, provider: str) -> bool:
    """Clusters of this provider play their pods, by themselves or as their cloud is simulated.

    provider: also as a cluster names it, which may be of another version.
    """
    info = PROVIDERS.get(provider)
    return info is not None and (info.simulated or info.cloud in topology.spec.clouds.simulated)


def writes_elsewhere(topology: Topology) -> bool:
    """The core, on this machine, writes to what a core on another machine could write to, too.

    A core whose pods run elsewhere goes on when this machine is silent, so that says nothing of it.
    """
    core, spec = _core(topology), topology.spec
    if core.adopts or core.remote:
        return False
    infos = [PROVIDERS[each.cluster.provider] for each in spec.environments]
    clouds = {each.cloud for each in infos} | {each.provider for each in spec.databases}
    real = {each for each in clouds if each in CLOUDS} - set(spec.clouds.simulated)
    return bool(real) or any(each.adopts for each in infos)


def runs_in_cluster(database: Database, environment: Environment) -> bool:
    """The database is a pod of the environment's cluster: local, and pods there are real."""
    return (
        database.provider == "local"
        and (not database.environments or environment.name in database.environments)
        and not PROVIDERS[environment.cluster.provider].simulated
    )


def proposed_database_provider(clouds: Clouds, environments: Iterable[Environment]) -> str:
    """Of a database of which nothing is said: the one with which it holds data.

    A simulated cloud's databases listen on this machine, where pods that run can't reach them.
    """
    played = [each for each in clouds.simulated if CLOUDS[each].services]
    infos = [PROVIDERS[each.cluster.provider] for each in environments]
    if played and all(each.simulated or each.cloud in clouds.simulated for each in infos):
        return played[0]
    return "local"


def simulated_databases(topology: Topology) -> dict[str, list[str]]:
    """Local databases that hold no data: the environments where they are a connection only."""
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
