"""Guard rails: policies and bindings; tests/integration/gitops tests what they refuse."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML

from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.gitops.render.values import addons, policies
from k8s_ucp.topology import Topology
from k8s_ucp.topology.rules.names import PLATFORM_NAMESPACES
from tests.unit.gitops.topologies import FACTS, demo

RAILS = {"stage": "warn", "prod": "deny"}


def files(topology: Topology) -> dict[str, list[Any]]:
    return {
        path: [each for each in YAML(typ="safe").load_all(text.decode()) if each]
        for path, text in render(topology, FACTS).core.items()
        if path.startswith("policies/") or path.endswith("/policies.yaml")
    }


def test_without_levels_no_policy_is_rendered() -> None:
    assert files(demo()) == {}
    assert files(demo(guardRails={"off": ["pinned-images"]})) == {}


def test_each_environment_has_its_level() -> None:
    found = files(demo(guardRails=RAILS))
    for environment, actions in (("stage", ["Warn", "Audit"]), ("prod", ["Deny"])):
        bindings = found[f"policies/overlays/{environment}/bindings.yaml"]
        assert [each["spec"]["validationActions"] for each in bindings] == [actions] * len(
            policies.ALL
        )
    (item,) = found["bootstrap/embedded/policies.yaml"]
    (generator,) = item["spec"]["generators"]
    (expression,) = generator["clusters"]["selector"]["matchExpressions"]
    assert expression["values"] == ["stage", "prod"]


def test_an_environment_without_a_level_has_no_bindings() -> None:
    found = files(demo(guardRails={"prod": "deny"}))
    assert not [path for path in found if "/stage/" in path]
    (item,) = found["bootstrap/embedded/policies.yaml"]
    selector = item["spec"]["generators"][0]["clusters"]["selector"]
    assert selector["matchExpressions"][0]["values"] == ["prod"]


def test_a_policy_can_be_switched_off() -> None:
    found = files(demo(guardRails={**RAILS, "off": ["pinned-images"]}))
    assert "policies/base/pinned-images.yaml" not in found
    names = [each["metadata"]["name"] for each in found["policies/overlays/prod/bindings.yaml"]]
    left = [each for each in policies.ALL if each != "pinned-images"]
    assert names == [f"{each}.k8s-ucp.io" for each in left]
    (listed,) = found["policies/base/kustomization.yaml"]
    assert listed["resources"] == [f"{each}.yaml" for each in left]


def test_ephemeral_containers_are_validated_too() -> None:
    """`kubectl debug` adds one to a running pod through a subresource."""
    found = files(demo(guardRails=RAILS))
    elsewhere = {"no-lasting-tokens", "no-release-deletion", "no-taken-hosts"}
    elsewhere |= {"no-ephemeral-containers"}
    for name in set(policies.ALL) - elsewhere:
        (policy,) = found[f"policies/base/{name}.yaml"]
        (core, *_) = policy["spec"]["matchConstraints"]["resourceRules"]
        assert core["resources"] == ["pods", "pods/ephemeralcontainers"]
        assert "ephemeralContainers" in policy["spec"]["variables"][1]["expression"]


def test_hosts_belong_to_the_namespaces_of_their_app() -> None:
    apps = [{"name": "web", "image": "a", "tag": "1", "hosts": ["www"], "namespaces": ["front"]}]
    topology = demo(apps=apps, domain="example.com", guardRails={"prod": "deny"})
    assert policies.host_owners(topology) == {"www.prod.example.com": ("web", "front")}
    (policy,) = files(topology)["policies/base/no-taken-hosts.yaml"]
    (owners, *_) = policy["spec"]["variables"]
    assert owners["expression"] == "{'www.prod.example.com': ['web', 'front']}"


def test_namespaces_of_addons_are_platform_namespaces() -> None:
    """No app may use these names, since policies exempt the namespaces."""
    assert {each.namespace for each in addons.ALL} <= PLATFORM_NAMESPACES


def test_all_policies_can_be_switched_off() -> None:
    found = files(demo(guardRails={**RAILS, "off": list(policies.ALL)}))
    (listed,) = found["policies/base/kustomization.yaml"]
    assert listed["resources"] == []
    assert found["policies/overlays/prod/bindings.yaml"] == []


def test_bindings_refer_to_rendered_policies() -> None:
    found = files(demo(guardRails=RAILS))
    names = {
        each["metadata"]["name"]
        for path, items in found.items()
        for each in items
        if each["kind"] == "ValidatingAdmissionPolicy"
    }
    for each in found["policies/overlays/prod/bindings.yaml"]:
        assert each["spec"]["policyName"] in names
