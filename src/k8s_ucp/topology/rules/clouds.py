"""Rules about clouds: what they need said, and what an embedded core can't start of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from k8s_ucp.clouds import CLOUDS
from k8s_ucp.cluster_provider import Placement
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology.problems import Loc, Problem, shown

if TYPE_CHECKING:
    from k8s_ucp.topology.model import Spec


def find_cloud_problems(spec: Spec, topology: str) -> Iterator[Problem]:
    """What a cloud in use needs to be told."""
    used: dict[str, Loc] = {}
    for index, database in enumerate(spec.databases):
        used.setdefault(database.provider, ("spec", "databases", index))
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
            words = f"'{name}' has {len(name)} characters, but {cluster.provider} allows"
            yield Problem(("spec", "environments", index, "name"), f"{words} {limit}")
    for name, cloud in CLOUDS.items():
        source = getattr(spec.credentials, name, None)
        if cloud.needs_project and name in used and not getattr(source, "project", None):
            yield Problem(
                used[name],
                f"spec.credentials.{name} requires the key 'project' (the project id), because "
                f"{name} is in use",
            )


def find_unstartable_parts(spec: Spec) -> Iterator[Problem]:
    """Databases and add-ons that need pods on a core that has none."""
    if PROVIDERS[spec.core.provider].placement is Placement.PODS:
        return
    for index, each in enumerate(spec.databases):
        if each.provider != "local":
            yield Problem(
                ("spec", "databases", index, "provider"),
                f"the database {each.name} on {each.provider} needs Crossplane "
                "provider pods, which an embedded core can't run; use provider: local",
            )
    for kind, found in spec.crossplane.packages:
        if found:
            yield Problem(
                ("spec", "crossplane", "packages", kind),
                "Crossplane packages run as pods of the core cluster, which an "
                "embedded core can't run; use a core with provider: kind",
            )
    for name in ("prometheus", "loki"):
        if getattr(spec.addons, name):
            yield Problem(
                ("spec", "addons", name),
                f"{name} runs as pods of the core cluster, which an embedded core "
                "can't run; use a core with provider: kind",
            )
