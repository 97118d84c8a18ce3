"""What `ucp doctor` finds where something is really wrong."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from k8s_ucp import names
from k8s_ucp.inspect import doctor, status
from k8s_ucp.kube import SECRET
from k8s_ucp.reconciler.runtime.clock import stamp
from k8s_ucp.topology import default
from tests.integration.reconciler.conftest import Planes
from tests.integration.reconciler.registration.test_registration import (
    kubeconfig_secret,
    person_s_secret,
)
from tests.integration.reconciler.world import ARGOCD, World, eventually

pytestmark = pytest.mark.engines

TOPOLOGY = default("demo", ["stage", "prod"])


def found(world: World) -> dict[str, doctor.Finding]:
    def kubeconfig(cluster: str) -> Path:
        path = world.folder / f"{cluster}.json"
        configs = {**world.provider.configs, "demo-core": world.core_config}
        path.write_text(json.dumps(configs[cluster]))
        return path

    seen = status.collect(TOPOLOGY, kubeconfig, list)
    asked = doctor.collect(TOPOLOGY, seen, lambda: world.core, time.time())
    return {each.id: each for each in doctor.findings(asked)}


def test_a_world_that_is_well_has_no_finding(world: World) -> None:
    world.start()
    for environment in ("stage", "prod"):
        world.declare(environment)
        world.await_registered(f"demo-{environment}")
    assert found(world) == {}


def test_what_is_wrong_is_found_by_its_name(world: World, planes: Planes) -> None:
    world.list_environments("stage", "prod", "eu")
    world.core.create(person_s_secret({names.SECRET_TYPE: "cluster"}))
    world.start(resync_seconds=0.2)
    world.declare("stage")
    world.declare("prod")
    world.await_registered("demo-prod")
    labels = {names.ENVIRONMENT: "prod", names.KUBECONFIG_LABEL: ""}
    kubeconfig_secret(world, "second-kubeconfig", "crossplane-system", labels=labels)
    world.await_note("crossplane-system/second-kubeconfig", "EnvironmentTaken")
    world.await_condition(names.REGISTERED, "False", "NameTaken")
    planes.provider.stop("demo-prod")
    try:
        world.await_condition(names.REACHABLE, "False", None, "demo-prod")
        seen = found(world)
    finally:
        planes.provider.start("demo-prod")
    assert set(seen) == {
        "cluster/demo-stage/NameTaken",
        "cluster/second/EnvironmentTaken",
        "cluster/demo-prod/Unreachable",
        "environment/eu",
    }
    assert "ucp clusters forget demo-prod" in seen["cluster/demo-prod/Unreachable"].next


def test_a_reconciler_that_is_gone_and_a_token_that_is_not_renewed(world: World) -> None:
    world.start(lease_seconds=1)
    world.declare()
    world.await_registered()
    world.stop()
    past = time.time() - 86_400
    change = {
        "metadata": {
            "annotations": {names.TOKEN_ISSUED: stamp(past), names.TOKEN_EXPIRES: stamp(past + 60)}
        }
    }
    world.core.patch(SECRET, "cluster-demo-stage", ARGOCD, change)
    eventually(lambda: "token/demo-stage" in found(world), "the finding")
    assert found(world)["token/demo-stage"].severity == "error"
