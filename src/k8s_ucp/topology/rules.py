"""Rules between the values of a topology: duplicates, references, lengths, git URLs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from k8s_ucp.topology.clouds import find_cloud_problems
from k8s_ucp.topology.combinations import find_impossible
from k8s_ucp.topology.names import find_bad_names, find_credentials_in_urls
from k8s_ucp.topology.problems import Loc, Problem
from k8s_ucp.topology.references import (
    find_bad_apps,
    find_bad_clusters,
    find_bad_credentials,
    find_dangling,
)

if TYPE_CHECKING:
    from k8s_ucp.topology.file import Topology
    from k8s_ucp.topology.parts import Environment, Git


def find_problems(topology: Topology) -> list[Problem]:
    """What no single value shows: duplicates, references, lengths, combinations."""
    spec = topology.spec
    return [
        *_duplicates("environments", [each.name for each in spec.environments]),
        *_duplicates("apps", [each.name for each in spec.apps]),
        *_duplicates("databases", [each.name for each in spec.databases]),
        *_duplicates("mirrors", [each.name for each in spec.mirrors]),
        *_bad_references(spec.environments),
        *find_bad_names(topology),
        *find_credentials_in_urls(spec),
        *find_bad_apps(spec),
        *find_dangling(spec),
        *find_bad_clusters(spec),
        *find_bad_credentials(spec),
        *find_cloud_problems(spec, topology.name),
        *_git_problems(spec.git),
        *find_impossible(topology),
    ]


def _duplicates(key: str, names: list[str]) -> Iterator[Problem]:
    counts = Counter(names)
    for place, name in enumerate(names):
        if counts[name] > 1 and name in names[:place]:
            yield Problem(
                ("spec", key, place, "name"), f"the name '{name}' is there twice in {key}"
            )


def _bad_references(environments: tuple[Environment, ...]) -> Iterator[Problem]:
    sources = {each.name: each.promotes_from for each in environments}
    for place, each in enumerate(environments):
        at: Loc = ("spec", "environments", place, "promotesFrom")
        if each.promotes_from is None:
            continue
        if each.promotes_from not in sources:
            known = ", ".join(name for name in sources if name != each.name) or "none"
            yield Problem(
                at,
                f"promotesFrom of '{each.name}' names '{each.promotes_from}', "
                f"which is no environment; others here: {known}",
            )
        elif cycle := _cycle(each.name, sources):
            yield Problem(at, f"promotesFrom goes in a circle: {' <- '.join(cycle)}")


def _cycle(start: str, sources: dict[str, str | None]) -> list[str]:
    """The circle that an environment is part of, empty when it is in none."""
    seen = [start]
    following = sources.get(start)
    while following is not None and following not in seen:
        seen.append(following)
        following = sources.get(following)
    return [*seen, start] if following == start else []


def _git_problems(git: Git) -> Iterator[Problem]:
    for key, url in (("core", git.core), ("apps", git.apps)):
        at: Loc = ("spec", "git", key)
        if git.provider == "url" and not url:
            yield Problem(("spec", "git"), f"git provider 'url' needs the key '{key}' with a URL")
        if git.provider == "local" and url:
            yield Problem(at, f"git provider 'local' takes no '{key}': set provider: url")
    if git.provider == "url" and git.core and git.core == git.apps:
        yield Problem(("spec", "git", "apps"), "core and apps must be two repositories")
