"""Rules about names that must exist: of environments and databases. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from k8s_ucp.topology.problems import Loc, Problem, hint, shown, some

if TYPE_CHECKING:
    from k8s_ucp.topology.model import Spec
    from k8s_ucp.topology.parts import Environment

_SHOWN = 10
"""Most environments shown of a cycle."""


def find_bad_promotions(environments: tuple[Environment, ...]) -> Iterator[Problem]:
    """`promotesFrom` that names no other environment, or leads back to itself."""
    sources = {each.name: each.promotes_from for each in environments}
    indexes = {each.name: index for index, each in enumerate(environments)}
    for index, each in enumerate(environments):
        if each.promotes_from is not None and each.promotes_from not in sources:
            known = some(name for name in sources if name != each.name)
            yield Problem(
                ("spec", "environments", index, "promotesFrom"),
                f"promotesFrom of '{each.name}': unknown environment "
                f"'{each.promotes_from}'; available: {known}",
            )
    if len(sources) < len(environments):
        return  # a duplicate name, which is reported, can look like a cycle
    for cycle in _cycles(sources):
        yield Problem(
            ("spec", "environments", indexes[cycle[0]], "promotesFrom"),
            f"promotesFrom has a cycle: {_way_round(cycle)}",
        )


def _cycles(sources: dict[str, str | None]) -> Iterator[list[str]]:
    """Each cycle once, beginning with its first environment. Visits each environment once."""
    walked: set[str] = set()
    order = {name: index for index, name in enumerate(sources)}
    for start in sources:
        way: dict[str, None] = {}
        name: str | None = start
        while name is not None and name in sources and name not in walked:
            walked.add(name)
            way[name] = None
            name = sources[name]
        if name in way:
            members = list(way)[list(way).index(name) :]
            first = min(range(len(members)), key=lambda index: order[members[index]])
            yield members[first:] + members[:first]


def _way_round(cycle: list[str]) -> str:
    shown = cycle if len(cycle) <= _SHOWN else [*cycle[:_SHOWN], f"({len(cycle) - _SHOWN} more)"]
    return " <- ".join([*shown, cycle[0]])


def find_dangling(spec: Spec) -> Iterator[Problem]:
    """Names of environments and databases that don't exist."""
    environments = dict.fromkeys(each.name for each in spec.environments)
    yield from _dangling_in_apps(spec, environments)
    for index, database in enumerate(spec.databases):
        at: Loc = ("spec", "databases", index, "environments")
        yield from _unknown(at, database.environments, environments)
    for index, mirror in enumerate(spec.mirrors):
        at = ("spec", "mirrors", index, "targets", "environments")
        yield from _unknown(at, mirror.targets.environments, environments)
    for name in spec.guard_rails.__pydantic_extra__ or {}:
        if name not in environments:
            yield _dangling(("spec", "guardRails", name), name, "environment", environments)


def _dangling_in_apps(spec: Spec, environments: Collection[str]) -> Iterator[Problem]:
    databases = {each.name: frozenset(each.environments or environments) for each in spec.databases}
    missing_in = {
        name: [each for each in environments if each not in environments_of]
        for name, environments_of in databases.items()
    }
    for index, app in enumerate(spec.apps):
        for key in ("values", "overlays"):
            here: Loc = ("spec", "apps", index, key)
            for name in getattr(app, key):
                if name not in environments:
                    yield _dangling((*here, name), name, "environment", environments)
        at: Loc = ("spec", "apps", index, "database")
        if app.database is None:
            continue
        if app.database not in databases:
            yield _dangling(at, app.database, "database", databases)
        elif missing := missing_in[app.database]:
            yield Problem(
                at,
                f"the app {app.name} runs on {some(missing)}, where the database "
                f"{app.database} does not exist: add it to the database's environments",
            )


def _unknown(at: Loc, names: Iterable[str], known: Collection[str]) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name not in known:
            yield _dangling((*at, index), name, "environment", known)


def _dangling(at: Loc, name: str, what: str, known: Iterable[str]) -> Problem:
    near = hint(name, known)
    return Problem(at, f"{shown(at)}: unknown {what} '{name}': {near}available: {some(known)}")
