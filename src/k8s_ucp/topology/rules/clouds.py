"""Rules about clouds: what they require, and what a core without pods can't start. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from k8s_ucp.clouds import CLOUDS
from k8s_ucp.cluster_provider import Placement
from k8s_ucp.providers import PROVIDERS, offered_cores
from k8s_ucp.topology.parts import Clouds
from k8s_ucp.topology.problems import Loc, Problem, shown

if TYPE_CHECKING:
    from k8s_ucp.topology.model import Spec


def find_cloud_problems(spec: Spec, topology: str) -> Iterator[Problem]:
    """Settings that the clouds in use require or don't support."""
    used: dict[str, Loc] = {}
    for index, database in enumerate(spec.databases):
        used.setdefault(database.provider, ("spec", "databases", index))
        yield from _bad_database(spec, topology, index)
    for index, each in enumerate(spec.environments):
        cluster = each.cluster
        here: Loc = ("spec", "environments", index, "cluster")
        info = PROVIDERS[cluster.provider]
        used[info.cloud] = here
        if info.needs_version and not cluster.version:
            why = info.needs_version
            yield Problem(here, f"{shown(here)} requires the key 'version', {why}")
        name, limit = f"{topology}-{each.name}", info.longest_name
        if limit is not None and len(name) > limit:
            message = f"'{name}' has {len(name)} characters, but {cluster.provider} allows"
            yield Problem(("spec", "environments", index, "name"), f"{message} {limit}")
    for name, cloud in CLOUDS.items():
        source = getattr(spec.credentials, name, None)
        if cloud.needs_project and name in used and not getattr(source, "project", None):
            yield Problem(
                used[name],
                f"spec.credentials.{name} requires the key 'project' (the project id), because "
                f"{name} is in use",
            )
    for name in spec.clouds.simulated:
        if getattr(getattr(spec.credentials, name, None), "endpoint", None):
            at: Loc = ("spec", "credentials", name, "endpoint")
            yield Problem(at, f"{shown(at)} is not supported with a simulated {name}; remove it")
    if PROVIDERS[spec.core.provider].placement is Placement.PODS:
        for name in spec.clouds.simulated:
            yield Problem(
                ("spec", "clouds", name, "simulated"),
                f"a simulated {name} is not supported with {a(spec.core.provider)} core; "
                f"{use_core(Placement.HOST)}, or remove the key",
            )


def _bad_database(spec: Spec, topology: str, index: int) -> Iterator[Problem]:
    """A name that the cloud would reject. It has that of the topology and of the environment."""
    database = spec.databases[index]
    services = getattr(CLOUDS.get(database.provider), "services", None)
    if services is None or services.longest_database is None:
        return
    environments = database.environments or tuple(each.name for each in spec.environments)
    names = (f"{topology}-{database.name}-{each}" for each in environments)
    name = max(names, key=len, default="")
    if len(name) > services.longest_database:
        message = (
            f"'{name}' has {len(name)} characters, but {database.provider} allows "
            f"{services.longest_database} for a database"
        )
        yield Problem(("spec", "databases", index, "name"), message)


def a(provider: str) -> str:
    """A provider with its article: a kind, an embedded."""
    return f"{'an' if provider[0] in 'aeiou' else 'a'} {provider}"


def which_cannot_run(core: str) -> str:
    """The end of a clause on pods, for a core without pods."""
    return f"which {a(core)} core can't run"


def use_core(placement: Placement) -> str:
    """The advice to use a core with another placement."""
    return f"use a core with provider: {' or '.join(offered_cores(placement))}"


def how_to_simulate(cloud: str) -> str:
    """The advice to simulate a cloud, as the end of a sentence; empty if it can't be."""
    if cloud not in Clouds.model_fields:
        return ""
    return f", or simulate {cloud} on this machine: clouds: {{{cloud}: {{simulated: true}}}}"


def find_unstartable_parts(spec: Spec) -> Iterator[Problem]:
    """Databases and add-ons that need pods on a core that has none."""
    if PROVIDERS[spec.core.provider].placement is Placement.PODS:
        return
    cannot = which_cannot_run(spec.core.provider)
    for index, each in enumerate(spec.databases):
        if each.provider not in ("local", *spec.clouds.simulated):
            yield Problem(
                ("spec", "databases", index, "provider"),
                f"the database {each.name} on {each.provider} needs Crossplane provider pods, "
                f"{cannot}; use provider: local{how_to_simulate(each.provider)}",
            )
    for kind, found in spec.crossplane.packages:
        if found:
            yield Problem(
                ("spec", "crossplane", "packages", kind),
                f"Crossplane packages run as pods of the core cluster, {cannot}; "
                f"{use_core(Placement.PODS)}",
            )
    for name in ("prometheus", "loki"):
        if getattr(spec.addons, name):
            yield Problem(
                ("spec", "addons", name),
                f"{name} runs as pods of the core cluster, {cannot}; {use_core(Placement.PODS)}",
            )
