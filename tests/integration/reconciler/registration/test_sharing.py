"""An app cluster in use by another topology or a person: we are refused and change nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from k8s_ucp import names
from k8s_ucp.kube import (
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE,
    SECRET,
    SERVICE_ACCOUNT,
    Kube,
    Object,
)
from k8s_ucp.reconciler.registration.notes import read_notes
from tests.integration.reconciler.mirror_world import PROD, SOURCES, STAGE, Mirrors
from tests.integration.reconciler.registration.planted_secrets import kubeconfig_secret
from tests.integration.reconciler.world import ARGOCD, Clusters, as_argo_cd, eventually

pytestmark = pytest.mark.engines


def mark(app: Kube, topology: str | None) -> None:
    """Label the identities' namespace with a topology, or none, if the namespace exists."""
    change = {"metadata": {"labels": {names.TOPOLOGY: topology}}}
    if app.find(NAMESPACE, names.IDENTITY_NAMESPACE):
        app.patch(NAMESPACE, names.IDENTITY_NAMESPACE, None, change)


@pytest.fixture
def apps(world: Clusters) -> Iterator[Mapping[str, Kube]]:
    """The app clusters, claimed by no topology before and after the test."""
    for each in world.apps.values():
        mark(each, None)
    yield world.apps
    world.stop()
    for each in world.apps.values():
        mark(each, None)


def state(app: Kube) -> dict[str, Any]:
    """Resource versions of all objects of the identities."""
    items: list[Object | None] = [
        app.find(NAMESPACE, names.IDENTITY_NAMESPACE),
        app.find(CLUSTER_ROLE_BINDING, names.ARGOCD_IDENTITY),
        *app.list_all(SERVICE_ACCOUNT, names.IDENTITY_NAMESPACE),
        *app.list_all(ROLE, labels=f"{names.MANAGED_BY}={names.OURS}"),
    ]
    return {
        f"{each['kind']} {each['metadata']['name']}": each["metadata"]["resourceVersion"]
        for each in items
        if each
    }


def test_a_second_topology_is_refused_and_the_first_keeps_its_access(
    world: Clusters, apps: Mapping[str, Kube]
) -> None:
    app, source = apps[PROD], f"{SOURCES}/{PROD}-kubeconfig"
    labels = {names.ENVIRONMENT: "prod", names.KUBECONFIG_LABEL: ""}
    kubeconfig_secret(world, f"{PROD}-kubeconfig", SOURCES, labels=labels)
    world.start(topology="other")
    world.await_note(source, "Registered")
    theirs = world.cluster_secret(PROD)
    assert theirs is not None
    world.stop()
    # From here on, another core declares the same cluster.
    world.core.delete(SECRET, f"cluster-{PROD}", ARGOCD)
    before = state(app)
    world.start()
    world.await_note(source, "ClusterTaken")
    assert "used by topology other" in str(read_notes(world.core)[source])
    world.core.delete(SECRET, f"{PROD}-kubeconfig", SOURCES)
    eventually(lambda: source not in read_notes(world.core), "the end of the note")
    assert state(app) == before
    with as_argo_cd(theirs) as kube:
        kube.list_all(SECRET, "default")
    kubeconfig_secret(world, f"{PROD}-kubeconfig", SOURCES, labels=labels)
    world.await_note(source, "ClusterTaken")
    assert world.cluster_secret(PROD) is None
    mark(app, None)
    world.await_note(source, "Registered")
    namespace = app.get(NAMESPACE, names.IDENTITY_NAMESPACE)
    assert namespace["metadata"]["labels"][names.TOPOLOGY] == "demo"


def test_a_registration_from_before_the_label_deletes_nothing_of_the_new_owner(
    world: Clusters, apps: Mapping[str, Kube]
) -> None:
    """Topologies may share a cluster since before the label existed: the first to renew owns it."""
    app = apps[STAGE]
    mirrors = Mirrors(world).started("stage")
    mirrors.source("conn", {"password": "first"})
    mirrors.syncer("conn", {"sourceName": "conn", "targetSelector": {}, "targetNamespace": "quote"})
    mirrors.await_ready("conn")
    world.stop()
    mark(app, "other")
    before = state(app)
    change = {"metadata": {"annotations": {names.TOKEN_ISSUED: None}}}
    world.core.patch(SECRET, f"cluster-{STAGE}", ARGOCD, change)
    world.start()
    world.await_condition(names.REGISTERED, "True", "ClusterTaken")
    assert world.cluster_secret() is not None
    mirrors.source("conn", {"password": "second"})
    eventually(lambda: "used by topology other" in str(mirrors.status("conn")), "a word about it")
    assert mirrors.copy("conn") is not None
    world.delete()
    world.await_gone()
    assert state(app) == before
    mirrors.core.delete(SECRET, "conn", SOURCES)


def test_a_foreign_binding_with_our_name_is_left_alone_and_reported(
    world: Clusters, apps: Mapping[str, Kube]
) -> None:
    app = apps[STAGE]
    app.create(
        {
            "apiVersion": CLUSTER_ROLE_BINDING.api_version,
            "kind": CLUSTER_ROLE_BINDING.kind,
            "metadata": {"name": names.ARGOCD_IDENTITY},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "view",
            },
        }
    )
    world.start()
    world.declare()
    world.await_condition(names.REGISTERED, "False", "IdentityTaken")
    found = app.get(CLUSTER_ROLE_BINDING, names.ARGOCD_IDENTITY)
    assert found["roleRef"]["name"] == "view"
    app.delete(CLUSTER_ROLE_BINDING, names.ARGOCD_IDENTITY)
    world.await_registered()
