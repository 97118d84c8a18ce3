"""Field paths in Compositions: `spec.items[0].labels["example.org/name"]`. Pure."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Mapping
from typing import Any

from k8s_ucp.compositions.function import CompositionError

Segment = str | int

_SEGMENT = re.compile(
    r"""\.?(?P<name>[^.\[\]"']+)|\[(?P<index>\d+)\]|\[(?P<q>["']?)(?P<key>[^\]"']+)(?P=q)\]"""
)
_MOST_ITEMS = 1024
"""A larger index is a mistake: the list up to it would be created."""


class FieldMissing(Exception):
    """There is no value at a path, which often isn't an error."""


def parse(path: str) -> list[Segment]:
    """Parse a path. Raises CompositionError if it is not supported."""
    found: list[Segment] = []
    at = 0
    while at < len(path):
        match = _SEGMENT.match(path, at)
        if not match or (at == 0 and path.startswith(".")) or match["key"] == "*":
            raise CompositionError(f"field path {path!r} is not supported")
        index = match["index"]
        found.append(int(index) if index else match["name"] or match["key"])
        at = match.end()
    if not found or any(isinstance(each, int) and each >= _MOST_ITEMS for each in found):
        raise CompositionError(f"field path {path!r} is not supported")
    return found


def get(item: Any, path: str) -> Any:
    """The value at a path. Raises FieldMissing if there is none."""
    for segment in parse(path):
        if isinstance(segment, int):
            if not isinstance(item, list) or segment >= len(item):
                raise FieldMissing(path)
            item = item[segment]
        elif isinstance(item, Mapping) and segment in item:
            item = item[segment]
        else:
            raise FieldMissing(path)
    return item


def put(item: dict[str, Any], path: str, value: Any, policy: str = "Replace") -> None:
    """Set the value at a path; creates missing objects and lists on the way."""
    segments = parse(path)
    last = segments[-1]
    here: Any = item
    for segment, after in itertools.pairwise(segments):
        here = _step(here, segment, path, [] if isinstance(after, int) else {})
    old = _step(here, last, path, None)
    here[last] = copy.deepcopy(value) if policy == "Replace" else _merged(old, value, policy)


def _step(here: Any, segment: Segment, path: str, missing: Any) -> Any:
    """The value at a segment; if there is none, `missing` is inserted."""
    if isinstance(segment, int):
        if not isinstance(here, list):
            raise CompositionError(f"{path!r}: there is no list before [{segment}]")
        here += [None] * (segment + 1 - len(here))
        if here[segment] is None:
            here[segment] = missing
    elif not isinstance(here, dict):
        raise CompositionError(f"{path!r}: there is no object that has {segment!r}")
    elif here.get(segment) is None:
        here[segment] = missing
    return here[segment]


_POLICIES = {
    # (existing values are replaced, lists are joined)
    "MergeObjects": (False, False),
    "MergeObject": (False, False),
    "MergeObjectsAppendArrays": (False, True),
    "ForceMergeObjects": (True, False),
    "ForceMergeObjectsAppendArrays": (True, True),
    "AppendArray": (True, True),
}


def _merged(old: Any, new: Any, policy: str) -> Any:
    if policy not in _POLICIES:
        raise CompositionError(f"policy toFieldPath {policy!r} is not supported")
    force, append = _POLICIES[policy]
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        both = {key: _merged(old.get(key), value, policy) for key, value in new.items()}
        return {**copy.deepcopy(old), **both}
    if isinstance(old, list) and isinstance(new, list):
        return copy.deepcopy(old + new if append else new)
    return copy.deepcopy(new if force or old is None else old)
