"""The CRD that Crossplane generates for a CompositeResourceDefinition. Pure.

If it exists before Crossplane starts, the API server need not add it later, among others.
https://github.com/crossplane/crossplane-runtime, pkg/xcrd
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]

NAME_LENGTH = 63
"""Maximum length of a composite's name, because it is the value of a label."""
_CROSSPLANE = ".spec.crossplane"
_CONDITION = ".status.conditions[?(@.type=='{}')].status"
_COLUMNS = (
    {"name": "SYNCED", "type": "string", "jsonPath": _CONDITION.format("Synced")},
    {"name": "READY", "type": "string", "jsonPath": _CONDITION.format("Ready")},
    {
        "name": "COMPOSITION",
        "type": "string",
        "jsonPath": f"{_CROSSPLANE}.compositionRef.name",
    },
    {
        "name": "COMPOSITIONREVISION",
        "type": "string",
        "jsonPath": f"{_CROSSPLANE}.compositionRevisionRef.name",
        "priority": 1,
    },
    {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
)


def composite_kind(definition: Mapping[str, Any]) -> Object:
    """The CustomResourceDefinition of a namespaced v2 definition.

    If Crossplane would generate it differently, it updates it later, as the controller of the kind.
    """
    spec = definition["spec"]
    names = spec["names"]
    kind, policy = names["kind"], spec.get("defaultCompositionUpdatePolicy", "Automatic")
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": definition["metadata"]["name"]},
        "spec": {
            "group": spec["group"],
            "scope": "Namespaced",
            "names": {
                "listKind": f"{kind}List",
                "singular": kind.lower(),
                **names,
                "categories": [*names.get("categories", ()), "composite"],
            },
            "conversion": {"strategy": "None"},
            "versions": [_version(each, policy) for each in spec["versions"]],
        },
    }


def _version(given: Mapping[str, Any], policy: str) -> Object:
    return {
        "name": given["name"],
        "served": given["served"],
        "storage": given["referenceable"],
        "additionalPrinterColumns": [
            *given.get("additionalPrinterColumns", ()),
            *copy.deepcopy(_COLUMNS),
        ],
        "schema": {"openAPIV3Schema": _schema(given["schema"]["openAPIV3Schema"], policy)},
        "subresources": {"status": {}},
    }


def _schema(given: Mapping[str, Any], policy: str) -> Object:
    properties = given.get("properties") or {}
    spec, status = properties.get("spec") or {}, properties.get("status") or {}
    name = {"type": "string", "maxLength": NAME_LENGTH}
    return {
        **_taken(given, "description", "x-kubernetes-validations"),
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": name}},
            "spec": {
                **_taken(
                    spec,
                    *("description", "required", "oneOf"),
                    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"),
                ),
                "type": "object",
                "properties": {**(spec.get("properties") or {}), "crossplane": _machinery(policy)},
            },
            "status": {
                **_taken(status, "description", "required", "oneOf", "x-kubernetes-validations"),
                "type": "object",
                "properties": {**(status.get("properties") or {}), "conditions": _conditions()},
            },
        },
    }


def _taken(given: Mapping[str, Any], *fields: str) -> Object:
    return {field: given[field] for field in fields if field in given}


def _machinery(policy: str) -> Object:
    """The fields that configure composition. policy: for new revisions of a Composition."""
    text = {"type": "string"}
    policies = {"type": "string", "enum": ["Automatic", "Manual"], "default": policy}
    labels = {"matchLabels": {"type": "object", "additionalProperties": text}}
    resource = {
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": dict.fromkeys(("apiVersion", "kind", "name"), text),
    }
    return {
        "type": "object",
        "description": "Configures how Crossplane will reconcile this composite resource",
        "properties": {
            "compositionRef": _fields({"name": text}),
            "compositionSelector": _fields(labels),
            "compositionRevisionRef": _fields({"name": text}),
            "compositionRevisionSelector": _fields(labels),
            "compositionUpdatePolicy": policies,
            "resourceRefs": {
                "type": "array",
                "items": resource,
                "x-kubernetes-list-type": "atomic",
            },
        },
    }


def _conditions() -> Object:
    text = {"type": "string"}
    required = ["lastTransitionTime", "reason", "status", "type"]
    others = {
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": {"type": "integer", "format": "int64"},
    }
    texts = dict.fromkeys(("message", "reason", "status", "type"), text)
    return {
        "description": "Conditions of the resource.",
        "type": "array",
        "x-kubernetes-list-map-keys": ["type"],
        "x-kubernetes-list-type": "map",
        "items": {"type": "object", "required": required, "properties": {**others, **texts}},
    }


def _fields(properties: Object) -> Object:
    return {"type": "object", "required": list(properties), "properties": properties}
