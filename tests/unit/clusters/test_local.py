"""The requests that providers on this machine get."""

from __future__ import annotations

from pathlib import Path

from k8s_ucp.clusters.embedded.settings import Parameters
from k8s_ucp.clusters.local import core_request, environment_requests
from k8s_ucp.topology import default
from k8s_ucp.workspace import Workspace


def test_core_and_app_clusters_have_the_same_garbage_collection_setting(tmp_path: Path) -> None:
    topology = default()
    core = core_request(Workspace(tmp_path), topology)
    found = environment_requests(topology)[topology.spec.core.provider]
    assert [Parameters.of(each).gogc for each in (core, *found)] == [100, 100, 100]
