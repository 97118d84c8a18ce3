"""The steps of a start, depending on the provider of the core."""

from __future__ import annotations

import pytest

from k8s_ucp import plans
from k8s_ucp.topology import CoreCluster, Topology, default
from k8s_ucp.topology.parts import Addons
from tests.unit.gitops.topologies import demo

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
def test_images_are_loaded_only_into_nodes_of_kind_clusters(provider: str) -> None:
    found = steps(provider)
    assert found.keys() >= PODS
    loaded = {"build-images", "save-images", "load-images"}
    assert loaded & found.keys() == (loaded if provider == "kind" else set())
    assert ("load-images" in found["start-argocd"]) == (provider == "kind")


@pytest.mark.parametrize("provider", ["embedded", "kind", "gke", "existing"])
def test_an_existing_core_is_checked_before_anything_is_applied(provider: str) -> None:
    found = steps(provider)
    assert ("claim-core" in found) == (provider == "existing")
    assert ("claim-core" in found["apply-foundation"]) == (provider == "existing")


@pytest.mark.parametrize(
    ("ingress", "wanted", "other"),
    [
        ("traefik", "await-ingress", "forward-argocd"),
        ("none", "forward-argocd", "await-ingress"),
        (None, "forward-argocd", "await-ingress"),
    ],
)
def test_the_start_waits_for_the_ingress_or_forwards_a_port(
    ingress: str | None, wanted: str, other: str
) -> None:
    core = CoreCluster.model_validate({"provider": "kind"})
    found = demo(core=core, addons=Addons.model_validate({"ingress": ingress}))
    ids = {each.step.id for each in plans.start(found).tasks}
    assert wanted in ids
    assert other not in ids
