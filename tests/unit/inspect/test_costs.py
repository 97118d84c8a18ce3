"""Cost lines are computed from the price table alone."""

from __future__ import annotations

from typing import Any

from k8s_ucp.inspect.costs import costs_of
from k8s_ucp.topology import Topology

PRICES = {
    "currency": "EUR",
    "clusters": [
        {"provider": "eks", "monthly": 200},
        {"provider": "eks", "region": "us-east-1", "monthly": 300},
        {"provider": "eks", "region": "us-east-1", "size": "m5.large", "monthly": 400},
    ],
    "databases": [{"provider": "aws", "size": "small", "monthly": 30}],
}


def topology(costs: Any = None, **spec: Any) -> Topology:
    environments = [
        {"name": "stage", "cluster": {"provider": "eks"}},
        {"name": "far", "cluster": {"provider": "eks", "region": "us-east-1"}},
        {
            "name": "big",
            "cluster": {"provider": "eks", "region": "us-east-1", "size": "m5.large"},
        },
        {"name": "here", "cluster": {"provider": "embedded"}},
    ]
    databases = [
        {"name": "quotes", "provider": "aws", "environments": ["stage"]},
        {"name": "large", "provider": "aws", "size": "large", "environments": ["stage"]},
    ]
    found = {"environments": environments, "databases": databases, "costs": costs, **spec}
    return Topology.model_validate({"metadata": {"name": "demo"}, "spec": found})


def steps(*objects: tuple[str, str]) -> list[dict[str, str]]:
    return [{"action": action, "object": name} for action, name in objects]


def test_the_most_specific_price_applies() -> None:
    found = costs_of(
        [topology(PRICES)],
        steps(
            ("create", "cluster demo-stage"),
            ("keep", "cluster demo-far"),
            ("delete", "Cluster demo-big"),
            ("delete", "Postgres quotes-stage"),
        ),
    )
    assert list(map(str, found)) == [
        "cluster demo-stage: +200.00 EUR a month (create)",
        "cluster demo-far: 300.00 EUR a month (keep)",
        "Cluster demo-big: -400.00 EUR a month (delete)",
        "Postgres quotes-stage: -30.00 EUR a month (delete)",
    ]


def test_objects_without_a_price_have_no_cost_line() -> None:
    asked = steps(
        ("create", "cluster demo-here"),
        ("keep", "database large of stage"),
        ("wait", "cluster demo-stage"),
        ("create", "Application root"),
    )
    assert costs_of([topology(PRICES)], asked) == []
    assert costs_of([topology()], steps(("create", "cluster demo-stage"))) == []


def test_an_object_is_listed_once_and_a_simulated_one_is_not_billed() -> None:
    simulated = topology(PRICES, clouds={"aws": {"simulated": True}})
    asked = steps(("create", "cluster demo-stage"), ("create", "cluster demo-stage"))
    (found,) = costs_of([simulated], asked)
    assert str(found) == "cluster demo-stage: +200.00 EUR a month (simulated: not billed)"


def test_prices_of_a_removed_environment_are_those_of_the_current_file() -> None:
    now = topology(PRICES)
    later = now.model_copy(update={"spec": now.spec.model_copy(update={"environments": ()})})
    (found,) = costs_of([now, later], steps(("delete", "cluster demo-far")))
    assert found.data() == {
        "object": "cluster demo-far",
        "action": "delete",
        "monthly": 300.0,
        "currency": "EUR",
        "simulated": False,
    }
