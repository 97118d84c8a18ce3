"""References and selectors: the object that a field refers to, and the resolved value."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.managed.reconcile import ReferenceMissing
from k8s_ucp.managed.references import ResourceReference, resolve, unresolved_lookups
from k8s_ucp.names import EXTERNAL_NAME

VPC = ResourceReference("vpcId", "VPC")
SUBNETS = ResourceReference("subnetIds", "Subnet")
ROLE = ResourceReference("roleArn", "Role")


def there(name: str, id: str = "", *, owner: str = "", arn: str = "", **labels: str) -> Any:
    metadata: dict[str, Any] = {"name": name, "labels": labels, "annotations": {EXTERNAL_NAME: id}}
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True}]
    return {
        "metadata": metadata,
        "status": {"atProvider": {"arn": arn} if arn else {}} if id else {},
    }


def value(
    reference: ResourceReference, parameters: dict[str, Any], *objects: Any, owner: str = ""
) -> Any:
    item: dict[str, Any] = {"metadata": {"name": "mine"}, "spec": {"forProvider": parameters}}
    if owner:
        item["metadata"]["ownerReferences"] = [{"uid": owner, "controller": True}]
    (lookup,) = unresolved_lookups(item, [reference])
    return resolve(lookup, objects)


@pytest.mark.parametrize(
    ("reference", "parameters", "expected"),
    [
        (VPC, {"vpcIdRef": {"name": "b"}}, "id-b"),
        (SUBNETS, {"subnetIdRefs": [{"name": "b"}, {"name": "a"}]}, ["id-b", "id-a"]),
        (VPC, {"vpcIdSelector": {"matchLabels": {"zone": "c"}}}, "id-c"),
        (SUBNETS, {"subnetIdSelector": {"matchLabels": {"env": "x"}}}, ["id-a", "id-b"]),
        (VPC, {"vpcIdSelector": {"matchControllerRef": True}}, "id-c"),
        (ROLE, {"roleArnRef": {"name": "a"}}, "arn:a"),
    ],
)
def test_a_reference_is_resolved_to_the_external_name_or_arn(
    reference: ResourceReference, parameters: dict[str, Any], expected: object
) -> None:
    objects = [
        there("b", "id-b", env="x", zone="b", owner="1"),
        there("a", "id-a", env="x", zone="a", owner="1", arn="arn:a"),
        there("c", "id-c", env="y", zone="c", owner="2"),
    ]

    assert value(reference, parameters, *objects, owner="2") == expected


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"vpcIdRef": {"name": "absent"}}, "VPC absent does not exist"),
        ({"vpcIdRef": {"name": "early"}}, "VPC early is not in the cloud yet"),
        ({"vpcIdSelector": {"matchLabels": {"a": "b"}}}, "no VPC matches a=b"),
    ],
    ids=["absent", "not made yet", "no match"],
)
def test_an_unresolvable_reference_is_reported_with_its_reason(
    parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(ReferenceMissing, match=message):
        value(VPC, parameters, there("early"))


def test_a_field_with_a_value_is_not_resolved() -> None:
    item = {"metadata": {}, "spec": {"forProvider": {"vpcId": "v", "vpcIdRef": {"name": "b"}}}}

    assert unresolved_lookups(item, [VPC]) == []


def test_a_reference_in_a_nested_field_is_resolved() -> None:
    subnets = ResourceReference("vpcConfig.subnetIds", "Subnet")
    given = {"subnetIdRefs": [{"name": "b"}, {"name": "a"}]}
    item = {"metadata": {}, "spec": {"forProvider": {"vpcConfig": given}}}

    (lookup,) = unresolved_lookups(item, [subnets])

    assert lookup.objects == (("", "b"), ("", "a"))
    done = {"vpcConfig": {**given, "subnetIds": ["s-1"]}}
    assert unresolved_lookups({"metadata": {}, "spec": {"forProvider": done}}, [subnets]) == []


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"vpcIdRef": {"name": "net"}}, "id-team"),
        ({"vpcIdRef": {"name": "net", "namespace": "shared"}}, "id-shared"),
        ({"vpcIdSelector": {"matchLabels": {"env": "x"}}}, "id-team"),
        ({"vpcIdSelector": {"matchLabels": {"env": "x"}, "namespace": "shared"}}, "id-shared"),
    ],
)
def test_a_reference_uses_its_own_namespace_unless_it_names_another(
    parameters: dict[str, Any], expected: str
) -> None:
    objects = [there("net", f"id-{each}", env="x") for each in ("team", "shared")]
    for each, namespace in zip(objects, ("team", "shared"), strict=True):
        each["metadata"]["namespace"] = namespace
    item = {"metadata": {"namespace": "team"}, "spec": {"forProvider": parameters}}

    (lookup,) = unresolved_lookups(item, [VPC])

    selected = [each for each in objects if lookup.selects(each)]
    assert resolve(lookup, selected) == expected
