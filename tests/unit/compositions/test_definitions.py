"""The validation of claims, definitions and Compositions that people wrote."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import Any

import pytest

from k8s_ucp import yaml_io
from k8s_ucp.compositions.definitions import Definitions
from k8s_ucp.compositions.patch_and_transform import INPUT, compose
from k8s_ucp.compositions.pipeline import render
from k8s_ucp.errors import UsageError
from tests.unit.compositions import own_kinds

OBJECTS = [
    yaml_io.load(text) for name, text in own_kinds.files().items() if name.startswith("api/stores/")
]
STORE = {
    "apiVersion": "example.org/v1",
    "kind": "Store",
    "metadata": {"name": "photos"},
    "spec": {"region": "eu-west-3"},
}

INFINITE = {
    "transforms": [
        {"type": "map", "map": {"Store": float("inf")}},
        {"type": "convert", "convert": {"toType": "int"}},
    ]
}


def composition_of(change: dict[str, Any]) -> Any:
    definitions = Definitions.among(OBJECTS)
    return definitions.composition(definitions.complete({**STORE, **change}))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"metadata": {"name": "photos", "labels": None, "annotations": None}},
        {"spec": {"region": "eu-west-3", "crossplane": None}},
        {"spec": {"region": "eu-west-3", "crossplane": {"compositionSelector": None}}},
        {"status": None},
    ],
)
def test_a_claim_finds_its_composition_also_with_empty_fields(change: dict[str, Any]) -> None:
    assert composition_of(change)["metadata"]["name"] == "stores"


@pytest.mark.parametrize(
    ("pattern", "region", "valid"),
    [
        ("^eu-[a-z]+$", "eu-west", True),
        ("^eu-[a-z]+$", "eu-west\n", False),
        (r"^eu\z", "eu", True),
        (r"^\d$", "\u0661", False),
        (r"^\p{L}+$", "eu", True),
        ("^[[:alpha:]]+$", "eu", True),
    ],
)
def test_patterns_are_those_of_go_and_left_to_the_api_server_if_python_cannot_read_them(
    pattern: str, region: str, valid: bool
) -> None:
    schema = {"properties": {"spec": {"properties": {"region": {"pattern": pattern}}}}}
    version = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "stores.example.org"},
        "spec": {"group": "example.org", "names": {"kind": "Store"}, "versions": [version]},
    }
    definitions = Definitions.among([definition])
    with nullcontext() if valid else pytest.raises(UsageError, match="does not match"):
        definitions.complete({**STORE, "spec": {"region": region}})


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"metadata": "photos"}, "metadata is not of type object"),
        ({"metadata": {"name": ["photos"]}}, "metadata.name is not of type string"),
        ({"metadata": {"name": "a", "labels": "b"}}, "metadata.labels is not of type object"),
        ({"spec": ["eu-west-3"]}, "spec is not of type object"),
        (
            {"spec": {"region": "a", "crossplane": {"compositionRef": "stores"}}},
            "spec.crossplane.compositionRef is not of type object",
        ),
        (
            {"spec": {"region": "a", "crossplane": {"compositionSelector": {"matchLabels": [1]}}}},
            "spec.crossplane.compositionSelector.matchLabels is not of type object",
        ),
    ],
)
def test_a_claim_with_a_value_of_another_type_is_refused(
    change: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(problem)):
        composition_of(change)


@pytest.mark.parametrize(
    ("kind", "change", "problem"),
    [
        ("CompositeResourceDefinition", {"metadata": None}, "metadata is not of type object"),
        ("CompositeResourceDefinition", {"spec": {}}, "spec.group is required"),
        ("Composition", {"metadata": {}}, "metadata.name is required"),
        ("Composition", {"spec": {}}, "spec.compositeTypeRef is required"),
        (
            "Composition",
            {"spec": {"compositeTypeRef": {}, "pipeline": [{"step": "compose"}]}},
            "spec.pipeline[0].functionRef is required",
        ),
    ],
)
def test_an_incomplete_definition_is_refused(
    kind: str, change: dict[str, Any], problem: str
) -> None:
    found = [{**each, **change} if each["kind"] == kind else each for each in OBJECTS]
    with pytest.raises(UsageError, match=re.escape(problem)):
        Definitions.among(found)


def with_region(schema: Any) -> dict[str, Any]:
    """The definition with another schema of its region."""
    spec = {"type": "object", "properties": {"region": schema}}
    root = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": root}}
    (definition,) = (each for each in OBJECTS if each["kind"] != "Composition")
    return {**definition, "spec": {**definition["spec"], "versions": [version]}}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (None, "properties.region is not of type object"),
        ({"type": ["string"]}, "properties.region.type is not of type string"),
        ({"items": "string"}, "properties.region.items is not of type object"),
        ({"required": "name"}, "properties.region.required is not of type array"),
        ({"minimum": "1"}, "properties.region.minimum is not of type number"),
    ],
)
def test_a_schema_with_a_value_of_another_type_is_refused(schema: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=re.escape(problem)):
        Definitions.among([with_region(schema)])


def test_keys_without_a_value_are_left_out_of_a_schema() -> None:
    empty = dict.fromkeys(("default", "enum", "pattern", "maxLength", "properties", "items"))
    definitions = Definitions.among([with_region({"type": "string", **empty})])
    assert definitions.complete(STORE)["spec"]["region"] == "eu-west-3"


def test_a_field_may_be_null_if_its_definition_says_so() -> None:
    claim = {**STORE, "spec": {"region": None}}
    nullable = Definitions.among([with_region({"type": "string", "nullable": True})])
    assert nullable.complete(claim)["spec"]["region"] is None
    with pytest.raises(UsageError, match=r"spec\.region is not of type string"):
        Definitions.among([with_region({"type": "string"})]).complete(claim)


@pytest.mark.parametrize(
    "resources",
    [5, [{}], ["x"], [{"name": []}], [{"name": "x", "base": 5}]]
    + [
        [{"name": "x", "base": {"kind": "A"}, "patches": patches}]
        for patches in (5, ["x"], [{"fromFieldPath": 5}], [{"fromFieldPath": "kind", **INFINITE}])
    ],
)
def test_a_misshapen_input_of_a_step_is_the_error_of_its_step(resources: Any) -> None:
    (found,) = (each for each in OBJECTS if each["kind"] == "Composition")
    head = {"apiVersion": INPUT[0], "kind": INPUT[1]}
    step = {**found["spec"]["pipeline"][0], "input": {**head, "resources": resources}}
    changed = {**found, "spec": {**found["spec"], "pipeline": [step]}}
    definitions = Definitions.among([*(each for each in OBJECTS if each != found), changed])
    name = step["functionRef"]["name"]
    with pytest.raises(UsageError, match="step compose: "):
        render(STORE, definitions, {name: compose})
