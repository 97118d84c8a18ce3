"""ucp's implementation of function-patch-and-transform."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.compositions.field_paths import FieldMissing, get, put
from k8s_ucp.compositions.function import CompositionError, Desired, Observed, Request, Response
from k8s_ucp.compositions.patch_and_transform import INPUT, compose
from k8s_ucp.compositions.transforms import formatted, transformed

COMPOSITE = {
    "metadata": {"name": "one", "namespace": "team"},
    "spec": {"crossplane": {}, "size": "small", "labels": {"a.b/c": "d"}, "ports": [1, 2]},
}


def run(*patches: Any, observed: Any = None, **template: Any) -> Response:
    base = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"kept": "yes"}}
    resource = {"name": "map", "base": base, "patches": list(patches), **template}
    return compose(
        Request(
            COMPOSITE,
            {"apiVersion": INPUT[0], "kind": INPUT[1], "resources": [resource]},
            {"map": Observed(observed)} if observed else {},
        )
    )


def patched(*patches: Any) -> Any:
    return run(*patches).resources["map"].object


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.size", "small"),
        ('spec.labels["a.b/c"]', "d"),
        ("spec.labels[a.b/c]", "d"),
        ("spec.ports[1]", 2),
    ],
)
def test_a_field_path_is_read(path: str, value: object) -> None:
    assert get(COMPOSITE, path) == value


def test_writing_a_field_path_creates_its_parents() -> None:
    found: dict[str, Any] = {}
    put(found, 'a[1].b["x.y"]', 1)
    put(found, "a[0]", 2)
    assert found == {"a": [2, {"b": {"x.y": 1}}]}


@pytest.mark.parametrize("path", ["", ".a", "a[", "a[*].b", "a[100000]", "a..b"])
def test_an_invalid_field_path_is_refused(path: str) -> None:
    with pytest.raises(CompositionError, match="is not supported"):
        put({}, path, 1)


def test_a_missing_field_has_its_own_error() -> None:
    with pytest.raises(FieldMissing):
        get(COMPOSITE, "spec.none")


@pytest.mark.parametrize(
    ("policy", "result"),
    [
        ("Replace", {"b": 3, "l": [2]}),
        ("MergeObjects", {"a": 1, "b": 2, "l": [2]}),
        ("ForceMergeObjects", {"a": 1, "b": 3, "l": [2]}),
        ("ForceMergeObjectsAppendArrays", {"a": 1, "b": 3, "l": [1, 2]}),
    ],
)
def test_objects_are_merged_according_to_the_policy(policy: str, result: object) -> None:
    found: dict[str, Any] = {"at": {"a": 1, "b": 2, "l": [1]}}
    put(found, "at", {"b": 3, "l": [2]}, policy)
    assert found["at"] == result


@pytest.mark.parametrize(
    ("value", "transform", "result"),
    [
        ("small", {"type": "map", "map": {"small": "t3"}}, "t3"),
        (2, {"type": "math", "math": {"multiply": 1024}}, 2048),
        (2, {"type": "math", "math": {"type": "ClampMin", "clampMin": 5}}, 5),
        ("one", {"type": "string", "string": {"fmt": "%s-x"}}, "one-x"),
        (7, {"type": "string", "string": {"fmt": "%03d"}}, "007"),
        (True, {"type": "string", "string": {"fmt": "%v"}}, "true"),
        ("Ab", {"type": "string", "string": {"type": "Convert", "convert": "ToLower"}}, "ab"),
        ("ab", {"type": "string", "string": {"type": "TrimPrefix", "trim": "a"}}, "b"),
        (
            ["a", "b"],
            {"type": "string", "string": {"type": "Join", "join": {"separator": "-"}}},
            "a-b",
        ),
        (
            "eu-west-3a",
            {
                "type": "string",
                "string": {"type": "Regexp", "regexp": {"match": "(.*)[a-z]$", "group": 1}},
            },
            "eu-west-3",
        ),
        ("20", {"type": "convert", "convert": {"toType": "int"}}, 20),
        (2, {"type": "convert", "convert": {"toType": "bool"}}, False),
        ("2Gi", {"type": "convert", "convert": {"toType": "float64", "format": "quantity"}}, 2**31),
        (
            "b",
            {
                "type": "match",
                "match": {
                    "patterns": [{"type": "literal", "literal": "a", "result": 1}],
                    "fallbackTo": "Input",
                },
            },
            "b",
        ),
    ],
)
def test_a_value_is_transformed(value: object, transform: Any, result: object) -> None:
    assert transformed(value, [transform]) == result


@pytest.mark.parametrize(
    ("value", "transform"),
    [
        ("huge", {"type": "map", "map": {"small": "t3"}}),
        ("one", {"type": "string", "string": {"fmt": "%d"}}),
        ("one", {"type": "string", "string": {"fmt": "%100000000s"}}),
        ("one", {"type": "string", "string": {"fmt": f"%{100_000 * '0'}"}}),
        ("one", {"type": "shout"}),
        ("one", {"type": "math", "math": {"multiply": 2}}),
        ("one", {"type": "string", "string": {"type": "Trim"}}),
        ("one", {"type": "string", "string": {"type": "Regexp", "regexp": {"match": "[[:a:]]"}}}),
        ("one", {"type": "string", "string": {"type": "Regexp", "regexp": {"match": r"\pL"}}}),
        ("one", {"type": "string", "string": {"type": "Regexp", "regexp": {"match": "(" * 2000}}}),
    ],
)
def test_a_transform_that_does_not_fit_its_value_is_an_error(value: object, transform: Any) -> None:
    with pytest.raises(CompositionError, match="transform 0"):
        transformed(value, [transform])


@pytest.mark.parametrize(
    ("pattern", "value", "matches"),
    [
        ("prod$", "prod", True),
        ("prod$", "prod\n", False),
        (r"[$]x\$$", "$x$", True),
        (r"[]$]$", "$", True),
        (r"^a\z", "a\n", False),
        ("(?m)^a$", "a\nb", True),
        (r"^\w\d$", "a1", True),
        (r"^\w", "é", False),
        (r"^\d", "\u0661", False),
    ],
)
def test_a_regular_expression_matches_as_in_go(pattern: str, value: str, matches: bool) -> None:
    match = {"patterns": [{"type": "regexp", "regexp": pattern, "result": True}]}
    wanted = {"type": "match", "match": {**match, "fallbackValue": False}}
    assert transformed(value, [wanted]) is matches


def test_json_has_the_bytes_of_go() -> None:
    transform = {"type": "string", "string": {"type": "Convert", "convert": "ToJson"}}
    assert transformed({"b": "<é\u2028>", "a": "&"}, [transform]) == (
        r'{"a":"\u0026","b":"\u003cé\u2028\u003e"}'
    )


def test_a_format_uses_each_value_exactly_once() -> None:
    assert formatted("%s/%d%%", ["a", 5]) == "a/5%"
    for values in (["a"], ["a", 5, 6]):
        with pytest.raises(CompositionError):
            formatted("%s/%d", values)


def test_a_missing_optional_field_changes_nothing() -> None:
    assert patched({"fromFieldPath": "spec.none", "toFieldPath": "data.x"})["data"] == {
        "kept": "yes"
    }


def test_a_missing_required_field_blocks_the_resource() -> None:
    patch = {"fromFieldPath": "spec.none", "policy": {"fromFieldPath": "Required"}}
    found = run(patch)
    assert not found.resources
    assert found.unready
    assert found.warnings == ["not composing 'map' yet: it requires spec.none"]


def test_the_error_of_a_patch_names_resource_and_index() -> None:
    with pytest.raises(CompositionError, match=r"resource 'map', patch 0: .*'small'"):
        patched({"fromFieldPath": "spec.size", "transforms": [{"type": "map", "map": {"size": 1}}]})


def test_fields_of_a_resource_are_patched_to_the_composite() -> None:
    patch = {
        "type": "ToCompositeFieldPath",
        "fromFieldPath": "status.id",
        "toFieldPath": "status.machine",
    }
    assert run(patch, observed={"status": {"id": "i-1"}}).composite == {
        "status": {"machine": "i-1"}
    }


def test_an_existing_resource_keeps_its_name() -> None:
    found = run(observed={"metadata": {"name": "one-x7k2p", "namespace": "team"}})
    assert found.resources["map"].object["metadata"] == {"name": "one-x7k2p", "namespace": "team"}


@pytest.mark.parametrize(
    ("checks", "status", "ready"),
    [
        (None, {"conditions": [{"type": "Ready", "status": "True"}]}, True),
        (None, {"conditions": [{"type": "Ready", "status": "False"}]}, False),
        ([{"type": "None"}], {}, True),
        ([{"type": "NonEmpty", "fieldPath": "status.id"}], {"id": "x"}, True),
        ([{"type": "NonEmpty", "fieldPath": "status.id"}], {}, False),
        (
            [{"type": "MatchString", "fieldPath": "status.id", "matchString": "y"}],
            {"id": "x"},
            False,
        ),
        ([{"type": "MatchTrue", "fieldPath": "status.id"}], {"id": True}, True),
    ],
)
def test_readiness_checks_decide_whether_a_resource_is_ready(
    checks: Any, status: Any, ready: bool
) -> None:
    template = {"readinessChecks": checks} if checks else {}
    assert run(observed={"status": status}, **template).resources["map"].ready is ready


def test_resources_of_earlier_functions_are_kept() -> None:
    before = {"other": Desired({"kind": "Secret"})}
    head = {"apiVersion": INPUT[0], "kind": INPUT[1]}
    assert compose(Request(COMPOSITE, head, desired=before)).resources == before


def test_status_and_connection_details_of_earlier_functions_are_kept() -> None:
    patch = {"type": "ToCompositeFieldPath", "fromFieldPath": "kind", "toFieldPath": "status.in.b"}
    detail = {"name": "own", "type": "FromValue", "value": "2"}
    template = {"name": "map", "base": {}, "patches": [patch], "connectionDetails": [detail]}
    request = Request(
        COMPOSITE,
        {"apiVersion": INPUT[0], "kind": INPUT[1], "resources": [template]},
        observed={"map": Observed({"kind": "ConfigMap"})},
        desired={"map": Desired({})},
        answer={"status": {"in": {"a": 1}, "c": 2}},
        connection={"earlier": b"1"},
    )
    found = compose(request)
    assert found.composite == {"status": {"in": {"a": 1, "b": "ConfigMap"}, "c": 2}}
    assert request.answer == {"status": {"in": {"a": 1}, "c": 2}}
    assert found.connection == {"earlier": b"1", "own": b"2"}
    secret = found.resources["one-connection-secret"].object
    assert secret["data"] == {"earlier": "MQ==", "own": "Mg=="}


@pytest.mark.parametrize(
    "input",
    [
        {"apiVersion": "example.org/v1", "kind": "Resources"},
        {"apiVersion": INPUT[0], "kind": INPUT[1], "environment": {"patches": []}},
        {"apiVersion": INPUT[0], "kind": INPUT[1], "resources": [{"name": "x"}]},
    ],
)
def test_unsupported_input_is_an_error(input: Any) -> None:
    with pytest.raises(CompositionError):
        compose(Request(COMPOSITE, input))
