"""Crossplane's requests to ucp's function, and its responses."""

from __future__ import annotations

import asyncio

import crossplane.function.proto.v1.run_function_pb2 as messages
import pytest
from crossplane.function import resource

from k8s_ucp.compositions import server
from k8s_ucp.compositions.function import CompositionError, Desired, Request, Response
from k8s_ucp.compositions.patch_and_transform import compose
from k8s_ucp.compositions.server import answer
from tests.unit.compositions.platform import asked, claim

ENVIRONMENT = "apiextensions.crossplane.io/environment"


def test_the_response_for_a_claim_contains_its_resources() -> None:
    response = answer(asked(claim()), compose)
    assert response.meta.tag == "tag"
    assert not response.results
    database = resource.struct_to_dict(response.desired.resources["instance"].resource)
    assert database["spec"]["forProvider"]["allocatedStorage"] == 20
    assert database["spec"]["forProvider"]["deletionProtection"] is False


def test_the_response_contains_readiness_and_connection_details() -> None:
    request = asked(claim())
    for name in ("subnets", "firewall", "inside", "instance", "password"):
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        request.observed.resources[name].resource.update(ready)
    request.observed.resources["instance"].connection_details["host"] = b"db"
    response = answer(request, compose)
    assert {each.ready for each in response.desired.resources.values()} == {messages.READY_TRUE}
    assert dict(response.desired.composite.connection_details)["endpoint"] == b"db"


def test_resources_and_status_of_earlier_functions_are_kept() -> None:
    request = asked(claim())
    request.desired.composite.resource.update({"status": {"a": 1}})
    request.desired.composite.connection_details["earlier"] = b"1"
    request.desired.resources["other"].resource.update({"kind": "Secret"})
    response = answer(request, compose)
    assert "other" in response.desired.resources
    assert resource.struct_to_dict(response.desired.composite.resource) == {"status": {"a": 1}}
    assert dict(response.desired.composite.connection_details) == {"earlier": b"1"}


def test_the_context_keeps_its_values_and_gets_the_external_name() -> None:
    request = asked(claim())
    request.context.update({"other": 1, ENVIRONMENT: {"zone": "a"}})
    named = {"metadata": {"annotations": {"crossplane.io/external-name": "demo-orders"}}}
    request.observed.resources["subnets"].resource.update(named)
    context = resource.struct_to_dict(answer(request, compose).context)
    assert context == {"other": 1, ENVIRONMENT: {"zone": "a", "externalName": "demo-orders"}}


def test_integers_stay_integers() -> None:
    seen: list[Request] = []

    def look(request: Request) -> Response:
        seen.append(request)
        return Response({"one": Desired({"n": 5, "f": 0.5})}, warnings=["careful"])

    response = answer(asked(claim()), look)
    storage = seen[0].composite["spec"]["storageGB"]
    assert (storage, type(storage)) == (20, int)
    assert response.results[0].severity == messages.SEVERITY_WARNING


def test_a_failure_is_a_fatal_result_with_its_reason() -> None:
    def refuse(_: Request) -> Response:
        raise CompositionError("no such size")

    def break_down(_: Request) -> Response:
        raise ZeroDivisionError("oh")

    for function, text in ((refuse, "no such size"), (break_down, "ZeroDivisionError: oh")):
        (result,) = answer(asked(claim()), function).results
        assert (result.severity, result.message) == (messages.SEVERITY_FATAL, text)


def test_a_regular_expression_that_does_not_end_stops_no_other_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "CPU_SECONDS", 0.1)
    regexp = {"type": "Regexp", "regexp": {"match": "^(a+)+$"}}
    patch = {
        "fromFieldPath": "spec.region",
        "toFieldPath": "metadata.name",
        "transforms": [{"type": "string", "string": regexp}],
    }
    base = {"apiVersion": "v1", "kind": "ConfigMap"}
    request = asked(claim())
    request.observed.composite.resource.update({"spec": {"region": "a" * 60 + "!"}})
    request.input["resources"] = [{"name": "one", "base": base, "patches": [patch]}]
    (result,) = asyncio.run(server.of_ours(request)).results
    assert result.severity == messages.SEVERITY_FATAL
    assert "resource 'one', patch 0" in result.message
    assert "no answer within 0.1 seconds" in result.message
    monkeypatch.undo()
    assert not asyncio.run(server.of_ours(asked(claim()))).results
