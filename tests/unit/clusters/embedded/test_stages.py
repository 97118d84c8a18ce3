"""What kwok is told to do to objects. With a real one it is tested in test_simulated.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.clusters.embedded import kwokctl
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


def test_it_plays_nodes_pods_and_what_a_cloud_would_give() -> None:
    assert {each["spec"]["resourceRef"]["kind"] for each in STAGES} == {
        *("Node", "Pod", "Service", "Ingress"),
        *("PersistentVolumeClaim", "HorizontalPodAutoscaler"),
        *GATEWAY_KINDS,
    }


def test_each_stage_has_a_name_of_its_own_and_a_selector() -> None:
    names = [each["metadata"]["name"] for each in STAGES]
    assert sorted(set(names)) == sorted(names)
    assert all(each["spec"]["selector"]["matchExpressions"] for each in STAGES)


@pytest.mark.parametrize(
    "name",
    [
        *("service-address", "ingress-address", "claim-provision", "autoscaler-numbers"),
        *("gateway-programmed", "http-route-accepted", "grpc-route-accepted"),
    ],
)
def test_what_is_to_fail_gets_nothing_and_what_is_slow_later(name: str) -> None:
    assert expressions(name)[SIMULATE] == ("NotIn", ["fail"])
    late = by_name(name)["delay"]["durationFrom"]["expressionFrom"]
    assert "k8s-ucp.io/simulate-delay" in late
    assert '"slow" then "60s"' in late


def test_a_pod_either_ends_well_or_fails() -> None:
    """kwok picks by chance where two stages fit."""
    fails = ["fail", "crash-loop"]
    assert expressions("pod-complete")[SIMULATE] == ("NotIn", fails)
    assert expressions("pod-fail")[SIMULATE] == ("In", fails)
    assert expressions("pod-crash-loop")[SIMULATE] == ("In", fails)
    assert expressions("pod-fail")[".spec.restartPolicy"] == ("In", ["Never", "OnFailure"])
    assert expressions("pod-crash-loop")[".spec.restartPolicy"] == ("In", ["Always"])


def test_stages_are_written_when_they_changed(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path, "one")
    folder.root.mkdir()
    assert kwokctl.update(folder, set()) == ["kwok-controller"]
    assert kwokctl.update(folder, set()) == []


def test_kinds_of_the_gateway_api_are_played_where_they_are(tmp_path: Path) -> None:
    """kwok ends itself over a kind that the API server doesn't have."""
    folder = ClusterFolder(tmp_path, "one")
    folder.root.mkdir()
    kwokctl.update(folder, set())
    assert "gateway.networking" not in folder.stages.read_text()
    brought = {"Gateway", "HTTPRoute", "BackendTLSPolicy"}
    assert outdated(folder, brought)
    kwokctl.update(folder, brought)
    played = {
        each["spec"]["resourceRef"]["kind"]
        for each in YAML(typ="safe").load_all(folder.stages.read_text())
    }
    assert played & GATEWAY_KINDS == {"Gateway", "HTTPRoute"}
    # While the API server can't be asked they stay.
    assert not outdated(folder, None)
    assert outdated(folder, {"Gateway"})
