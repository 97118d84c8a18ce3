"""Differences between a managed resource and its resource in the cloud. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_REFERENCES = ("Ref", "Refs", "Selector")
"""Suffixes of fields that refer to other objects: the fields that they resolve to are compared."""


def differences(item: Mapping[str, Any]) -> list[str]:
    """`field: declared X, the cloud has Y` for each field that the cloud reports differently."""
    declared = (item.get("spec") or {}).get("forProvider") or {}
    at_provider = (item.get("status") or {}).get("atProvider") or {}
    return list(_between(declared, at_provider))


def _between(
    declared: Mapping[str, Any], at_provider: Mapping[str, Any], at: str = ""
) -> Iterator[str]:
    for name, value in declared.items():
        other = at_provider.get(name)
        if name.endswith(_REFERENCES) or other is None or value is None:
            continue
        if isinstance(value, Mapping) and isinstance(other, Mapping):
            yield from _between(value, other, f"{at}{name}.")
        elif (one := _plain(value)) is not None and (two := _plain(other)) not in (None, one):
            yield f"{at}{name}: declared {', '.join(one)}, the cloud has {', '.join(two or ())}"


def _plain(value: Any) -> list[str] | None:
    """The values as sorted texts, so that order doesn't matter; None: nested, not compared."""
    values = value if isinstance(value, list) else [value]
    if any(isinstance(each, list | Mapping) for each in values):
        return None
    return sorted(str(each).lower() if isinstance(each, bool) else str(each) for each in values)
