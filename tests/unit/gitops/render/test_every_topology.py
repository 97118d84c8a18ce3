"""For any topology, the rendered files are valid and rendering is deterministic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from k8s_ucp.gitops.manifests.build_many import objects
from k8s_ucp.gitops.render.app_manifests import read_manifests
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.topology import Topology
from tests.random_topologies import topologies
from tests.unit.gitops.topologies import FACTS


@settings(deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))
@given(topologies())
def test_any_topology_is_rendered_to_valid_files_deterministically(
    given_topology: tuple[Topology, bytes],
) -> None:
    topology, text = given_topology
    inputs = replace(
        FACTS, topology_file=text, manifests=read_manifests(topology, Path()), engine={}
    )
    rendered = render(topology, inputs)
    assert rendered == render(topology, inputs)
    for files in (rendered.core, rendered.apps):
        for path, content in files.items():
            if path.endswith((".yaml", ".yml")):
                objects(content.decode())
    for app in topology.spec.apps:
        for environment in topology.spec.environments:
            assert f"apps/{app.name}/overlays/{environment.name}/kustomization.yaml" in (
                rendered.apps
            )
