"""Nothing is lost when clusters are down, tokens are invalid, or watches are interrupted."""

from __future__ import annotations

import base64
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp import names
from k8s_ucp.board.live import LiveSource
from k8s_ucp.board.versions import Overview
from k8s_ucp.inspect import cluster_snapshot
from k8s_ucp.inspect.doctor import examination
from k8s_ucp.inspect.doctor.examination import Examined
from k8s_ucp.kube import CLUSTER_ROLE_BINDING, SECRET, SERVICE_ACCOUNT, Kube, Unauthorized
from k8s_ucp.timestamps import stamp
from k8s_ucp.topology import default
from tests.integration.reconciler.conftest import Planes
from tests.integration.reconciler.plane_access import api_server, expired_token
from tests.integration.reconciler.silent_proxy import SilentProxy
from tests.integration.reconciler.world import ARGOCD, Clusters, as_argo_cd, eventually, token_of

pytestmark = pytest.mark.engines


@pytest.mark.slow
def test_an_unreachable_cluster_stays_registered(world: Clusters, planes: Planes) -> None:
    world.start()
    world.declare("prod")
    before = world.await_registered("demo-prod")
    planes.provider.stop("demo-prod")
    try:
        world.await_condition(names.REACHABLE, "False", "Unreachable", "demo-prod")
        time.sleep(1)
        assert world.cluster_secret("demo-prod") == before
        assert world.condition(names.REGISTERED, "demo-prod")[0] == "True"
    finally:
        planes.provider.start("demo-prod")
    world.await_condition(names.REACHABLE, "True", None, "demo-prod")
    assert world.cluster_secret("demo-prod") == before


def test_a_cluster_that_hangs_is_reported_and_stays_registered(
    world: Clusters, planes: Planes
) -> None:
    """While nothing happens: only the reconciler's own probes of each cluster detect it."""
    world.start(resync_seconds=600, probe_seconds=0.5)
    world.declare("prod")
    before = world.await_registered("demo-prod")
    process = api_server(planes, "demo-prod")
    process.suspend()
    try:
        world.await_condition(names.REACHABLE, "False", "Unreachable", "demo-prod")
        assert world.cluster_secret("demo-prod") == before
    finally:
        process.resume()
    world.await_condition(names.REACHABLE, "True", None, "demo-prod")


def test_a_cluster_that_is_unreachable_when_declared_is_registered_later(
    world: Clusters, planes: Planes
) -> None:
    planes.provider.stop("demo-prod")
    try:
        world.start()
        world.declare("prod")
        world.await_condition(names.REACHABLE, "False", "Unreachable", "demo-prod")
        assert world.cluster_secret("demo-prod") is None
    finally:
        planes.provider.start("demo-prod")
    world.await_registered("demo-prod")


def test_a_revoked_token_is_replaced(world: Clusters) -> None:
    world.start()
    world.declare()
    before = token_of(world.await_registered())
    app = world.apps["demo-stage"]
    app.delete(SERVICE_ACCOUNT, names.ARGOCD_IDENTITY, names.IDENTITY_NAMESPACE)
    eventually(lambda: token_of(world.cluster_secret() or {}) != before, "another token")
    with as_argo_cd(world.await_registered()) as kube:
        kube.list_all(SECRET, "default")


def test_a_deleted_role_binding_is_restored(world: Clusters) -> None:
    world.start()
    world.declare()
    world.await_registered()
    app = world.apps["demo-stage"]
    app.delete(CLUSTER_ROLE_BINDING, names.ARGOCD_IDENTITY)
    eventually(lambda: app.find(CLUSTER_ROLE_BINDING, names.ARGOCD_IDENTITY), "the binding")
    world.await_registered()


def test_an_expired_token_is_replaced(world: Clusters, planes: Planes) -> None:
    world.start()
    world.declare()
    secret = world.await_registered()
    config = json.loads(base64.b64decode(secret["data"]["config"]))
    config["bearerToken"] = expired_token(planes, "demo-stage", config["bearerToken"])
    text = base64.b64encode(json.dumps(config).encode()).decode()
    world.core.patch(SECRET, "cluster-demo-stage", ARGOCD, {"data": {"config": text}})
    expired = world.cluster_secret()
    assert expired is not None
    with as_argo_cd(expired) as kube, pytest.raises(Unauthorized):
        kube.version()
    eventually(lambda: (world.cluster_secret() or {})["data"]["config"] != text, "another token")
    with as_argo_cd(world.await_registered()) as kube:
        kube.list_all(SECRET, "default")


def test_tokens_are_renewed_after_two_thirds_of_their_lifetime(world: Clusters) -> None:
    ahead = [0.0]
    world.start(clock=lambda: time.time() + ahead[0], token_lifetime=7200, resync_seconds=0.2)
    world.declare()
    secret = world.await_registered()
    ahead[0] = 4500
    time.sleep(1)
    kept = world.cluster_secret()
    assert kept is not None
    assert token_of(kept) == token_of(secret)
    ahead[0] = 4900
    renewed = eventually(
        lambda: (
            found
            if (found := world.cluster_secret()) and token_of(found) != token_of(secret)
            else None
        ),
        "another token",
    )
    notes = renewed["metadata"]["annotations"]
    assert notes[names.TOKEN_ISSUED] >= stamp(time.time() + 4800)
    assert renewed["metadata"]["uid"] == secret["metadata"]["uid"]


@pytest.mark.slow
def test_reconciler_and_board_survive_a_restart_of_the_core_api_server(
    world: Clusters, planes: Planes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("k8s_ucp.inspect.watch.WATCH_SECONDS", 2.0)
    world.start()
    world.declare("stage")
    before = world.await_registered("demo-stage")
    with board_source(world).open(lambda: None) as read:

        def is_registered(environment: str) -> bool:
            return bool(read()["environments"].get(environment, {}).get("registered"))

        eventually(lambda: is_registered("stage") or None, "the registration on the board")
        stopped = time.time()
        planes.provider.stop("test-core")
        eventually(lambda: read()["about"][""]["lost"] or None, "a lost core on the board")
        assert abs(read()["about"][""]["lostSince"] - stopped) < 10
        assert is_registered("stage")
        planes.provider.start("test-core")
        began = time.monotonic()
        world.declare("prod")
        world.await_registered("demo-prod")
        assert time.monotonic() - began < 50
        eventually(lambda: is_registered("prod") or None, "the core on the board again")
        assert not read()["about"][""]["lost"]
    # The board's threads end with it, not with the API server.
    eventually(
        lambda: not any(each.name.startswith("board") for each in threading.enumerate()) or None,
        "the end of what followed the core",
    )
    assert world.cluster_secret("demo-stage") == before


def board_source(world: Clusters) -> LiveSource:
    """The topology as `ucp board` watches it, without components."""
    topology = default("demo", ["stage", "prod"])

    def kubeconfig(cluster: str) -> Path:
        path = world.folder / f"board-{cluster}.json"
        configs = {**world.provider.configs, "demo-core": world.core_config}
        path.write_text(json.dumps(configs[cluster]))
        return path

    def examine() -> Examined:
        seen = cluster_snapshot.collect(topology, kubeconfig, list)
        return examination.collect(topology, seen, lambda: world.core, time.time())

    return LiveSource(topology, lambda: Kube(world.core_config), examine, lambda _: Overview())


@pytest.mark.slow
def test_silent_connections_to_the_core_do_not_stall_registration(world: Clusters) -> None:
    address = world.core_config["clusters"][0]["cluster"]["server"]
    port = int(address.rsplit(":", 1)[1])
    with SilentProxy(port) as proxy:
        config = json.loads(json.dumps(world.core_config))
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
        world.start(config=config, watch_seconds=2)
        world.declare("stage")
        world.await_registered("demo-stage")
        # Open connections stay open, but silent forever; new ones work.
        proxy.silence()
        began = time.monotonic()
        world.declare("prod")
        world.await_registered("demo-prod")
        assert time.monotonic() - began < 50


def test_a_watch_from_an_expired_revision_lists_again(
    world: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server itself responds with 410, since after a restart it has no old revisions."""
    listed: list[str] = []
    whole = Kube.list_with_version

    def outdated(self: Kube, *args: Any, **kwargs: Any) -> tuple[list[Any], str]:
        items, version = whole(self, *args, **kwargs)
        listed.append(version)
        return items, "1" if len(listed) == 1 else version

    reconciler = world.start(controllers=frozenset())
    eventually(lambda: not reconciler.unready(), "readiness")
    watch = reconciler.informers.local_clusters
    world.declare()
    eventually(lambda: watch.store.all(), "the first one")
    world.stop()
    monkeypatch.setattr(Kube, "list_with_version", outdated)
    world.start()
    world.declare("prod")
    world.await_registered("demo-prod")


def test_an_owner_missing_from_one_list_is_not_deregistered(world: Clusters) -> None:
    """A list that is empty once must not deregister a cluster."""
    reconciler = world.start(resync_seconds=600)
    world.declare()
    before = world.await_registered()
    watch = reconciler.informers.local_clusters
    item = watch.store.drop("ucp-clusters/demo-stage")
    assert item is not None
    for listener in watch._listeners:
        listener(item, None)
    time.sleep(1)
    assert world.cluster_secret() == before
