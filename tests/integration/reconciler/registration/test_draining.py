"""Drains: Applications are deleted first, nothing hangs, and nothing foreign is deleted."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from k8s_ucp import names
from k8s_ucp.cluster_provider import ClusterState, ProviderInfo
from k8s_ucp.clusters.api_server import not_ready
from k8s_ucp.kube import APPLICATION, LOCAL_CLUSTER, SECRET, SERVICE, Object
from tests.integration.reconciler.conftest import Planes
from tests.integration.reconciler.world import ARGOCD, CLUSTERS, Clusters, Standing, eventually

pytestmark = pytest.mark.engines

OURS = {names.MANAGED_BY: names.OURS}


def application(world: Clusters, name: str, cluster: str, **metadata: Any) -> Object:
    return world.core.create(
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": name, "namespace": ARGOCD, **metadata},
            "spec": {
                "project": "applications",
                "destination": {"name": cluster, "namespace": "echo"},
                "source": {"repoURL": "file:///nowhere", "path": "apps/echo"},
            },
        }
    )


def leaving(world: Clusters, name: str) -> bool:
    item = world.core.find(APPLICATION, name, ARGOCD)
    return item is not None and "deletionTimestamp" in item["metadata"]


def is_asked_for(world: Clusters, name: str) -> bool:
    """Whether a refresh is requested; Argo CD removes the annotation once it has reconciled."""
    notes = world.core.get(APPLICATION, name, ARGOCD)["metadata"].get("annotations") or {}
    return "argocd.argoproj.io/refresh" in notes


def finish(world: Clusters, name: str) -> None:
    """Remove the finalizers, as Argo CD does once an Application's resources are deleted."""
    world.core.patch(APPLICATION, name, ARGOCD, {"metadata": {"finalizers": None}})


def test_applications_are_deleted_before_the_cluster(world: Clusters) -> None:
    world.start()
    world.declare("stage")
    world.declare("prod")
    world.await_registered("demo-stage")
    world.await_registered("demo-prod")
    application(world, "echo-stage", "demo-stage", labels=OURS)
    application(world, "echo-prod", "demo-prod", labels=OURS)
    application(world, "by-hand", "demo-stage")
    world.delete("demo-stage")
    eventually(lambda: leaving(world, "echo-stage"), "the Application's deletion")
    secret = world.cluster_secret()
    assert secret is not None
    assert names.ENVIRONMENT not in secret["metadata"]["labels"]
    assert secret["metadata"]["labels"][names.DRAINING] == "stage"
    world.await_condition(names.DRAINED, "False", "Draining")
    failed = {"conditions": [{"type": "DeletionError", "message": "connection refused"}]}
    world.core.patch(APPLICATION, "echo-stage", ARGOCD, {"status": failed})
    eventually(lambda: is_asked_for(world, "echo-stage"), "Argo CD is to try again at once")
    world.await_condition(names.READY, "False", "Draining")
    assert "echo-stage" in world.message(names.DRAINED)
    time.sleep(1)
    # It still waits, with the cluster running and the credentials valid.
    assert world.provider.deleted == []
    assert world.cluster_secret() is not None
    finish(world, "echo-stage")
    world.await_gone("demo-stage")
    assert world.provider.deleted == ["demo-stage"]
    assert world.core.find(APPLICATION, "by-hand", ARGOCD) is not None
    assert not leaving(world, "by-hand")
    assert not leaving(world, "echo-prod")
    assert world.cluster_secret("demo-prod") is not None


def test_a_cluster_pruned_by_argo_cd_is_drained_too(world: Clusters) -> None:
    """Argo CD deletes in the foreground, so the kubeconfig Secret may be collected first.

    Only if the garbage collector looks at the Secret before it looks at the owner: deleted here.
    """

    def collect() -> None:
        world.core.delete(SECRET, "demo-stage-kubeconfig", CLUSTERS)

    world.start()
    world.declare()
    world.await_registered()
    application(world, "echo-stage", "demo-stage", labels=OURS)
    world.core.delete(LOCAL_CLUSTER, "demo-stage", CLUSTERS, propagation="Foreground")
    collect()
    eventually(lambda: leaving(world, "echo-stage"), "the Application's deletion")
    # A reconciliation that began before the deletion may have written it once more.
    collect()
    time.sleep(1)
    assert world.cluster_secret() is not None
    finish(world, "echo-stage")
    world.await_gone()
    assert world.provider.deleted == ["demo-stage"]


def test_an_application_without_a_finalizer_is_deleted_with_its_resources(world: Clusters) -> None:
    world.start()
    world.declare()
    world.await_registered()
    application(world, "echo-stage", "demo-stage", labels=OURS)
    world.delete()
    eventually(lambda: leaving(world, "echo-stage"), "the Application's deletion")
    item = world.core.get(APPLICATION, "echo-stage", ARGOCD)
    assert item["metadata"]["finalizers"] == [names.APP_FINALIZER]
    finish(world, "echo-stage")
    world.await_gone()


def test_a_drain_continues_after_a_restart(world: Clusters) -> None:
    world.start()
    world.declare()
    world.await_registered()
    application(world, "echo-stage", "demo-stage", labels=OURS)
    world.delete()
    world.await_condition(names.DRAINED, "False", "Draining")
    world.stop()
    finish(world, "echo-stage")
    assert world.local_cluster() is not None
    world.start()
    world.await_gone()


def test_a_drain_that_never_completes_times_out(world: Clusters) -> None:
    world.start(drain_seconds=2)
    world.declare()
    world.await_registered()
    application(world, "echo-stage", "demo-stage", labels=OURS)
    world.delete()
    world.await_gone()
    assert world.provider.deleted == ["demo-stage"]
    # Argo CD removes the finalizer of an Application whose cluster it doesn't know any more.
    assert leaving(world, "echo-stage")


def delete_while_silent(world: Clusters, planes: Planes) -> None:
    """Register demo-prod with an app, delete it while it doesn't respond, and await its end."""
    world.declare("prod")
    world.await_registered("demo-prod")
    application(world, "echo-prod", "demo-prod", labels=OURS)
    planes.provider.stop("demo-prod")
    try:
        world.delete("demo-prod")
        world.await_gone("demo-prod")
    finally:
        planes.provider.start("demo-prod")


def test_an_unreachable_cluster_does_not_block_its_deletion(
    world: Clusters, planes: Planes
) -> None:
    world.start(drain_seconds=600, dead_seconds=1)
    delete_while_silent(world, planes)
    assert leaving(world, "echo-prod")


class Simulated(Standing):
    """Its clusters hold nothing outside of them, and are ready as long as they respond."""

    info = ProviderInfo("embedded", simulated=True)

    def state(self, name: str) -> ClusterState:
        return replace(super().state(name), ready=not_ready(self.configs[name]) is None)


@pytest.mark.slow
def test_a_simulated_cluster_that_is_broken_is_deleted_without_a_drain(
    world: Clusters, planes: Planes
) -> None:
    provider = Simulated(world.provider.configs)
    world.start(provider=provider, drain_seconds=600, dead_seconds=600)
    delete_while_silent(world, planes)
    assert provider.deleted == ["demo-prod"]


def test_a_cluster_that_is_unreachable_during_its_drain_is_reported_and_awaited(
    world: Clusters, planes: Planes
) -> None:
    world.start(drain_seconds=600, dead_seconds=600)
    world.declare("prod")
    world.await_registered("demo-prod")
    application(world, "echo-prod", "demo-prod", labels=OURS)
    planes.provider.stop("demo-prod")
    try:
        world.delete("demo-prod")
        world.await_condition(names.DRAINED, "False", "Unreachable", "demo-prod")
        assert world.cluster_secret("demo-prod")
    finally:
        planes.provider.start("demo-prod")
    world.await_condition(names.DRAINED, "False", "Draining", "demo-prod")
    finish(world, "echo-prod")
    world.await_gone("demo-prod")


def test_a_drain_waits_for_load_balancers_with_addresses(world: Clusters) -> None:
    world.start()
    world.declare()
    world.await_registered()
    app = world.apps["demo-stage"]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    }
    app.apply(service)
    try:
        address = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
        app.patch(SERVICE, "web", "default", address, subresource="status")
        world.delete()
        eventually(
            lambda: "default/web" in world.message(names.READY), "a word about the load balancer"
        )
        assert world.provider.deleted == []
    finally:
        app.delete(SERVICE, "web", "default")
    world.await_gone()


def test_a_cluster_declared_again_after_its_deletion_is_registered_anew(world: Clusters) -> None:
    world.start()
    world.declare()
    before = world.await_registered()
    world.delete()
    world.await_gone()
    world.declare()
    after = world.await_registered()
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["metadata"]["labels"][names.ENVIRONMENT] == "stage"
