"""Access to a topology: Argo CD's URL on this machine, and clusters without the programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.cluster_provider import ClusterRequest
from k8s_ucp.context import TopologyView
from k8s_ucp.errors import ProgramMissing
from k8s_ucp.topology.parts import Addons, CoreCluster
from k8s_ucp.workspace import Workspace
from tests.unit.gitops.topologies import demo


@pytest.mark.parametrize(
    ("ports", "url"),
    [
        (None, "http://127.0.0.1"),
        ({"http": 18080, "https": 18443}, "http://127.0.0.1:18080"),
    ],
)
def test_the_argo_cd_url_has_the_http_port_of_the_core(
    ports: dict[str, int] | None, url: str
) -> None:
    core = CoreCluster.model_validate({"provider": "kind", "ports": ports})
    topology = demo(core=core, addons=Addons.model_validate({"ingress": "traefik"}))
    view = TopologyView(Workspace.at(Path("/nowhere")), topology)
    assert view.argocd_url == url


def test_a_topology_view_cannot_create_clusters(tmp_path: Path) -> None:
    view = TopologyView(Workspace.at(tmp_path), demo())
    with pytest.raises(ProgramMissing, match="the embedded engine is not installed"):
        view.provider.create(ClusterRequest("demo-core"), lambda _: None)
    assert not view.provider.state("demo-core").exists
