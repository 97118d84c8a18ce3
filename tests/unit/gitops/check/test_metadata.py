"""Names, labels and sizes that every API server rejects."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.gitops.check.metadata import find_invalid_metadata
from k8s_ucp.gitops.check.objects.faults import find_faults


def config(name: str = "web", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, **more.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **more}


@pytest.mark.parametrize(
    "item",
    [
        config("a.b-c.1"),
        config("1"),
        config("a" * 253),
        config("", metadata={"generateName": "web-"}),
        config(metadata={"labels": {"example.org/a_B.c": "", "x": "A_b-c.1", "y": None}}),
        config(data={"a": "x" * 1_048_576}),
        config(binaryData={"a": "x" * 1_300_000}),
        config(metadata={"annotations": {"a": "x" * 262_143}}),
        config("Any_Name", apiVersion="example.org/v1"),
        config("system:web", apiVersion="rbac.authorization.k8s.io/v1", kind="Role"),
        config("", kind="List"),
    ],
)
def test_what_api_servers_accept_is_no_fault(item: dict[str, Any]) -> None:
    assert not [each.message for each in find_invalid_metadata(item)]


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (config(""), "metadata.name"),
        (config("My_Config"), "metadata.name"),
        (config("web-"), "metadata.name"),
        (config("a..b"), "metadata.name"),
        (config("a" * 254), "metadata.name"),
        (config("a.b", kind="Service"), "metadata.name"),
        (config(metadata={"labels": {"a": "two words"}}), "metadata.labels"),
        (config(metadata={"labels": {"a": "x" * 64}}), "metadata.labels"),
        (config(metadata={"labels": {"two words": "a"}}), "metadata.labels"),
        (config(metadata={"annotations": {"a": "x" * 262_144}}), "metadata.annotations"),
        (config(data={"a": "x" * 1_000_000, "b": "x" * 50_000}), "data"),
        (config(data={"a": "x" * 1_500_000}, kind="Secret"), "data"),
    ],
)
def test_what_api_servers_reject_is_found(item: dict[str, Any], field: str) -> None:
    [fault] = find_invalid_metadata(item)
    assert (fault.rule, fault.field) == ("field-invalid", field)


def test_an_object_of_any_kind_that_argocd_applies_needs_a_name() -> None:
    item = config("", apiVersion="example.org/v1")
    assert not list(find_invalid_metadata(item))
    [fault] = find_invalid_metadata(item, deployed=True)
    assert fault.field == "metadata.name"
    [found] = find_faults([item], None)
    assert "(no name)" in f"{found.object} {found.message}"


@pytest.mark.parametrize("namespace", ["${SPACE}", "My-Space", "a.b", "a" * 64])
def test_an_object_that_argocd_applies_needs_a_valid_namespace(namespace: str) -> None:
    item = config(metadata={"namespace": namespace})
    assert not list(find_invalid_metadata(item))
    [fault] = find_invalid_metadata(item, deployed=True)
    assert (fault.rule, fault.field) == ("field-invalid", "metadata.namespace")


def test_a_long_name_is_matched_at_once() -> None:
    [fault] = find_invalid_metadata(config("a-" * 100_000))
    assert fault.field == "metadata.name"


def test_containers_with_invalid_names_are_found() -> None:
    containers = [{"name": "web_1", "image": "a/b:1.0"}, {"name": "web-1", "image": "a/b:1.0"}]
    pod = config(kind="Pod", spec={"containers": containers})
    [fault] = find_faults([pod], None)
    assert "the container name 'web_1' is invalid" in fault.message
