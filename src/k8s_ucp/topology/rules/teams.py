"""Rules about teams: collisions of their namespaces, claims and repositories. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from k8s_ucp.topology.problems import Loc, Problem

if TYPE_CHECKING:
    from k8s_ucp.topology.model import Spec
    from k8s_ucp.topology.parts import Team


def find_bad_teams(spec: Spec, topology: str) -> Iterator[Problem]:
    """Collisions of a team with anything else, on a cluster or in a cloud."""
    used: dict[str | None, str] = {spec.git.core: "core", spec.git.apps: "apps"}
    for index, team in enumerate(spec.teams):
        at: Loc = ("spec", "teams", index, "name")
        yield from (Problem(at, each) for each in _collisions(spec, team, topology))
        if team.repo is None and spec.git.provider == "url":
            message = f"the team {team.name} requires the key 'repo', as git.provider is 'url'"
            yield Problem(("spec", "teams", index), message)
        elif team.repo is not None:
            other = used.setdefault(team.repo, f"the team {team.name}")
            if other != f"the team {team.name}":
                message = f"the repository of the team {team.name} is also used by {other}"
                yield Problem(("spec", "teams", index, "repo"), message)


def _collisions(spec: Spec, team: Team, topology: str) -> Iterator[str]:
    namespace, start = team.namespace, f"{team.name}-"
    for app in spec.apps:
        if namespace in (app.home, *app.namespaces):
            yield f"the namespace {namespace} of the team {team.name} is used by the app {app.name}"
    if namespace in spec.reconciler.source_namespaces:
        yield f"the namespace {namespace} of the team {team.name} can't be a source namespace"
    if namespace in {each.name for each in spec.mirrors}:
        yield f"the mirror {namespace} has the name of the mirror of the team {team.name}"
    # The name of a claim is also its name in the cloud, and begins with the team's name.
    for each in (other.name for other in spec.teams):
        if each.startswith(start):
            yield f"claims of the teams {team.name} and {each} could have the same names"
    for each in (database.name for database in spec.databases):
        if f"{each}-".startswith(start):
            yield f"claims of the team {team.name} could have the name of the database {each}"
    if f"{topology}-".startswith(start):
        yield f"claims of the team {team.name} could have the name of a cluster of {topology}"
