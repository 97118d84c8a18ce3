"""`ucp api render` shows what Crossplane composes, and Crossplane can call our function.

`crossplane internal render` is Crossplane's own reconciler with an in-memory store. It calls our
server as on a core cluster. Its messages are defined in proto/render/v1alpha1 of its sources.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from crossplane.function import resource
from crossplane.function.proto.v1.run_function_pb2_grpc import (
    FunctionRunnerServiceServicer,
    add_FunctionRunnerServiceServicer_to_server,
)
from google.protobuf.struct_pb2 import Struct

from k8s_ucp.compositions.patch_and_transform import NAME, compose
from k8s_ucp.compositions.server import answer
from k8s_ucp.tools.toolbox import Toolbox
from tests.unit.compositions.platform import claim, composed, definitions, machine

UID = "11111111-1111-1111-1111-111111111111"
EXTERNAL_NAME = "crossplane.io/external-name"
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Available",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


class _Server(FunctionRunnerServiceServicer):  # type: ignore[misc]
    def RunFunction(self, request: Any, _context: Any) -> Any:  # noqa: N802 (gRPC's name)
        return answer(request, compose)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(2))
    add_FunctionRunnerServiceServicer_to_server(_Server(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(0).wait(10)


def test_crossplane_composes_what_ucp_renders(toolbox: Toolbox, address: str) -> None:
    for asked in (
        claim(),
        claim("gcp"),
        claim("local"),
        machine(),
        machine("gcp"),
        machine("local"),
    ):
        _, children = crossplane(toolbox, address, asked)
        rendered = composed(created(asked))
        assert {key(each): each.get("spec") for each in children} == {
            key(each): each.get("spec") for each in rendered
        }


@pytest.mark.parametrize("provider", ["aws", "local"])
def test_a_claim_becomes_ready_when_its_children_are_ready(
    toolbox: Toolbox, address: str, provider: str
) -> None:
    asked = claim(provider)
    composite, children = crossplane(toolbox, address, asked)
    assert conditions(composite)["Ready"] == "False"
    there = [{**each, "status": {"conditions": [READY]}} for each in children]
    composite, children = crossplane(toolbox, address, asked, there)
    assert conditions(composite)["Ready"] == "True"
    assert ("Secret", "orders-connection") in {key(each) for each in children}


def test_existing_cloud_resources_keep_their_names(toolbox: Toolbox, address: str) -> None:
    """So do their objects in the cluster, some of which older versions named randomly."""
    for cloud, kept in (("aws", {"SubnetGroup", "Instance"}), ("gcp", {"DatabaseInstance"})):
        _, children = crossplane(toolbox, address, claim(cloud))
        there = [older(each, "demo-orders") for each in children]
        _, again = crossplane(toolbox, address, claim(cloud), there)
        names = {each["kind"]: each["metadata"] for each in again if each["kind"] in kept}
        assert {
            kind: (each["name"], each["annotations"][EXTERNAL_NAME]) for kind, each in names.items()
        } == {kind: (f"orders-{kind.lower()}-x7k2p", "demo-orders") for kind in kept}


def older(item: dict[str, Any], external_name: str) -> dict[str, Any]:
    """A child with the name that an older version gave it."""
    metadata = item["metadata"]
    annotations = {**metadata["annotations"], EXTERNAL_NAME: external_name}
    name = f"orders-{item['kind'].lower()}-x7k2p"
    return {**item, "metadata": {**metadata, "name": name, "annotations": annotations}}


def test_a_failed_function_is_reported_with_its_own_message(toolbox: Toolbox, address: str) -> None:
    odd = {"input": {"apiVersion": "v1", "kind": "Odd"}}
    with pytest.raises(AssertionError, match="fatal result: input is Odd of v1"):
        crossplane(toolbox, address, claim(), **odd)


def created(asked: dict[str, Any]) -> dict[str, Any]:
    """The claim as an API server stores it, with a UID, which names in the cloud depend on."""
    return {**asked, "metadata": {**asked["metadata"], "uid": UID}}


def crossplane(
    toolbox: Toolbox, address: str, asked: dict[str, Any], observed: Any = (), **step: Any
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Render with Crossplane; returns (composite, composed resources)."""
    complete = definitions().complete(created(asked))
    composition = dict(definitions().composition(complete))
    pipeline = [{**each, **step} for each in composition["spec"]["pipeline"]]
    composition["spec"] = {**composition["spec"], "pipeline": pipeline}
    function = field(1, NAME.encode()) + field(2, address.encode())
    message = field(1, struct(complete)) + field(2, struct(composition)) + field(3, function)
    message += b"".join(field(4, struct(each)) for each in observed)
    done = subprocess.run(
        [toolbox.path("crossplane"), "internal", "render"],
        input=field(2, message),
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode()
    (output,) = (value for number, value in fields(done.stdout) if number == 2)
    found = [(number, plain(value)) for number, value in fields(output) if number in (1, 2)]
    (composite,) = (each for number, each in found if number == 1)
    return composite, [each for number, each in found if number == 2]


def key(item: dict[str, Any]) -> tuple[str, str]:
    return item["kind"], item["metadata"]["name"]


def conditions(item: dict[str, Any]) -> dict[str, str]:
    return {each["type"]: each["status"] for each in item["status"]["conditions"]}


def struct(item: Any) -> bytes:
    return resource.dict_to_struct(item).SerializeToString()


def plain(text: bytes) -> dict[str, Any]:
    found = Struct()
    found.ParseFromString(text)
    return resource.struct_to_dict(found)


def field(number: int, value: bytes) -> bytes:
    """A length-delimited field of a protobuf message."""
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def fields(text: bytes) -> Iterator[tuple[int, bytes]]:
    """(number, value) of the fields of a message, all of which must be length-delimited."""
    at = 0

    def number() -> int:
        nonlocal at
        found = shift = 0
        while True:
            byte, at = text[at], at + 1
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found

    while at < len(text):
        head, length = number(), number()
        yield head >> 3, text[at : at + length]
        at += length
