"""Rules between the values of a topology: duplicates, references, lengths, git URLs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from k8s_ucp.topology_clouds import find_cloud_problems
from k8s_ucp.topology_combinations import find_impossible
from k8s_ucp.topology_problems import Loc, Problem
from k8s_ucp.topology_references import (
    find_bad_apps,
    find_bad_clusters,
    find_bad_credentials,
    find_dangling,
)

if TYPE_CHECKING:
    from k8s_ucp.topology import Environment, Git, Topology

NAME_LENGTH = 63
"""Longest RFC 1123 label: `<topology>-<environment>` is one, and a label value."""


def find_problems(topology: Topology) -> list[Problem]:
    """What no single value shows: duplicates, references, lengths, combinations."""
    spec = topology.spec
    return [
        *_duplicates("environments", [each.name for each in spec.environments]),
        *_duplicates("apps", [each.name for each in spec.apps]),
        *_duplicates("databases", [each.name for each in spec.databases]),
        *_duplicates("mirrors", [each.name for each in spec.mirrors]),
        *_bad_references(spec.environments),
        *_bad_names(topology),
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


def _bad_names(topology: Topology) -> Iterator[Problem]:
    spec = topology.spec
    for place, each in enumerate(spec.environments):
        at: Loc = ("spec", "environments", place, "name")
        if each.name == "core":
            yield Problem(at, "an environment can't be called 'core': the core cluster is")
        cluster = topology.app_cluster(each.name)
        if len(cluster) > NAME_LENGTH:
            yield Problem(at, _too_long(cluster))
        for app in spec.apps:
            if len(f"{app.name}-{each.name}") > NAME_LENGTH:
                yield Problem(at, _too_long(f"{app.name}-{each.name}"))
    for place, app in enumerate(spec.apps):
        if app.name == "default" or app.name.startswith("kube-"):
            yield Problem(
                ("spec", "apps", place, "name"),
                f"an app can't be called '{app.name}': its namespace would be one of Kubernetes",
            )


def _too_long(name: str) -> str:
    return f"'{name}' would be {len(name)} characters long, {NAME_LENGTH} are allowed"


def _git_problems(git: Git) -> Iterator[Problem]:
    for key, url in (("core", git.core), ("apps", git.apps)):
        at: Loc = ("spec", "git", key)
        if git.provider == "url" and not url:
            yield Problem(("spec", "git"), f"git provider 'url' needs the key '{key}' with a URL")
        if git.provider == "local" and url:
            yield Problem(at, f"git provider 'local' takes no '{key}': set provider: url")
        if url and _holds_credential(url):
            yield Problem(
                at,
                f"the URL in '{key}' holds a user or password, and this file is committed: "
                "give the token in the variable UCP_GIT_TOKEN",
            )
    if git.provider == "url" and git.core and git.core == git.apps:
        yield Problem(("spec", "git", "apps"), "core and apps must be two repositories")


def _holds_credential(url: str) -> bool:
    """Over http(s) whatever stands before the host is a password or a token."""
    try:
        parts = urlsplit(url)
        return bool(parts.password) or (parts.scheme in ("http", "https") and "@" in parts.netloc)
    except ValueError:
        return False
