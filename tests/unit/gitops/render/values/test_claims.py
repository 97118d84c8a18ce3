"""What a topology proposes for claims."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.gitops.render.repositories import render_team
from k8s_ucp.gitops.render.values.claims import ClaimRequest, check_is_composed, claim_flags
from k8s_ucp.topology import Environment, Team
from k8s_ucp.topology.parts import Clouds
from tests.unit.gitops.topologies import demo

SIMULATED = Clouds.model_validate({"aws": {"simulated": True}})


def environments(*providers: str) -> tuple[Environment, ...]:
    return tuple(
        Environment.model_validate({"name": f"env-{place}", "cluster": {"provider": each}})
        for place, each in enumerate(providers)
    )


@pytest.mark.parametrize(
    ("spec", "flags", "proposed"),
    [
        ({}, None, "Nothing creates claims here"),
        ({"clouds": SIMULATED}, {}, "`ucp claim new database NAME` writes"),
        ({"environments": environments("eks")}, {}, "`ucp claim new database NAME` writes"),
        (
            {"environments": environments("kind", "eks")},
            {"env": "env-1"},
            "`ucp claim new database NAME --env env-1` writes",
        ),
        ({"environments": ()}, None, "Nothing creates claims here"),
    ],
)
def test_a_team_is_proposed_only_claims_that_something_creates(
    spec: dict[str, Any], flags: dict[str, str] | None, proposed: str
) -> None:
    topology = demo(**spec)
    assert claim_flags(topology) == flags
    team = Team.model_validate({"name": "shop"})
    assert proposed in render_team(topology, team, None)["README.md"].decode()
    if flags is not None:
        names = {each.name: each for each in topology.spec.environments}
        first = topology.spec.environments[0]
        environment = names[flags["env"]] if "env" in flags else first
        check_is_composed(topology, environment, ClaimRequest("database", "orders"))
