"""Leaving: Applications go first, while credentials work; nothing hangs; nothing foreign goes."""

from __future__ import annotations

import time
from typing import Any

import pytest

from k8s_ucp import names
from k8s_ucp.kube import APPLICATION, LOCAL_CLUSTER, SECRET, SERVICE, Object
from tests.integration.reconciler.conftest import Planes
from tests.integration.reconciler.world import ARGOCD, CLUSTERS, World, eventually

pytestmark = pytest.mark.engines

OURS = {names.MANAGED_BY: names.OURS}


def application(world: World, name: str, cluster: str, **metadata: Any) -> Object:
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


def leaving(world: World, name: str) -> bool:
    item = world.core.find(APPLICATION, name, ARGOCD)
    return item is not None and "deletionTimestamp" in item["metadata"]


def is_asked_for(world: World, name: str) -> bool:
    """Argo CD takes the annotation off once it has looked."""
    notes = world.core.get(APPLICATION, name, ARGOCD)["metadata"].get("annotations") or {}
    return "argocd.argoproj.io/refresh" in notes


def finish(world: World, name: str) -> None:
    """What Argo CD does once everything that an Application deployed is gone."""
    world.core.patch(APPLICATION, name, ARGOCD, {"metadata": {"finalizers": None}})


def test_applications_leave_before_the_cluster(world: World) -> None:
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
    # It still waits, with the cluster running and the credentials in place.
    assert world.provider.deleted == []
    assert world.cluster_secret() is not None
    finish(world, "echo-stage")
    world.await_gone("demo-stage")
    assert world.provider.deleted == ["demo-stage"]
    assert world.core.find(APPLICATION, "by-hand", ARGOCD) is not None
    assert not leaving(world, "by-hand")
    assert not leaving(world, "echo-prod")
    assert world.cluster_secret("demo-prod") is not None


def test_what_argo_cd_prunes_drains_too(world: World) -> None:
    """In the foreground: the garbage collector takes the kubeconfig Secret before anything else."""
    world.start()
    world.declare()
    world.await_registered()
    application(world, "echo-stage", "demo-stage", labels=OURS)
    world.core.delete(LOCAL_CLUSTER, "demo-stage", CLUSTERS, propagation="Foreground")
    eventually(
        lambda: world.core.find(SECRET, "demo-stage-kubeconfig", CLUSTERS) is None, "its end"
    )
    eventually(lambda: leaving(world, "echo-stage"), "the Application's deletion")
    time.sleep(1)
    assert world.cluster_secret() is not None
    assert world.core.find(SECRET, "demo-stage-kubeconfig", CLUSTERS) is None
    finish(world, "echo-stage")
    world.await_gone()
    assert world.provider.deleted == ["demo-stage"]


def test_the_deletion_cascades_where_the_application_did_not_ask_for_it(world: World) -> None:
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


def test_a_drain_goes_on_after_a_restart(world: World) -> None:
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


def test_a_drain_that_never_ends_is_given_up(world: World) -> None:
    world.start(drain_seconds=2)
    world.declare()
    world.await_registered()
    application(world, "echo-stage", "demo-stage", labels=OURS)
    world.delete()
    world.await_gone()
    assert world.provider.deleted == ["demo-stage"]
    # Argo CD drops the finalizer of an Application whose cluster it doesn't know any more.
    assert leaving(world, "echo-stage")


def test_a_dead_cluster_can_t_hang_its_deletion(world: World, planes: Planes) -> None:
    world.start(drain_seconds=60, dead_seconds=1)
    world.declare("prod")
    world.await_registered("demo-prod")
    application(world, "echo-prod", "demo-prod", labels=OURS)
    planes.provider.stop("demo-prod")
    try:
        world.delete("demo-prod")
        world.await_gone("demo-prod")
    finally:
        planes.provider.start("demo-prod")
    assert leaving(world, "echo-prod")


def test_a_leaving_cluster_that_is_silent_is_told_of_and_waited_for(
    world: World, planes: Planes
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


def test_a_load_balancer_that_a_cloud_gave_is_waited_for(world: World) -> None:
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


def test_one_declared_anew_during_its_drain_comes_back_clean(world: World) -> None:
    world.start()
    world.declare()
    before = world.await_registered()
    world.delete()
    world.await_gone()
    world.declare()
    after = world.await_registered()
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["metadata"]["labels"][names.ENVIRONMENT] == "stage"
