"""Reads records that ucp wrote as JSON: a person may have edited them, or a disk damaged them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

_LARGEST = 2**63
"""Larger numbers are in no record, and fit into no call of the system."""

T = TypeVar("T")


def parse_json(text: str | bytes) -> Any:
    """The content of a JSON text. Raises ValueError, also if it is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def record_of(kind: type[T], found: Any) -> T:
    """The dataclass with these fields. Raises ValueError if one is missing or has another type."""
    if not isinstance(found, dict):
        raise ValueError("it is not an object")
    hints = get_type_hints(kind)
    for each in fields(kind):  # type: ignore[arg-type]
        if each.name in found and not _fits(found[each.name], hints[each.name]):
            raise ValueError(f"{each.name} has a wrong type")
    try:
        return kind(**found)
    except TypeError as error:
        raise ValueError(str(error)) from None


def _fits(value: Any, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is None:
        return _is_plain(value, hint)
    if origin is Mapping:
        return isinstance(value, dict) and all(
            _fits(key, parts[0]) and _fits(each, parts[1]) for key, each in value.items()
        )
    if isinstance(origin, type) and issubclass(origin, tuple | list | Sequence):
        return isinstance(value, list | tuple) and all(_fits(each, parts[0]) for each in value)
    return any(_fits(value, each) for each in parts)


def _is_plain(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    if hint in (int, float):
        number = isinstance(value, int if hint is int else int | float)
        return number and not isinstance(value, bool) and abs(value) < _LARGEST
    if hint is str:
        return isinstance(value, str) and _is_encodable(value)
    return isinstance(value, hint)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
