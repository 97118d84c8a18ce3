"""`ucp clusters forget`: the only way to deregister a cluster that is still declared."""

from __future__ import annotations

import time

import pytest

from k8s_ucp import names
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.kube import (
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    SECRET,
    SERVICE_ACCOUNT,
    Unauthorized,
)
from k8s_ucp.reconciler.registration import forced_deregistration
from tests.integration.reconciler.conftest import Planes
from tests.integration.reconciler.registration.planted_secrets import kubeconfig_secret
from tests.integration.reconciler.world import Clusters, as_argo_cd, eventually

pytestmark = pytest.mark.engines


def forget(world: Clusters, cluster: str, by: str = forced_deregistration.PERSON) -> None:
    registration = forced_deregistration.registration_of(world.core, cluster)
    forced_deregistration.forget(world.core, registration, by)


def test_a_forgotten_cluster_stays_deregistered_until_forgetting_is_undone(world: Clusters) -> None:
    world.start()
    world.declare()
    before = world.await_registered()
    forget(world, "demo-stage")
    eventually(lambda: world.cluster_secret() is None, "deregistration")
    world.await_condition(names.REGISTERED, "False", "Forgotten")
    # The declaration and the cluster still exist; our identities are deleted.
    app = world.apps["demo-stage"]
    assert app.find(CLUSTER_ROLE_BINDING, names.ARGOCD_IDENTITY) is None
    eventually(
        lambda: app.find(SERVICE_ACCOUNT, names.ARGOCD_IDENTITY, names.IDENTITY_NAMESPACE) is None,
        "the end of the identity",
    )
    with as_argo_cd(before) as kube:

        def turned_down() -> bool:
            try:
                kube.list_all(SECRET, "default")
            except Unauthorized:
                return True
            except UcpError:
                return False
            return False

        eventually(turned_down, "the end of its token")
    eventually(lambda: app.find(NAMESPACE, names.IDENTITY_NAMESPACE) is None, "its namespace")
    world.stop()
    world.start()
    time.sleep(1)
    assert world.cluster_secret() is None
    assert forced_deregistration.undo_teardown(world.core) == [], "a person's word counts"
    forced_deregistration.undo(world.core, "demo-stage")
    world.await_registered()
    forget(world, "demo-stage", forced_deregistration.TEARDOWN)
    eventually(lambda: world.cluster_secret() is None, "deregistration by a teardown")
    world.await_condition(names.REGISTERED, "False", "BeingDestroyed")
    assert forced_deregistration.undo_teardown(world.core) == ["demo-stage"]
    world.await_registered()


@pytest.mark.slow
def test_an_unreachable_cluster_can_be_forgotten(world: Clusters, planes: Planes) -> None:
    world.start()
    world.declare("prod")
    world.await_registered("demo-prod")
    planes.provider.stop("demo-prod")
    try:
        world.await_condition(names.REACHABLE, "False", None, "demo-prod")
        forget(world, "demo-prod")
        eventually(lambda: world.cluster_secret("demo-prod") is None, "deregistration")
    finally:
        planes.provider.start("demo-prod")


@pytest.mark.slow
def test_a_cluster_of_a_labeled_secret_can_be_forgotten(world: Clusters) -> None:
    world.start()
    labels = {names.ENVIRONMENT: "prod", names.KUBECONFIG_LABEL: ""}
    kubeconfig_secret(world, "demo-prod-kubeconfig", "crossplane-system", labels=labels)
    eventually(lambda: world.cluster_secret("demo-prod"), "the registration")
    forget(world, "demo-prod")
    eventually(lambda: world.cluster_secret("demo-prod") is None, "deregistration")
    time.sleep(1)
    assert world.cluster_secret("demo-prod") is None
    forced_deregistration.undo(world.core, "demo-prod")
    eventually(lambda: world.cluster_secret("demo-prod"), "the registration, again")


def test_unknown_and_foreign_clusters_cannot_be_forgotten(world: Clusters) -> None:
    world.core.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "cluster-mine",
                "namespace": names.ARGOCD_NAMESPACE,
                "labels": {names.SECRET_TYPE: "cluster"},
            },
            "stringData": {"name": "mine", "server": "https://mine.example", "config": "{}"},
        }
    )
    world.start()
    world.declare()
    world.await_registered()
    for name in ("other", "mine"):
        with pytest.raises(UcpError, match="registered: demo-stage"):
            forget(world, name)
    with pytest.raises(UcpError, match="cluster demo-stage was not deregistered"):
        forced_deregistration.undo(world.core, "demo-stage")
    with pytest.raises(UsageError, match="unknown cluster 'other'; available: demo-stage"):
        forced_deregistration.undo(world.core, "other")
