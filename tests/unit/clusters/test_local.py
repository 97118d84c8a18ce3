"""What the makers of this machine are asked for."""

from __future__ import annotations

from pathlib import Path

from k8s_ucp.clusters.embedded.settings import Parameters
from k8s_ucp.clusters.local import core_request, environment_requests
from k8s_ucp.topology import default
from k8s_ucp.workspace import Workspace


def test_a_core_s_api_server_collects_as_often_as_an_app_cluster_s(tmp_path: Path) -> None:
    topology = default()
    core = core_request(Workspace(tmp_path), topology)
    found = environment_requests(topology)[topology.spec.core.provider]
    assert [Parameters.of(each).gogc for each in (core, *found)] == [75, 75, 75]
