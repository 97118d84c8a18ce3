"""Combinations of core, git and environments that can reach each other. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from k8s_ucp.cluster_provider import Network, Placement, ProviderInfo
from k8s_ucp.providers import PROVIDERS, cloud_providers, environment_providers
from k8s_ucp.topology.problems import Problem
from k8s_ucp.topology.rules.clouds import (
    a,
    find_unstartable_parts,
    how_to_simulate,
    use_core,
    which_cannot_run,
)

if TYPE_CHECKING:
    from k8s_ucp.topology.model import Topology


def environments_of(core: ProviderInfo) -> tuple[str, ...]:
    """Providers of environments whose API servers this core can reach."""
    reached = (each for each in environment_providers() if PROVIDERS[each].network >= core.network)
    return tuple(each for each in reached if each not in rendered_only(core))


def git_of(core: ProviderInfo) -> tuple[str, ...]:
    """Git providers that this core can read; local folders only if it is on this machine."""
    return ("url",) if core.network is Network.WORLD else ("local", "url")


def rendered_only(core: ProviderInfo) -> tuple[str, ...]:
    """Environments that are rendered and checked, but can't be started from this core."""
    return cloud_providers() if core.placement is Placement.HOST else ()


def find_impossible(topology: Topology) -> Iterator[Problem]:
    """Combinations that can't work, with the nearest one that does."""
    spec = topology.spec
    core = PROVIDERS[spec.core.provider]
    repositories, environments = git_of(core), environments_of(core)
    if spec.git.provider not in repositories:
        yield Problem(
            ("spec", "git", "provider"),
            f"git: {spec.git.provider} is not reachable from {a(spec.core.provider)} "
            f"core; use provider: {repositories[0]} with the keys core and apps",
        )
    for index, each in enumerate(spec.environments):
        provider = each.cluster.provider
        if provider not in (*environments, *rendered_only(core)):
            yield Problem(
                ("spec", "environments", index, "cluster", "provider"),
                f"{a(provider)} environment is not supported with "
                f"{a(spec.core.provider)} core; use provider: {environments[0]}",
            )


def find_unstartable(topology: Topology) -> Iterator[Problem]:
    """Parts that are rendered and checked, but can't be started from this core."""
    simulated = topology.spec.clouds.simulated
    unstartable = [
        each
        for each in rendered_only(PROVIDERS[topology.spec.core.provider])
        if PROVIDERS[each].cloud not in simulated
    ]
    for index, each in enumerate(topology.spec.environments):
        provider = each.cluster.provider
        if provider in unstartable and each.state == "running":
            yield Problem(
                ("spec", "environments", index, "cluster", "provider"),
                f"the environment {each.name} on {provider} needs Crossplane provider pods, "
                f"{which_cannot_run(topology.spec.core.provider)}; {use_core(Placement.PODS)}"
                f"{how_to_simulate(PROVIDERS[provider].cloud)}",
            )
    yield from find_unstartable_parts(topology.spec)
