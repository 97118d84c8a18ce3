"""Which core, which git and which environments go together, as a table. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from k8s_ucp.topology.parts import CLOUD_PROVIDERS
from k8s_ucp.topology.problems import Problem
from k8s_ucp.topology.rules.clouds import find_unstartable_parts

if TYPE_CHECKING:
    from k8s_ucp.topology.model import Topology


@dataclass(frozen=True)
class CoreCombination:
    """What goes with one provider of core clusters."""

    git: tuple[str, ...]
    environments: tuple[str, ...]
    rendered_only: tuple[str, ...] = ()
    """Environments that are rendered and checked, but can't be started from this core."""


COMBINATIONS = {
    "embedded": CoreCombination(
        ("local", "url"), ("embedded", "kind", "existing"), CLOUD_PROVIDERS
    ),
    "kind": CoreCombination(("local", "url"), ("kind", "existing", *CLOUD_PROVIDERS)),
    "gke": CoreCombination(("url",), ("existing", *CLOUD_PROVIDERS)),
    "existing": CoreCombination(("url",), ("existing", *CLOUD_PROVIDERS)),
}


def find_impossible(topology: Topology) -> Iterator[Problem]:
    """Combinations that can never work, each with the nearest that does."""
    spec = topology.spec
    core = COMBINATIONS[spec.core.provider]
    if spec.git.provider not in core.git:
        yield Problem(
            ("spec", "git", "provider"),
            f"git: {spec.git.provider} is not reachable from {_a(spec.core.provider)} "
            f"core; use provider: {core.git[0]} with the keys core and apps",
        )
    for index, each in enumerate(spec.environments):
        provider = each.cluster.provider
        if provider not in (*core.environments, *core.rendered_only):
            yield Problem(
                ("spec", "environments", index, "cluster", "provider"),
                f"{_a(provider)} environment is not supported with "
                f"{_a(spec.core.provider)} core; use provider: {core.environments[0]}",
            )


def _a(provider: str) -> str:
    return f"{'an' if provider[0] in 'aeiou' else 'a'} {provider}"


def find_unstartable(topology: Topology) -> Iterator[Problem]:
    """What is rendered and checked but can't run from this core."""
    core = COMBINATIONS[topology.spec.core.provider]
    for index, each in enumerate(topology.spec.environments):
        provider = each.cluster.provider
        if provider in core.rendered_only and each.state == "running":
            yield Problem(
                ("spec", "environments", index, "cluster", "provider"),
                f"the environment {each.name} on {provider} needs Crossplane provider "
                f"pods, which an {topology.spec.core.provider} core can't run; use a "
                "core with provider: kind",
            )
    yield from find_unstartable_parts(topology.spec)
