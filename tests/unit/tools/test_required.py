"""The tools that a topology needs: only those that it uses."""

from __future__ import annotations

from k8s_ucp.tools.catalogue import EMBEDDED
from k8s_ucp.tools.required import needed_tools
from tests.unit.gitops.topologies import demo, on_clouds


def test_needed_tools_depend_on_add_ons() -> None:
    assert needed_tools(demo()) == EMBEDDED
    assert set(needed_tools(demo(addons={"argo-rollouts": True}))) - set(EMBEDDED) == {
        "argo-rollouts"
    }
    assert needed_tools(demo(addons={"ingress": "traefik"})) == EMBEDDED
    assert "argo-rollouts" not in needed_tools(on_clouds(addons={"argo-rollouts": True}))
