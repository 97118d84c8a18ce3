"""Rules between the values of a topology: duplicates, references, lengths, git URLs. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from k8s_ucp.topology.problems import Loc, Problem
from k8s_ucp.topology.rules.apps import find_bad_apps
from k8s_ucp.topology.rules.clouds import find_cloud_problems
from k8s_ucp.topology.rules.combinations import find_impossible
from k8s_ucp.topology.rules.keys import (
    find_bad_checks,
    find_bad_clusters,
    find_bad_credentials,
    find_bad_databases,
    find_bad_mirrors,
)
from k8s_ucp.topology.rules.names import find_bad_names, find_credentials_in_urls
from k8s_ucp.topology.rules.references import find_bad_promotions, find_dangling
from k8s_ucp.topology.rules.teams import find_bad_teams

if TYPE_CHECKING:
    from k8s_ucp.topology.model import Topology
    from k8s_ucp.topology.parts import Git


def find_problems(topology: Topology) -> list[Problem]:
    """Problems between values: duplicates, references, lengths, combinations."""
    spec = topology.spec
    return [
        *_duplicates("environments", [each.name for each in spec.environments]),
        *_duplicates("apps", [each.name for each in spec.apps]),
        *_duplicates("databases", [each.name for each in spec.databases]),
        *_duplicates("mirrors", [each.name for each in spec.mirrors]),
        *_duplicates("teams", [each.name for each in spec.teams]),
        *find_bad_promotions(spec.environments),
        *find_bad_names(topology),
        *find_credentials_in_urls(spec),
        *find_bad_apps(spec),
        *find_dangling(spec),
        *find_bad_mirrors(spec),
        *find_bad_databases(spec),
        *find_bad_clusters(spec),
        *find_bad_credentials(spec),
        *find_cloud_problems(spec, topology.name),
        *_git_problems(spec.git),
        *find_bad_checks(spec.checks),
        *find_bad_teams(spec, topology.name),
        *find_impossible(topology),
    ]


def _duplicates(key: str, names: list[str]) -> Iterator[Problem]:
    seen = set()
    for index, name in enumerate(names):
        if name in seen:
            yield Problem(("spec", key, index, "name"), f"duplicate name '{name}' in {key}")
        seen.add(name)


def _git_problems(git: Git) -> Iterator[Problem]:
    for key, url in (("core", git.core), ("apps", git.apps)):
        at: Loc = ("spec", "git", key)
        if git.provider == "url" and not url:
            yield Problem(
                ("spec", "git"), f"git provider 'url' requires the key '{key}' with a URL"
            )
        if git.provider == "local" and url:
            yield Problem(
                at, f"git provider 'local' does not allow the key '{key}': set provider: url"
            )
    if git.provider == "url" and git.core and git.core == git.apps:
        yield Problem(("spec", "git", "apps"), "core and apps must be different repositories")
