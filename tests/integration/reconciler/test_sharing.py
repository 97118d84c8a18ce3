"""An app cluster that another topology, or a person, has: we are refused and break nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from k8s_ucp.kube import (
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE,
    SECRET,
    SERVICE_ACCOUNT,
    Kube,
    Object,
)
from k8s_ucp.reconciler import marks
from tests.integration.reconciler.mirror_world import SOURCES, Mirrors
from tests.integration.reconciler.world import ARGOCD, World, as_argo_cd, eventually

pytestmark = pytest.mark.engines

STAGE = "demo-stage"


def mark(app: Kube, topology: str | None) -> None:
    """Whose the identities' namespace is said to be, if it is there."""
    change = {"metadata": {"labels": {marks.TOPOLOGY: topology}}}
    if app.find(NAMESPACE, marks.IDENTITY_NAMESPACE):
        app.patch(NAMESPACE, marks.IDENTITY_NAMESPACE, None, change)


@pytest.fixture
def app(world: World) -> Iterator[Kube]:
    """The app cluster of stage, used by nobody, before and after."""
    found = world.apps[STAGE]
    mark(found, None)
    yield found
    world.stop()
    mark(found, None)


def state(app: Kube) -> dict[str, Any]:
    """Everything that identities consist of."""
    items: list[Object | None] = [
        app.find(NAMESPACE, marks.IDENTITY_NAMESPACE),
        app.find(CLUSTER_ROLE_BINDING, marks.ARGOCD_IDENTITY),
        *app.list_all(SERVICE_ACCOUNT, marks.IDENTITY_NAMESPACE),
        *app.list_all(ROLE, labels=f"{marks.MANAGED_BY}={marks.OURS}"),
    ]
    return {
        f"{each['kind']} {each['metadata']['name']}": each["metadata"]["resourceVersion"]
        for each in items
        if each
    }


def test_a_second_topology_is_refused_and_the_first_goes_on(world: World, app: Kube) -> None:
    world.start(topology="other")
    world.declare()
    theirs = world.await_registered()
    world.stop()
    # From here on the core is another one, which declares the same cluster.
    world.core.delete(SECRET, f"cluster-{STAGE}", ARGOCD)
    before = state(app)
    world.start()
    world.await_condition(marks.REGISTERED, "False", "ClusterTaken")
    assert "used by topology other" in world.message(marks.REGISTERED)
    world.delete()
    eventually(lambda: world.local_cluster() is None, "its end")
    assert state(app) == before
    with as_argo_cd(theirs) as kube:
        kube.list_all(SECRET, "default")
    world.declare()
    world.await_condition(marks.REGISTERED, "False", "ClusterTaken")
    mark(app, None)
    world.await_registered()
    namespace = app.get(NAMESPACE, marks.IDENTITY_NAMESPACE)
    assert namespace["metadata"]["labels"][marks.TOPOLOGY] == "demo"


def test_one_that_was_registered_before_the_mark_takes_nothing_along(
    world: World, app: Kube
) -> None:
    """Two that shared a cluster before there were marks: the first to renew has it."""
    mirrors = Mirrors(world).started("stage")
    mirrors.source("conn", {"password": "first"})
    mirrors.syncer("conn", {"sourceName": "conn", "targetSelector": {}, "targetNamespace": "quote"})
    mirrors.await_ready("conn")
    world.stop()
    mark(app, "other")
    before = state(app)
    change = {"metadata": {"annotations": {marks.TOKEN_ISSUED: None}}}
    world.core.patch(SECRET, f"cluster-{STAGE}", ARGOCD, change)
    world.start()
    world.await_condition(marks.REGISTERED, "True", "ClusterTaken")
    assert world.cluster_secret() is not None
    mirrors.source("conn", {"password": "second"})
    eventually(lambda: "used by topology other" in str(mirrors.status("conn")), "a word about it")
    assert mirrors.copy("conn") is not None
    world.delete()
    world.await_gone()
    assert state(app) == before
    mirrors.core.delete(SECRET, "conn", SOURCES)


def test_a_person_s_binding_of_our_name_is_left_alone_and_told(world: World, app: Kube) -> None:
    app.create(
        {
            "apiVersion": CLUSTER_ROLE_BINDING.api_version,
            "kind": CLUSTER_ROLE_BINDING.kind,
            "metadata": {"name": marks.ARGOCD_IDENTITY},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "view",
            },
        }
    )
    world.start()
    world.declare()
    world.await_condition(marks.REGISTERED, "False", "IdentityTaken")
    found = app.get(CLUSTER_ROLE_BINDING, marks.ARGOCD_IDENTITY)
    assert found["roleRef"]["name"] == "view"
    app.delete(CLUSTER_ROLE_BINDING, marks.ARGOCD_IDENTITY)
    world.await_registered()
