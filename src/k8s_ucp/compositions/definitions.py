"""Finds a claim's CompositeResourceDefinition and Composition, and validates it. Pure.

The API server validates claims by the same schema; CEL rules are left to it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k8s_ucp.compositions.function import CompositionError, Object
from k8s_ucp.compositions.go_regexp import search
from k8s_ucp.errors import UsageError, some_of

_API = "apiextensions.crossplane.io/"
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def _fields(required: Sequence[str] = (), /, **known: Any) -> dict[str, Any]:
    """Schema of an object with these fields, and any others."""
    return {
        "type": "object",
        "required": required,
        "properties": {
            name: schema if name in required else _optional(schema)
            for name, schema in known.items()
        },
        "x-kubernetes-preserve-unknown-fields": True,
    }


def _optional(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {**schema, "nullable": True}


_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_METADATA = _fields(name=_TEXT, namespace=_TEXT, labels=_TEXTS, annotations=_TEXTS)
_CROSSPLANE = _fields(
    compositionRef=_fields(name=_TEXT), compositionSelector=_fields(matchLabels=_TEXTS)
)
"""Field that Crossplane adds to the spec of every kind."""

_NUMBER = {"type": "number"}
_SCHEMA = _fields(
    type=_TEXT,
    required={"type": "array", "items": _TEXT},
    enum={"type": "array"},
    pattern=_TEXT,
    maxLength=_NUMBER,
    minimum=_NUMBER,
    maximum=_NUMBER,
)
_SCHEMA["properties"] |= {
    "properties": _optional({"type": "object", "additionalProperties": _SCHEMA}),
    "items": _optional(_SCHEMA),
}
_NAMED = {**_METADATA, "required": ["name"]}
_VERSION = _fields(
    ["name", "schema"],
    name=_TEXT,
    schema=_fields(["openAPIV3Schema"], openAPIV3Schema=_SCHEMA),
)
_STEP = _fields(
    ["step", "functionRef"],
    step=_TEXT,
    functionRef=_fields(["name"], name=_TEXT),
    input=_fields(),
)
_OWN_KINDS = {
    "CompositeResourceDefinition": _fields(
        ["metadata", "spec"],
        metadata=_NAMED,
        spec=_fields(
            ["group", "names", "versions"],
            group=_TEXT,
            names=_fields(["kind"], kind=_TEXT),
            versions={"type": "array", "items": _VERSION},
        ),
    ),
    "Composition": _fields(
        ["metadata", "spec"],
        metadata=_NAMED,
        spec=_fields(
            ["compositeTypeRef"],
            compositeTypeRef=_fields(),
            pipeline={"type": "array", "items": _STEP},
        ),
    ),
}
"""Schemas of what is read of definitions and Compositions: the fields that are used here."""


@dataclass(frozen=True)
class Definitions:
    """definitions, compositions: objects as in files or in a cluster."""

    definitions: tuple[Object, ...]
    compositions: tuple[Object, ...]

    @classmethod
    def among(cls, objects: Iterable[Object]) -> Definitions:
        """The definitions among objects; the last one of the same name wins. Raises UsageError."""
        found: dict[tuple[str, str], Object] = {}
        for each in objects:
            kind = str(each.get("kind"))
            if str(each.get("apiVersion")).startswith(_API) and kind in _OWN_KINDS:
                _validate(each, each, _OWN_KINDS[kind])
                found[kind, each["metadata"]["name"]] = each
        chosen = [
            tuple(each for (kind, _), each in found.items() if kind == wanted)
            for wanted in _OWN_KINDS
        ]
        return cls(*chosen)

    def complete(self, claim: Object) -> dict[str, Any]:
        """The claim with its kind's defaults. Raises UsageError with all validation errors."""
        schema = self._schema(claim)
        found: dict[str, Any] = _with_defaults(copy.deepcopy(dict(claim)), schema)
        _validate(claim, found, schema)
        found.setdefault("spec", {}).setdefault("crossplane", {})
        return found

    def composition(self, claim: Object) -> Object:
        """The Composition that Crossplane would use. Raises UsageError."""
        of_kind = [
            each
            for each in self.compositions
            if each["spec"]["compositeTypeRef"]
            == {"apiVersion": claim["apiVersion"], "kind": claim["kind"]}
        ]
        chosen = (claim.get("spec") or {}).get("crossplane") or {}
        ref = (chosen.get("compositionRef") or {}).get("name")
        labels = (chosen.get("compositionSelector") or {}).get("matchLabels") or {}
        fitting = [
            each
            for each in of_kind
            if ref in (None, each["metadata"]["name"])
            and labels.items() <= (each["metadata"].get("labels") or {}).items()
        ]
        if len(fitting) == 1:
            return fitting[0]
        known = ", ".join(_described(each) for each in fitting or of_kind) or "none"
        if fitting:
            raise UsageError(
                f"{_title(claim)}: several Compositions are possible: {known}",
                next="select one in spec.crossplane.compositionSelector.matchLabels",
            )
        asked = ref or ", ".join(f"{key}={value}" for key, value in labels.items())
        raise UsageError(
            f"{_title(claim)}: there is no Composition {asked}".rstrip() + f"; available: {known}"
        )

    def _schema(self, claim: Object) -> Mapping[str, Any]:
        group, _, version = str(claim.get("apiVersion")).rpartition("/")
        for definition in self.definitions:
            spec = definition["spec"]
            if (spec["group"], spec["names"]["kind"]) != (group, claim.get("kind")):
                continue
            served = {v["name"]: v for v in spec["versions"] if v.get("served")}
            if version not in served:
                raise UsageError(
                    f"{_title(claim)}: version {version!r} is not served, but {', '.join(served)}"
                )
            schema = served[version]["schema"]["openAPIV3Schema"]
            properties = schema.get("properties") or {}
            own = properties.get("spec") or {"type": "object"}
            fields = {**(own.get("properties") or {}), "crossplane": _optional(_CROSSPLANE)}
            return {
                **schema,
                "properties": {
                    **properties,
                    "spec": {**own, "properties": fields},
                    **{name: {"type": "string"} for name in ("apiVersion", "kind")},
                    "metadata": _optional(_METADATA),
                    "status": _optional(_fields()),
                },
            }
        known = [f"{d['spec']['names']['kind']} of {d['spec']['group']}" for d in self.definitions]
        raise UsageError(
            f"no CompositeResourceDefinition defines {claim.get('kind')} of {group}; "
            f"defined are: {', '.join(known) or 'none'}"
        )


def _validate(given: Object, found: Object, schema: Mapping[str, Any]) -> None:
    """Raise UsageError with all problems. found: the given object, maybe with its defaults."""
    if wrong := list(_problems(found, schema, "")):
        raise UsageError(f"{_title(given)}: {'; '.join(wrong)}")


def _title(item: Object) -> str:
    metadata = item.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    return f"{item.get('kind')} {name}".strip()


def _described(composition: Object) -> str:
    metadata = composition["metadata"]
    labels = ", ".join(f"{key}={value}" for key, value in (metadata.get("labels") or {}).items())
    return f"{metadata['name']} ({labels})" if labels else str(metadata["name"])


def _with_defaults(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        for name, inner in (schema.get("properties") or {}).items():
            if name not in value and inner.get("default") is not None:
                value[name] = copy.deepcopy(inner["default"])
            if name in value:
                value[name] = _with_defaults(value[name], inner)
    elif isinstance(value, list):
        return [_with_defaults(each, schema.get("items") or {}) for each in value]
    return value


def _problems(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if value is None and schema.get("nullable"):
        return
    wanted = schema.get("type", "")
    if wanted and not _is_a(value, wanted):
        yield f"{path} is not of type {wanted}"
        return
    if (allowed := schema.get("enum")) and value not in allowed:
        yield f"{path}: {value!r} is not one of {some_of(allowed, 8)}"
    if isinstance(value, dict):
        yield from _object_problems(value, schema, path)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _problems(each, schema.get("items") or {}, f"{path}[{number}]")
    elif isinstance(value, str):
        if (pattern := schema.get("pattern")) and not _matches(pattern, value):
            yield f"{path}: {value!r} does not match {pattern}"
        if (most := schema.get("maxLength")) is not None and len(value) > most:
            yield f"{path} is longer than {most}"
    elif isinstance(value, int | float):
        if (least := schema.get("minimum")) is not None and value < least:
            yield f"{path}: {value} is less than {least}"
        if (most := schema.get("maximum")) is not None and value > most:
            yield f"{path}: {value} is more than {most}"


def _matches(pattern: str, value: str) -> bool:
    """Whether a value matches; also if Python can't tell, since the API server will."""
    try:
        return search(pattern, value) is not None
    except CompositionError:
        return True


def _object_problems(value: Object, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    properties = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    required: Sequence[str] = schema.get("required") or ()
    for name in required:
        if name not in value:
            yield f"{path}.{name} is required".lstrip(".")
    for name, inner in value.items():
        field = f"{path}.{name}".lstrip(".")
        if name in properties:
            yield from _problems(inner, properties[name], field)
        elif isinstance(more, Mapping):
            yield from _problems(inner, more, field)
        elif not more and not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{field} is not a field; fields are: {some_of(sorted(properties, key=str), 12)}"


def _is_a(value: Any, wanted: str) -> bool:
    if isinstance(value, bool) and wanted != "boolean":
        return False
    return isinstance(value, _TYPES.get(wanted, (object,)))
