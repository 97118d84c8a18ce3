"""Reads and writes dotted paths of declarations: `vpcConfig.subnetIds`, `Vpcs.0`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def at_path(item: Any, path: str) -> Any:
    """The value at a path; None if there is none."""
    for part in path.split(".") if path else ():
        if isinstance(item, list):
            item = item[int(part)] if part.isdigit() and int(part) < len(item) else None
        else:
            item = item.get(part) if isinstance(item, Mapping) else None
    return item


def put_path(item: dict[str, Any], path: str, value: Any) -> None:
    """Set a value at a path; a part with the suffix `[]` is a list with one item."""
    *way, last = path.split(".")
    for part in way:
        if part.endswith("[]"):
            listed = item.setdefault(part[:-2], [{}])
            item = listed[0]
        else:
            item = item.setdefault(part, {})
    item[last] = value
