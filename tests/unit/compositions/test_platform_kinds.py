"""Resources composed for claims of the platform's own kinds."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k8s_ucp.compositions import patch_and_transform, pipeline
from k8s_ucp.compositions.function import Observed, Request, Response
from k8s_ucp.errors import UsageError
from tests.unit.compositions.platform import FUNCTIONS, claim, composed, definitions, machine

EXTERNAL_NAME = "crossplane.io/external-name"
LABEL = st.from_regex(r"(?:[a-z0-9]|-in-ns|-in|-ns|s|-){1,12}", fullmatch=True).filter(
    lambda text: not text.startswith("-") and not text.endswith("-")
)


def names_in_the_cloud(namespace: str, name: str) -> set[tuple[str, str]]:
    found = set()
    for each in composed(claim(name=name, namespace=namespace)):
        if given_name := (each["metadata"].get("annotations") or {}).get(EXTERNAL_NAME):
            found.add((each["kind"], given_name))
        if group := (each.get("spec") or {}).get("initProvider"):
            found.add((each["kind"], group["name"]))
    return found


@settings(max_examples=40)
@given(st.tuples(LABEL, LABEL), st.tuples(LABEL | st.just("ucp-clusters"), LABEL))
def test_no_two_claims_share_a_name_in_the_cloud(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    assert names_in_the_cloud(*one) == names_in_the_cloud(*one)
    assert one == other or not names_in_the_cloud(*one) & names_in_the_cloud(*other)


def test_a_claim_in_the_platform_namespace_keeps_the_short_name() -> None:
    assert ("Instance", "demo-quotes-stage") in names_in_the_cloud("ucp-clusters", "quotes-stage")
    assert ("Instance", "demo-orders-in-ns-team-a") in names_in_the_cloud("team-a", "orders")
    assert ("SecurityGroup", "demo-orders-in-ns-team-a-postgres") in names_in_the_cloud(
        "team-a", "orders"
    )


@pytest.mark.parametrize("cloud", ["aws", "gcp", "local"])
def test_existing_cloud_resources_keep_their_external_names(cloud: str) -> None:
    """Earlier versions named claims of every namespace `<topology>-<claim>`."""
    asked = claim(cloud)
    new = composed(asked)
    named = {"subnets", "instance"} & {part(each) for each in new}
    observed = {part(each): Observed(with_external_name(each, "demo-orders")) for each in new}
    kept = pipeline.render(asked, definitions(), FUNCTIONS, observed)
    assert {
        part(each): each["metadata"]["annotations"].get(EXTERNAL_NAME) for each in kept
    }.items() >= {(name, "demo-orders") for name in named}
    # A deleted resource is recreated under the external name of the remaining ones.
    del observed["instance"]
    again = {
        part(each): each for each in pipeline.render(asked, definitions(), FUNCTIONS, observed)
    }
    expected = "demo-orders" if cloud == "aws" else "demo-orders-in-ns-team-a"
    assert again["instance"]["metadata"]["annotations"][EXTERNAL_NAME] == expected


def part(item: dict[str, Any]) -> str:
    return str(item["metadata"]["annotations"]["crossplane.io/composition-resource-name"])


def with_external_name(item: dict[str, Any], name: str) -> dict[str, Any]:
    return {**item, "metadata": {**item["metadata"], "annotations": {EXTERNAL_NAME: name}}}


@pytest.mark.parametrize(
    ("kind", "cloud"),
    list(product(("Postgres", "Compute"), ("aws", "gcp", "local"))),
)
def test_composed_resources_have_unique_names(kind: str, cloud: str) -> None:
    children = composed(claim(cloud) if kind == "Postgres" else machine(cloud))
    names = [(each["kind"], each["metadata"]["name"]) for each in children]
    assert children
    assert len(set(names)) == len(names)
    assert {each["metadata"]["namespace"] for each in children} == {"team-a"}


@pytest.mark.parametrize(
    ("cloud", "size", "at", "value"),
    [
        ("aws", "medium", "instanceClass", "db.t4g.medium"),
        ("aws", "small", "engineVersion", "17"),
        ("local", "large", "engineVersion", "17"),
        ("gcp", "small", "databaseVersion", "POSTGRES_17"),
    ],
)
def test_fields_of_the_claim_reach_the_database(cloud: str, size: str, at: str, value: str) -> None:
    children = composed(claim(cloud, size=size, version="17"))
    (database,) = [e for e in children if e["kind"] in ("Instance", "DatabaseInstance")]
    assert database["spec"]["forProvider"][at] == value
    asked = database["spec"]["forProvider"]
    assert 20 in (asked.get("allocatedStorage"), asked.get("settings", {}).get("diskSize"))


def answered(connection: dict[str, bytes], ready: bool, provider: str = "aws") -> Response:
    """The function's response once the database exists."""
    asked = definitions().complete(claim(provider))
    (step,) = definitions().composition(asked)["spec"]["pipeline"]
    first = patch_and_transform.compose(Request(asked, step["input"]))
    condition = {"type": "Ready", "status": str(ready)}
    observed = {
        name: Observed(
            {**each.object, "status": {"conditions": [condition]}},
            connection if name == "instance" else {},
        )
        for name, each in first.resources.items()
    }
    return patch_and_transform.compose(Request(asked, step["input"], observed))


@pytest.mark.parametrize("provider", ["aws", "local"])
def test_a_ready_database_publishes_its_connection(provider: str) -> None:
    connection = {"host": b"db.eu-west-3", "port": b"5432", "username": b"app", "password": b"x"}
    found = answered(connection, ready=True, provider=provider)
    assert all(each.ready for each in found.resources.values())
    assert found.connection == {
        "endpoint": b"db.eu-west-3",
        **{key: connection[key] for key in ("port", "username", "password")},
        "database": b"app",
    }
    secret: Any = found.resources["orders-connection-secret"].object
    assert secret["metadata"] == {
        "name": "orders-connection",
        "namespace": "team-a",
        "labels": {"k8s-ucp.io/connection": "stage"},
    }
    assert sorted(secret["data"]) == ["database", "endpoint", "password", "port", "username"]


def test_a_database_being_created_is_not_ready() -> None:
    found = answered({}, ready=False)
    assert not found.resources["instance"].ready
    assert found.resources["password"].ready
    assert found.connection == {"database": b"app"}


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"sise": "small"}, "spec.sise is not a field; fields are: "),
        ({"size": "huge"}, "spec.size: 'huge' is not one of small, medium, large"),
        ({"storageGB": "20"}, "spec.storageGB is not of type integer"),
        ({"storageGB": 5}, "spec.storageGB: 5 is less than 10"),
        ({"database": "1app"}, "spec.database: '1app' does not match"),
    ],
)
def test_an_invalid_field_is_named(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match="Postgres orders: ") as error:
        composed(claim(**wrong))
    assert reason in error.value.message


def test_the_error_for_a_missing_composition_lists_the_existing_ones() -> None:
    with pytest.raises(UsageError) as error:
        composed(claim("azure"))
    assert "there is no Composition k8s-ucp.io/cloud=azure" in error.value.message
    assert "postgres-aws (k8s-ucp.io/cloud=aws)" in error.value.message


def test_the_final_snapshot_of_a_recreated_database_has_a_different_name() -> None:
    def snapshot(uid: str, namespace: str) -> str:
        item = claim()
        item["metadata"] |= {"uid": uid, "namespace": namespace}
        children = {part(each): each for each in composed(item)}
        return str(children["instance"]["spec"]["forProvider"]["finalSnapshotIdentifier"])

    assert snapshot("1-2", "ucp-clusters") == "demo-orders-final-1-2"
    assert snapshot("3-4", "ucp-clusters") == "demo-orders-final-3-4"
    assert snapshot("1-2", "team-shop") == "demo-orders-in-ns-team-shop-final-1-2"


def test_a_local_database_needs_no_network_and_leaves_no_snapshot() -> None:
    children = {part(each): each for each in composed(claim("local", region="local"))}
    assert set(children) == {"password", "instance"}
    instance = children["instance"]["spec"]
    assert instance["forProvider"]["region"] == "eu-west-3", "a region that the cloud knows"
    assert instance["forProvider"]["skipFinalSnapshot"] is True
    assert not [each for each in instance["forProvider"] if each.endswith("Selector")]


def test_the_image_of_a_machine_on_aws_counts_for_its_creation_only() -> None:
    """AWS answers with another id, and the provider would refuse to replace the machine.

    With rootBlockDevice, it looks the image up by its id, and a reference isn't one.
    """
    (found,) = composed(machine("aws"))
    assert not {"ami", "rootBlockDevice"} & set(found["spec"]["forProvider"])
    first = found["spec"]["initProvider"]
    assert first["ami"].startswith("resolve:ssm:/aws/service/debian/")
    (root,) = first["ebsBlockDevice"]
    assert (root["deviceName"], root["encrypted"]) == ("/dev/xvda", True)


def test_a_local_machine_needs_no_network() -> None:
    (found,) = composed(machine("local"))
    assert found["spec"]["forProvider"] == {
        "region": "eu-west-3",
        "instanceType": "t3.large",
        "ami": "resolve:ssm:/aws/service/debian/release/12/latest/amd64",
    }


def test_a_claim_without_selector_is_refused_if_several_compositions_match() -> None:
    several = claim()
    del several["spec"]["crossplane"]
    with pytest.raises(UsageError) as error:
        composed(several)
    assert "postgres-aws" in error.value.message
    assert "postgres-gcp" in error.value.message


def test_the_error_for_an_undefined_kind_lists_the_defined_ones() -> None:
    with pytest.raises(UsageError) as error:
        composed({**claim(), "kind": "Redis"})
    assert "defined are: Compute of k8s-ucp.io, Postgres of k8s-ucp.io" in error.value.message
