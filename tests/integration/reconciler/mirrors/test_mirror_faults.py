"""Mirrors during outages: nothing is deleted, nothing hangs, everything recovers."""

from __future__ import annotations

import time
from typing import Any

import pytest

from k8s_ucp import names
from k8s_ucp.kube import CONFIG_MAP, EVENT, ROLE, SECRET, SYNCER, Kube, KubeError
from k8s_ucp.reconciler.mirrors import session
from tests.integration.reconciler.conftest import Planes
from tests.integration.reconciler.mirror_world import (
    ALL,
    PROD,
    SOURCES,
    STAGE,
    Mirrors,
    denying,
)
from tests.integration.reconciler.world import Clusters, eventually

pytestmark = pytest.mark.engines

DB = {"password": "first"}
SELECTING: dict[str, Any] = {
    "sourceSelector": {"matchLabels": {"tier": "db"}},
    "targetNamespace": "quote",
    **ALL,
}


@pytest.fixture
def mirrors(world: Clusters) -> Mirrors:
    found = Mirrors(world).started("stage", "prod", mirror_leave_seconds=3, watch_seconds=2)
    for number in range(5):
        found.source(f"db-{number}", DB, labels={"tier": "db"})
    found.syncer("all", SELECTING)
    for cluster in (STAGE, PROD):
        found.await_copy("db-4", DB, cluster=cluster)
    eventually(lambda: found.status("all").get("synced") == 10, "all copies")
    return found


def copy_names(kube: Kube) -> list[str]:
    return [
        each["metadata"]["name"] for each in kube.list_all(SECRET, "quote", labels=names.MIRROR)
    ]


def test_an_unreachable_cluster_is_reported_and_catches_up_later(
    mirrors: Mirrors, planes: Planes
) -> None:
    planes.provider.stop(PROD)
    try:
        mirrors.source("db-0", {"password": "second"}, labels={"tier": "db"})
        mirrors.source("db-5", DB, labels={"tier": "db"})
        mirrors.core.delete(SECRET, "db-1", SOURCES)
        # Copies on the other cluster aren't delayed.
        mirrors.await_copy("db-0", {"password": "second"})
        mirrors.await_copy("db-5", DB)
        mirrors.await_none("db-1")
        mirrors.await_ready("all", "Unreachable")
        told = {each["cluster"]: each for each in mirrors.status("all")["targets"]}
        assert told[STAGE]["conditions"][0]["status"] == "True"
        assert told[PROD]["conditions"][0]["reason"] == "Unreachable"
    finally:
        planes.provider.start(PROD)
    mirrors.await_copy("db-0", {"password": "second"}, cluster=PROD)
    mirrors.await_copy("db-5", DB, cluster=PROD)
    mirrors.await_none("db-1", cluster=PROD)
    mirrors.await_ready("all")


@pytest.mark.slow
def test_deletion_of_a_syncer_does_not_wait_forever_for_an_unreachable_cluster(
    mirrors: Mirrors, planes: Planes
) -> None:
    planes.provider.stop(PROD)
    try:
        mirrors.core.delete(SYNCER, "all", SOURCES)
        eventually(lambda: mirrors.core.find(SYNCER, "all", SOURCES) is None, "end of the Syncer")
        assert copy_names(mirrors.app()) == []
        left = mirrors.core.get(CONFIG_MAP, names.MIRRORS_LEFT, names.CLUSTERS_NAMESPACE)
        assert left["data"] == {PROD: f"{SOURCES}/all"}
        reasons = {each["reason"] for each in mirrors.core.list_all(EVENT, SOURCES)}
        assert "LeftEarly" in reasons
    finally:
        planes.provider.start(PROD)
    eventually(lambda: copy_names(mirrors.app(PROD)) == [], "what was left goes")
    eventually(
        lambda: not mirrors.core.get(CONFIG_MAP, names.MIRRORS_LEFT, "ucp-clusters").get("data"),
        "the note goes",
    )


def test_rights_revoked_in_one_namespace_do_not_stop_the_mirrors_of_a_cluster(
    mirrors: Mirrors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An app may keep reverting the Role in its own namespace."""
    monkeypatch.setattr(session, "_GRANT_AGAIN_SECONDS", 0.5)
    app, name = mirrors.app(), names.MIRROR_IDENTITY
    only = {"sourceName": "db-0", "sourceNamespace": SOURCES, "kinds": "secret"}
    mirrors.syncer("paper", {**only, "targetNamespace": "paper", "targetCluster": STAGE})
    mirrors.await_copy("db-0", DB, "paper")
    rule = {
        "apiGroups": ["rbac.authorization.k8s.io"],
        "operations": ["UPDATE"],
        "resources": ["roles"],
    }
    reverted = "object.metadata.namespace != 'paper' || !('watch' in object.rules[0].verbs)"
    role = app.get(ROLE, name, "paper")

    def is_denied() -> bool:
        try:
            change = {"metadata": {"annotations": {"tried": str(time.monotonic())}}}
            app.patch(ROLE, name, "paper", change)
        except KubeError:
            return True
        return False

    with denying(app, rule, {"expression": reverted}, is_denied):
        app.patch(ROLE, name, "paper", {"rules": [{**role["rules"][0], "verbs": ["get"]}]})
        mirrors.await_ready("paper", "NamespaceRefused")
        mirrors.source("db-0", {"password": "second"}, labels={"tier": "db"})
        mirrors.await_copy("db-0", {"password": "second"})
        mirrors.await_ready("all")
    mirrors.await_copy("db-0", {"password": "second"}, "paper")
    mirrors.await_ready("paper")


def test_copies_of_a_syncer_deleted_without_its_finalizer_are_kept(mirrors: Mirrors) -> None:
    """As after the loss of the core's data: the copies may be all that apps have."""
    mirrors.world.stop()
    mirrors.core.patch(SYNCER, "all", SOURCES, {"metadata": {"finalizers": None}})
    mirrors.core.delete(SYNCER, "all", SOURCES)
    mirrors.world.start()
    eventually(lambda: "deleted Syncer" in mirrors.world.logs.getvalue(), "it is told")
    time.sleep(2)
    assert len(copy_names(mirrors.app())) == 5
    # The same Syncer, applied again, adopts them without a write.
    versions = {each["metadata"]["resourceVersion"] for each in _copies(mirrors.app())}
    mirrors.syncer("all", SELECTING)
    mirrors.await_ready("all")
    assert {each["metadata"]["resourceVersion"] for each in _copies(mirrors.app())} == versions


def _copies(kube: Kube) -> list[dict[str, Any]]:
    return kube.list_all(SECRET, "quote", labels=names.MIRROR)


@pytest.mark.parametrize(
    "which",
    ["sources", *(pytest.param(each, marks=pytest.mark.slow) for each in ("syncers", "clusters"))],
)
def test_an_empty_list_deletes_no_copies(
    mirrors: Mirrors, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    whole = Kube.list_with_version
    emptied: list[str] = []

    def empty_once(self: Kube, kind: Any, namespace: Any = None, **kwargs: Any) -> Any:
        items, version = whole(self, kind, namespace, **kwargs)
        wanted = {
            "sources": kind is SECRET and namespace == SOURCES,
            "syncers": kind is SYNCER and namespace == SOURCES,
            "clusters": kind is SECRET and namespace == names.ARGOCD_NAMESPACE,
        }[which]
        # Twice in a row each, which our informers accept as true.
        if wanted and emptied.count(str(kind)) < 8:
            emptied.append(str(kind))
            return [], version
        return items, version

    monkeypatch.setattr(Kube, "list_with_version", empty_once)
    before = {cluster: sorted(copy_names(mirrors.app(cluster))) for cluster in (STAGE, PROD)}
    mirrors.world.stop()
    mirrors.world.start(watch_seconds=1)
    eventually(lambda: emptied, "an empty list")
    time.sleep(4)
    after = {cluster: sorted(copy_names(mirrors.app(cluster))) for cluster in (STAGE, PROD)}
    assert after == before


def test_a_syncer_in_a_namespace_that_is_not_configured_copies_nothing(mirrors: Mirrors) -> None:
    """A Syncer outside of the configured namespaces is ignored."""
    syncer = {
        "apiVersion": "k8s-ucp.io/v1alpha1",
        "kind": "Syncer",
        "metadata": {"name": "planted", "namespace": "default"},
        "spec": {"data": [{**SELECTING, "sourceNamespace": SOURCES, "targetNamespace": "stolen"}]},
    }
    mirrors.core.apply(syncer, manager="test")
    time.sleep(2)
    for cluster in (STAGE, PROD):
        assert mirrors.app(cluster).list_all(SECRET, "stolen") == []
    assert "status" not in mirrors.core.get(SYNCER, "planted", "default")
