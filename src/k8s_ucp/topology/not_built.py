"""What a topology file may say one day and nothing obeys yet: refused, not ignored. Pure.

Whoever builds something deletes its line, and runs `make schema`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from k8s_ucp.topology.problems import Loc, Problem, place, shown

KEYS = frozenset(
    [
        "spec.git.auth",
        "spec.crossplane.version",
        "spec.argocd",
    ]
)
"""Keys, by path."""


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
