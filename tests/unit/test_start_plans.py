"""Which steps a start has, by where the core runs."""

from __future__ import annotations

import pytest

from k8s_ucp import plans
from k8s_ucp.topology import CoreCluster, Topology, default

PODS = {
    "start-argocd",
    "start-reconciler",
    "start-crossplane",
    "start-local-clusters",
    "forward-argocd",
}


def topology(provider: str) -> Topology:
    core = CoreCluster.model_validate({"provider": provider})
    return default(environments=(), core=core)


def steps(provider: str) -> dict[str, tuple[str, ...]]:
    return {each.step.id: each.after for each in plans.start(topology(provider)).tasks}


@pytest.mark.parametrize("provider", ["kind", "gke", "existing"])
def test_nodes_are_given_images_only_where_they_are_ours(provider: str) -> None:
    found = steps(provider)
    assert found.keys() >= PODS
    loaded = {"build-images", "save-images", "load-images"}
    assert loaded & found.keys() == (loaded if provider == "kind" else set())
    assert ("load-images" in found["start-argocd"]) == (provider == "kind")


@pytest.mark.parametrize("provider", ["embedded", "kind", "gke", "existing"])
def test_what_others_made_is_looked_at_before_anything_is_applied(provider: str) -> None:
    found = steps(provider)
    assert ("claim-core" in found) == (provider == "existing")
    assert ("claim-core" in found["apply-foundation"]) == (provider == "existing")
