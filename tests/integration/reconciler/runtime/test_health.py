"""The reconciler process as a whole: health endpoints, no work when idle, a fast stop."""

from __future__ import annotations

import json
import signal
import threading
import time

import psutil
import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.kube import CRD
from k8s_ucp.reconciler import manager
from k8s_ucp.reconciler.runtime.settings import Settings
from k8s_ucp.tools.toolbox import Toolbox
from tests.integration.reconciler.conftest import Planes, furnish
from tests.integration.reconciler.runtime.health_pages import page
from tests.integration.reconciler.world import Clusters, eventually

pytestmark = pytest.mark.engines


def test_health_endpoints_listen_on_loopback_only(world: Clusters) -> None:
    reconciler = world.start(health_port=0)
    port = reconciler.health_port
    eventually(lambda: page(port, "/readyz") == (200, "ok\n"), "readiness")
    assert page(port, "/healthz") == (200, "ok\n")
    assert page(port, "/")[0] == 404
    addresses = {
        each.laddr[0]
        for each in psutil.Process().net_connections("tcp")
        if each.status == "LISTEN" and each.laddr[1] == port
    }
    assert addresses == {"127.0.0.1"}


def test_the_reconciler_is_alive_but_not_ready_without_the_core(
    world: Clusters, planes: Planes
) -> None:
    planes.provider.stop("test-core")
    try:
        reconciler = world.start(health_port=0)
        time.sleep(0.5)
        assert page(reconciler.health_port, "/healthz")[0] == 200
        status, text = page(reconciler.health_port, "/readyz")
        assert status == 503
        assert "localclusters" in text
    finally:
        planes.provider.start("test-core")
    world.declare()
    world.await_registered()
    assert page(reconciler.health_port, "/readyz")[0] == 200


def test_the_reconciler_waits_for_its_crd(
    world: Clusters, planes: Planes, toolbox: Toolbox
) -> None:
    """`ucp start` starts it before the CRD of LocalCluster is applied."""
    name = "localclusters.k8s-ucp.io"
    world.core.delete(CRD, name)
    eventually(lambda: world.core.find(CRD, name) is None, "the end of the kind")
    try:
        world.start()
        time.sleep(0.5)
    finally:
        furnish(world.core, toolbox)
    world.declare()
    world.await_registered()


def test_an_idle_reconciler_writes_nothing_and_uses_little_cpu(world: Clusters) -> None:
    world.start()
    for environment in ("stage", "prod"):
        world.declare(environment)
        world.await_registered(f"demo-{environment}")
    time.sleep(1)
    before, used = world.versions(), time.process_time()
    time.sleep(6)
    assert world.versions() == before
    assert time.process_time() - used < 1


def test_a_stopped_reconciler_leaves_no_thread_running(world: Clusters) -> None:
    before = {each.name for each in threading.enumerate()}
    world.start(health_port=0, watch_seconds=1)
    world.declare()
    world.await_registered()
    world.stop()
    eventually(
        lambda: not {each.name for each in threading.enumerate()} - before, "the end of threads"
    )


def test_a_health_port_in_use_is_named(world: Clusters) -> None:
    first = world.start(health_port=0)
    with pytest.raises(UcpError, match=str(first.health_port)):
        world.start(health_port=first.health_port)


def test_the_process_exits_for_a_restart_when_an_informer_fails(
    world: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = manager.Manager.start

    def start_and_lose(self: manager.Manager) -> None:
        start(self)
        self.informers.local_clusters.stop()

    monkeypatch.setattr(manager, "CHECK_SECONDS", 0.2)
    monkeypatch.setattr(manager.Manager, "start", start_and_lose)
    path = world.folder / "config"
    path.write_text(json.dumps(world.core_config))
    settings = Settings(kubeconfig=path, machine="here", topology="demo", watch_seconds=1)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with pytest.raises(UcpError, match="localclusters in ucp-clusters failed"):
            manager.run(settings, {})
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
