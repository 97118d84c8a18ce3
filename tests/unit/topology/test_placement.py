"""Decisions that depend on where a topology's clusters run."""

from __future__ import annotations

import pytest

from k8s_ucp.topology import default
from k8s_ucp.topology.parts import Clouds
from k8s_ucp.topology.placement import with_rollouts
from tests.unit.gitops.topologies import demo, on_clouds

SIMULATED = Clouds.model_validate({"aws": {"simulated": True}})


@pytest.mark.parametrize(
    ("clouds", "providers", "proposed"),
    [
        (Clouds(), ("embedded", "embedded"), "local"),
        (Clouds(), ("eks", "eks"), "local"),
        (SIMULATED, ("eks", "eks"), "aws"),
        (SIMULATED, ("embedded", "embedded"), "aws"),
        (SIMULATED, ("eks", "embedded"), "aws"),
        (SIMULATED, (), "aws"),
        # Real pods can't reach a simulated cloud's databases, which listen on this machine.
        (SIMULATED, ("eks", "kind"), "local"),
        (SIMULATED, ("gke", "embedded"), "local"),
    ],
)
def test_the_proposed_database_provider_is_one_that_holds_data(
    clouds: Clouds, providers: tuple[str, ...], proposed: str
) -> None:
    made_by = {f"e{number}": each for number, each in enumerate(providers)}
    topology = default("demo", made_by, ("quote",), providers=made_by, clouds=clouds)
    assert [(each.name, each.provider) for each in topology.spec.databases] == [
        ("quotes", proposed)
    ]


def test_argo_rollouts_runs_in_environments_with_simulated_pods() -> None:
    assert with_rollouts(demo()) == []
    assert with_rollouts(demo(addons={"argo-rollouts": True})) == ["stage", "prod"]
    assert with_rollouts(on_clouds(addons={"argo-rollouts": True})) == []
