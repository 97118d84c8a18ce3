"""kwok's stages: how it simulates objects. test_simulated.py tests them with a real kwok."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.clusters.embedded import definition_edits
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.clusters.embedded.stages import outdated, stages

GATEWAY_KINDS = {"GatewayClass", "Gateway", "HTTPRoute", "GRPCRoute"}
STAGES: list[dict[str, Any]] = list(YAML(typ="safe").load_all(stages(GATEWAY_KINDS)))
SIMULATE = '.metadata.annotations["k8s-ucp.io/simulate"]'


def by_name(name: str) -> dict[str, Any]:
    (found,) = [each["spec"] for each in STAGES if each["metadata"]["name"] == name]
    return dict(found)


def expressions(name: str) -> dict[str, tuple[str, list[str]]]:
    found = by_name(name)["selector"]["matchExpressions"]
    return {each["key"]: (each["operator"], each.get("values", [])) for each in found}


def test_nodes_pods_and_cloud_provided_kinds_are_simulated() -> None:
    assert {each["spec"]["resourceRef"]["kind"] for each in STAGES} == {
        *("Node", "Pod", "Service", "Ingress"),
        *("PersistentVolumeClaim", "HorizontalPodAutoscaler"),
        *GATEWAY_KINDS,
    }


def test_each_stage_has_a_unique_name_and_a_selector() -> None:
    names = [each["metadata"]["name"] for each in STAGES]
    assert sorted(set(names)) == sorted(names)
    assert all(each["spec"]["selector"]["matchExpressions"] for each in STAGES)


def test_only_nodes_and_pods_are_patched_strategically() -> None:
    """The kwok of the catalogue no longer reads what it needs to patch other kinds so."""
    others = [each["spec"] for each in STAGES]
    others = [spec for spec in others if spec["resourceRef"]["kind"] not in {"Node", "Pod"}]
    actions = [action for spec in others for action in spec.get("steps", [spec.get("next")])]
    assert {key for action in actions for key in action} == {"statusTemplate", "apply"}
    assert not any("type" in action.get("apply", {}) for action in actions)


@pytest.mark.parametrize(
    "name",
    [
        *("service-address", "ingress-address", "claim-provision", "autoscaler-numbers"),
        *("gateway-programmed", "http-route-accepted", "grpc-route-accepted"),
    ],
)
def test_simulated_failures_get_no_status_and_slow_objects_get_it_later(name: str) -> None:
    assert expressions(name)[SIMULATE] == ("NotIn", ["fail"])
    late = by_name(name)["delay"]["durationFrom"]["expressionFrom"]
    assert "k8s-ucp.io/simulate-delay" in late
    assert '"slow" then "60s"' in late


def test_a_pod_either_completes_or_fails() -> None:
    """kwok picks at random if two stages match."""
    fails = ["fail", "crash-loop"]
    assert expressions("pod-complete")[SIMULATE] == ("NotIn", fails)
    assert expressions("pod-fail")[SIMULATE] == ("In", fails)
    assert expressions("pod-crash-loop")[SIMULATE] == ("In", fails)
    assert expressions("pod-fail")[".spec.restartPolicy"] == ("In", ["Never", "OnFailure"])
    assert expressions("pod-crash-loop")[".spec.restartPolicy"] == ("In", ["Always"])


def test_stages_are_written_only_when_they_changed(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path, "one")
    folder.root.mkdir()
    assert definition_edits.update(folder, set()) == ["kwok-controller"]
    assert definition_edits.update(folder, set()) == []


def test_gateway_api_kinds_are_simulated_only_where_they_are_installed(tmp_path: Path) -> None:
    """kwok exits if a stage names a kind that the API server doesn't serve."""
    folder = ClusterFolder(tmp_path, "one")
    folder.root.mkdir()
    definition_edits.update(folder, set())
    assert "gateway.networking" not in folder.stages.read_text()
    brought = {"Gateway", "HTTPRoute", "BackendTLSPolicy"}
    assert outdated(folder, brought)
    definition_edits.update(folder, brought)
    played = {
        each["spec"]["resourceRef"]["kind"]
        for each in YAML(typ="safe").load_all(folder.stages.read_text())
    }
    assert played & GATEWAY_KINDS == {"Gateway", "HTTPRoute"}
    # While the API server can't be queried, the stages stay as they are.
    assert not outdated(folder, None)
    assert outdated(folder, {"Gateway"})
