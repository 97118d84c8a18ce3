"""Validates fields of Kubernetes' built-in kinds against the pinned API server. Pure.

`make kinds` generates the table from the OpenAPI documents of that API server. Objects of other
kinds are not validated.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from k8s_ucp.gitops.check.findings import Fault, invalid_field
from k8s_ucp.gitops.manifests.yaml_text import part

TABLE = Path(__file__).with_name("kinds.json")

_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "quantity": "a quantity such as 100m or 64Mi",
    "either": "a number or text",
}
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "quantity": (str, int, float),
    "either": (str, int),
}


_REMOVED = frozenset(["auditregistration.k8s.io", "extensions", "settings.k8s.io"])
"""API groups of earlier versions of Kubernetes, of which none of the kinds is left."""


@functools.cache
def _table() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(TABLE.read_text("utf-8"))
    return found


def version() -> str:
    """The Kubernetes version of the table."""
    return str(_table()["version"])


def find_misfits(item: Mapping[str, Any]) -> Iterator[Fault]:
    """Invalid, unknown and missing fields of an object."""
    table = _table()
    name = f"{item.get('apiVersion')}/{item.get('kind')}"
    missing = next((each for each in ("kind", "apiVersion") if not item.get(each)), None)
    if missing:
        message = f"{missing} is missing; each item of a list needs its own"
        yield Fault("kind-unknown", message, field="kind")
    elif name in table["kinds"]:
        yield from _misfits(item, f"#{table['kinds'][name]}", "")
    elif _is_group_of_kubernetes(str(item.get("apiVersion"))):
        message = f"Kubernetes {version()} has no {item.get('apiVersion')} {item.get('kind')}"
        yield Fault("kind-unknown", message, field="kind")


_OF_SOPS = (
    ": SOPS encrypts this object, and Argo CD doesn't decrypt it; create it on the clusters "
    "instead (`fromOutside` of the app), or use a SealedSecret or an ExternalSecret"
)


def foreign_kinds(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """`Kind.group` of custom resources for which the objects contain no definition (CRD)."""
    known = [*objects]
    versions = ((str(each.get("apiVersion")), each.get("kind")) for each in known)
    found = {
        f"{kind}.{version.partition('/')[0]}"
        for version, kind in versions
        if not _is_group_of_kubernetes(version)
    }
    return sorted(found - declared_kinds(known))


def is_custom_resource(item: Mapping[str, Any]) -> bool:
    """Whether an object's kind is none of Kubernetes' own."""
    return not _is_group_of_kubernetes(str(item.get("apiVersion")))


def declared_kinds(objects: Iterable[Mapping[str, Any]]) -> set[str]:
    """`Kind.group` of the custom resources that the objects define (CRDs)."""
    specs = [
        part(each, "spec") for each in objects if each.get("kind") == "CustomResourceDefinition"
    ]
    return {f"{part(each, 'names').get('kind')}.{each.get('group')}" for each in specs}


def _is_group_of_kubernetes(api_version: str) -> bool:
    group = api_version.partition("/")[0] if "/" in api_version else ""
    return group in _groups()


@functools.cache
def _groups() -> frozenset[str]:
    parts = [each.split("/") for each in _table()["kinds"]]
    return _REMOVED | {each[0] if len(each) == 3 else "" for each in parts}


def _misfits(value: Any, takes: str, path: str) -> Iterator[Fault]:
    if value is None or takes == "any":
        return
    if takes[0] == "#":
        yield from _object(value, _table()["types"][takes[1:]], path)
    elif takes[0] == "[":
        if not isinstance(value, list):
            yield invalid_field(path, f"{path} must be a list")
            return
        for index, each in enumerate(value):
            yield from _misfits(each, takes[1:], f"{path}[{index}]")
    elif takes[0] == "{":
        if not isinstance(value, dict):
            yield invalid_field(path, f"{path} must be a mapping")
            return
        for key, each in value.items():
            yield from _misfits(each, takes[1:], f"{path}.{key}")
    elif takes[0] == "=":
        allowed = takes[1:].split("|")
        if str(value) not in allowed and value != "":
            yield invalid_field(path, f"{path} must be one of {', '.join(allowed)}")
    elif takes == "integer" and isinstance(value, float) and value.is_integer():
        # Go prints such numbers as `1e+06`, but sends 1000000 to the API server.
        return
    elif not isinstance(value, _TYPES[takes]) or (isinstance(value, bool) and takes != "boolean"):
        yield invalid_field(path, f"{path} must be {_WORDS[takes]}, not {value!r:.60}")


def _object(value: Any, fields: Mapping[str, str], path: str) -> Iterator[Fault]:
    if not fields:
        return
    if not isinstance(value, dict):
        yield invalid_field(path, f"{path or 'the object'} must be a mapping")
        return
    for key, takes in fields.items():
        if takes[0] == "!" and value.get(key) is None and path != ".status":
            yield invalid_field(path, f"{path}.{key} is missing".removeprefix("."))
    for key, each in value.items():
        here = f"{path}.{key}".removeprefix(".")
        if key not in fields:
            message = _OF_SOPS if here == "sops" and part(value, here).get("mac") else ""
            yield Fault("field-unknown", f"unknown field {here}{message}", field=here)
        else:
            yield from _misfits(each, fields[key].removeprefix("!"), here)
