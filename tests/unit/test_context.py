"""Where Argo CD answers on this machine, by what the topology says of its core and its ingress."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from k8s_ucp import plans
from k8s_ucp.cluster_provider import ClusterRequest
from k8s_ucp.context import StartContext, TopologyView
from k8s_ucp.errors import ProgramMissing
from k8s_ucp.topology import Topology
from k8s_ucp.topology.parts import Addons, CoreCluster
from k8s_ucp.workspace import Workspace
from tests.unit.gitops.topologies import demo


def topology(ingress: str | None, **core: Any) -> Topology:
    return demo(
        core=CoreCluster.model_validate({"provider": "kind", **core}),
        addons=Addons.model_validate({"ingress": ingress}),
    )


@pytest.mark.parametrize(
    ("ports", "url"),
    [
        (None, "http://127.0.0.1"),
        ({"http": 18080, "https": 18443}, "http://127.0.0.1:18080"),
    ],
)
def test_the_address_is_the_port_of_the_core(ports: dict[str, int] | None, url: str) -> None:
    context = StartContext(Workspace.at(Path("/nowhere")), topology("traefik", ports=ports))
    assert context.argocd_url == url


@pytest.mark.parametrize(
    ("ingress", "wanted", "other"),
    [
        ("traefik", "await-ingress", "forward-argocd"),
        ("none", "forward-argocd", "await-ingress"),
        (None, "forward-argocd", "await-ingress"),
    ],
)
def test_the_start_waits_for_one_way_in(ingress: str | None, wanted: str, other: str) -> None:
    steps = {each.step.id for each in plans.start(topology(ingress)).tasks}
    assert wanted in steps
    assert other not in steps


def test_a_view_makes_nothing(tmp_path: Path) -> None:
    view = TopologyView(Workspace.at(tmp_path), demo())
    with pytest.raises(ProgramMissing, match="the embedded engine is not installed"):
        view.provider.create(ClusterRequest("demo-core"), lambda _: None)
    assert not view.provider.state("demo-core").exists
