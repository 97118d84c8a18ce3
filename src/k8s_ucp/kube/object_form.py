"""The form that objects of every kind have. Servers of others may send anything in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_object(found: Any) -> bool:
    """Whether it is an object with a name."""
    return _has_metadata(found) and isinstance(found["metadata"].get("name"), str)


def is_list(found: Any) -> bool:
    """Whether it is a list of objects."""
    return (
        isinstance(found, dict)
        and isinstance(found.get("metadata"), dict)
        and isinstance(found.get("items"), list)
        and all(map(is_object, found["items"]))
    )


def is_event(found: Any) -> bool:
    """Whether it is an event of a watch; those that end it or set a bookmark have no name."""
    return (
        isinstance(found, dict)
        and isinstance(found.get("type"), str)
        and (found["type"] in _UNNAMED or is_object(found.get("object")))
        and _has_metadata(found.get("object"))
    )


def _has_metadata(found: Any) -> bool:
    return (
        isinstance(found, dict)
        and _is_text(found.get("apiVersion"))
        and _is_text(found.get("kind"))
        and isinstance(metadata := found.get("metadata"), dict)
        and _fits(metadata)
    )


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _fits(metadata: Mapping[str, Any]) -> bool:
    # One loop instead of a function for each field, since lists may have thousands of objects.
    for name, value in metadata.items():
        kind = _METADATA.get(name)
        if kind is None or value is None:
            continue
        if not isinstance(value, kind):
            return False
        if kind is dict:
            if not all(map(_is_text, value.values())):
                return False
        elif kind is list:
            part = _PARTS[name]
            for each in value:
                if not isinstance(each, part):
                    return False
    return True


_UNNAMED = ("BOOKMARK", "ERROR")
_METADATA: Mapping[str, type[Any]] = {
    "namespace": str,
    "uid": str,
    "resourceVersion": str,
    "creationTimestamp": str,
    "deletionTimestamp": str,
    "labels": dict,
    "annotations": dict,
    "finalizers": list,
    "ownerReferences": list,
    "managedFields": list,
}
"""Fields of the metadata that are read here, each of which may be missing."""
_PARTS: Mapping[str, type[Any]] = {
    "finalizers": str,
    "ownerReferences": dict,
    "managedFields": dict,
}
