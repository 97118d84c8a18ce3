"""Cost of a plan's objects in clouds, by the price table of ucp.yaml. Pure.

Nothing is estimated: objects that the table doesn't list have no cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from k8s_ucp.gitops.render.values.clouds import region_of
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology import Database, Environment, Topology
from k8s_ucp.topology.parts import Costs, Price
from k8s_ucp.topology.placement import is_simulated

_EFFECTS = {"create": "+", "delete": "-"}


@dataclass(frozen=True)
class Cost:
    """Cost of one object of a plan. monthly: in the table's currency."""

    object: str
    action: str
    monthly: float
    currency: str
    simulated: bool = False

    def data(self) -> dict[str, Any]:
        """Data for `-o json`."""
        return asdict(self)

    def __str__(self) -> str:
        sign = _EFFECTS.get(self.action, "")
        how = "simulated: not billed" if self.simulated else self.action
        return f"{self.object}: {sign}{self.monthly:.2f} {self.currency} a month ({how})"


def costs_of(topologies: Iterable[Topology], steps: Iterable[Mapping[str, str]]) -> list[Cost]:
    """The price of each object that is created, kept or deleted, without duplicates.

    topologies: the current and the planned ucp.yaml. steps: from the data of `--plan`.
    """
    priced = {name: price for each in topologies for name, price in _prices(each)}
    found: dict[str, Cost] = {}
    for each in steps:
        if each["object"] in priced and each["action"] in ("create", "keep", "delete"):
            monthly, currency, simulated = priced[each["object"]]
            cost = Cost(each["object"], each["action"], monthly, currency, simulated)
            found.setdefault(each["object"], cost)
    return list(found.values())


def _prices(topology: Topology) -> Iterator[tuple[str, tuple[float, str, bool]]]:
    """(object as named in plans, (monthly, currency, simulated))"""
    costs = topology.spec.costs or Costs()
    for environment in topology.spec.environments:
        provider, cluster = environment.cluster.provider, topology.app_cluster(environment.name)
        if PROVIDERS[provider].managed:
            price = _most_specific(costs.clusters, provider, _cluster_facts(environment))
            if price:
                priced = price.monthly, costs.currency, is_simulated(topology, provider)
                yield f"cluster {cluster}", priced
                yield f"Cluster {cluster}", priced
                yield f"KubernetesCluster {cluster}", priced
        for each in topology.spec.databases:
            if environment.name not in (each.environments or [environment.name]):
                continue
            price = _most_specific(costs.databases, each.provider, _database_facts(each))
            if price:
                simulated = each.provider in topology.spec.clouds.simulated
                priced = price.monthly, costs.currency, simulated
                yield f"database {each.name} of {environment.name}", priced
                yield f"Postgres {each.name}-{environment.name}", priced


def _cluster_facts(environment: Environment) -> dict[str, str]:
    return {"size": environment.cluster.size or "", "region": region_of(environment)}


def _database_facts(database: Database) -> dict[str, str]:
    return {"size": database.size, "region": database.region or ""}


def _most_specific(
    prices: Iterable[Price], provider: str, facts: Mapping[str, str]
) -> Price | None:
    """The most specific of the matching rows; the first of equal ones."""
    fitting = [
        each
        for each in prices
        if each.provider == provider
        and each.size in (None, facts["size"])
        and each.region in (None, facts["region"])
    ]
    return max(fitting, key=lambda each: bool(each.size) + bool(each.region), default=None)
