"""What a topology file may say one day and nothing obeys yet: refused, not ignored. Pure.

Whoever builds something deletes its line, and runs `make schema`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from k8s_ucp.topology_problems import Loc, Problem, place, shown

KEYS = frozenset(
    [
        "spec.core.context",
        "spec.core.region",
        "spec.core.size",
        "spec.git.auth",
        "spec.crossplane.version",
        "spec.argocd",
    ]
)
"""Keys, by path."""

VALUES = {
    "spec.core.provider=gke": "embedded",
    "spec.core.provider=existing": "embedded",
}
"""Values, by path: the nearest that works."""


def refusal(path: str, value: object) -> str | None:
    """Why a value is refused, by a path without indexes; None where it works."""
    near = VALUES.get(f"{path}={value}")
    if near is None:
        return None
    key = path.rsplit(".", 1)[-1]
    return f"{key}: {value} is not built yet; the nearest that works today is {key}: {near}"


def find_not_built(part: BaseModel, at: Loc = ()) -> Iterator[Problem]:
    """Everything that a file says and nothing obeys."""
    for name in sorted(part.model_fields_set & type(part).model_fields.keys()):
        key = type(part).model_fields[name].alias or name
        here = (*at, key)
        if place(here) in KEYS:
            words = f"the key '{key}' in {shown(at)} is not built yet: remove it"
            yield Problem(here, words, on_key=True)
            continue
        yield from _inside(getattr(part, name), here)


def _inside(value: Any, at: Loc) -> Iterator[Problem]:
    if isinstance(value, BaseModel):
        yield from find_not_built(value, at)
    elif isinstance(value, tuple):
        for index, each in enumerate(value):
            yield from _inside(each, (*at, index))
    elif isinstance(value, str) and (words := refusal(place(at), value)):
        yield Problem(at, f"{shown(at)}: {words}")
