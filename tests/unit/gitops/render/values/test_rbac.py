"""Roles for people, rendered if Crossplane's RBAC manager doesn't create them."""

from __future__ import annotations

import pytest
from ruamel.yaml import YAML

from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.topology import Topology
from tests.unit.gitops.topologies import FACTS, demo, on_clouds

PATH = "platform/crossplane/config/people.yaml"


@pytest.mark.parametrize(
    ("topology", "there"),
    [
        (demo(), True),
        (demo(crossplane={"rbacManager": False}), True),
        (on_clouds(), False),
        (on_clouds(crossplane={"rbacManager": False}), True),
    ],
)
def test_roles_are_rendered_if_no_rbac_manager_creates_them(
    topology: Topology, there: bool
) -> None:
    assert (PATH in render(topology, FACTS).core) is there


def test_each_role_has_fewer_permissions_than_the_previous_one() -> None:
    text = render(demo(), FACTS).core[PATH].decode()
    rules = {
        each["metadata"]["name"].rpartition("-")[2]: each["rules"]
        for each in YAML(typ="safe").load_all(text)
        if each and "rules" in each
    }
    assert list(rules) == ["admin", "edit", "view", "browse"]
    may = {
        step: {
            (group, resource, verb)
            for rule in found
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
        for step, found in rules.items()
    }
    assert ("", "secrets", "*") in may["admin"] & may["edit"]
    assert ("k8s-ucp.io", "*", "*") in may["edit"]
    assert not any(verb == "*" or resource == "secrets" for _, resource, verb in may["view"])
    assert may["browse"] < may["view"]
