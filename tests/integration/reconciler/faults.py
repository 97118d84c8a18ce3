"""Injected faults, and the time to recovery after the end of each."""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import psutil

from k8s_ucp import names
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.kube import LOCAL_CLUSTER, SECRET, Kube, KubeError, Object
from k8s_ucp.reconciler.manager import Manager
from tests.integration.reconciler.conftest import Planes
from tests.integration.reconciler.mirror_world import ALL, PROD, STAGE, Mirrors, decoded
from tests.integration.reconciler.plane_access import api_server, expired_token
from tests.integration.reconciler.silent_proxy import SilentProxy
from tests.integration.reconciler.world import (
    ARGOCD,
    CLUSTERS,
    Clusters,
    as_argo_cd,
    eventually,
    token_of,
)

APP = PROD
MIRRORED = "db-conn"
CORE = "test-core"
LIMIT = 10.0
AWAY = 4.0
"""Seconds for which a server is down or silent: long enough to be detected."""


@dataclass
class Found:
    """The outcome of one fault."""

    kind: str
    where: str
    seconds: float
    """Time from the end of the fault to full recovery."""
    told: str
    """How conditions and metrics showed the fault meanwhile."""


@dataclass
class Scene:
    """A reconciler whose connections to the core and to one app cluster can be disturbed."""

    world: Clusters
    planes: Planes
    reconciler: Manager
    core: SilentProxy
    app: SilentProxy
    mirrors: Mirrors
    number: int = 0

    def figure(self, name: str, **labels: str) -> float:
        return self.reconciler.runtime.metrics.value(f"k8s_ucp_{name}", **labels) or 0.0

    def cuts(self) -> float:
        """Number of watches that ended early, for any reason."""
        metrics = self.reconciler.runtime.metrics
        pages = metrics.page().decode().splitlines()
        rows = [each for each in pages if each.startswith("k8s_ucp_watch_cuts_total{")]
        return sum(float(each.rsplit(" ", 1)[1]) for each in rows)

    def expired(self) -> float:
        """Number of watches that ended because the revision was too old (410)."""
        rows = self.reconciler.runtime.metrics.page().decode().splitlines()
        return sum(
            float(each.rsplit(" ", 1)[1])
            for each in rows
            if each.startswith("k8s_ucp_watch_cuts_total{") and 'reason="expired"' in each
        )

    def change(self) -> str:
        """Change the cluster's region, as a commit would, and a mirrored password."""
        self.number += 1
        region = f"region-{self.number}"
        change = {"metadata": {"labels": {names.REGION: region}}}
        eventually(
            lambda: self.world.core.patch(LOCAL_CLUSTER, APP, CLUSTERS, change), "the change"
        )
        eventually(lambda: self.mirrors.source(MIRRORED, {"password": region}), "the change")
        return region

    def right(self, region: str) -> Callable[[], bool]:
        """A check: the changes have arrived, the cluster is reachable, and Argo CD has access."""

        def check() -> bool:
            secret = self.world.cluster_secret(APP)
            if secret is None or secret["metadata"]["labels"].get(names.REGION) != region:
                return False
            wanted = {"password": region}
            copies = [decoded(self.mirrors.copy(MIRRORED, cluster=each)) for each in (STAGE, APP)]
            return copies == [wanted, wanted] and self.reachable() and gets_in(secret)

        return check

    def reachable(self) -> bool:
        return self.world.condition(names.REACHABLE, APP)[0] == "True"

    def shown_away(self) -> bool:
        """Whether condition and metric show that the app cluster is unreachable."""
        away = self.world.condition(names.REACHABLE, APP)[0] == "False"
        return away and self.figure("cluster_reachable", cluster=APP) == 0


def gets_in(secret: Object) -> bool:
    try:
        with as_argo_cd(secret) as kube:
            kube.list_all(SECRET, "default")
    except (KubeError, AssertionError):
        return False
    return True


@contextmanager
def scene(world: Clusters, planes: Planes) -> Iterator[Scene]:
    """Two registered clusters; connections to the core and to one of them go through proxies."""

    def through(config: dict[str, Any], proxy: SilentProxy) -> dict[str, Any]:
        changed: dict[str, Any] = json.loads(json.dumps(config))
        changed["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
        return changed

    def port(config: dict[str, Any]) -> int:
        return int(config["clusters"][0]["cluster"]["server"].rsplit(":", 1)[1])

    app_config = world.provider.configs[APP]
    with SilentProxy(port(world.core_config)) as core, SilentProxy(port(app_config)) as app:
        world.provider.configs[APP] = through(app_config, app)
        # Watches and probes have the default timeouts, so that the measurements apply to users;
        # the resync is more frequent.
        reconciler = world.start(config=through(world.core_config, core), resync_seconds=1.0)
        for environment in ("stage", "prod"):
            world.declare(environment)
        for each in (STAGE, APP):
            world.await_registered(each)
        mirrors = Mirrors(world)
        mirrors.source(MIRRORED, {"password": "first"})
        mirrors.syncer("db", {"sourceName": MIRRORED, "targetNamespace": "quote", **ALL})
        for each in (STAGE, APP):
            mirrors.await_copy(MIRRORED, {"password": "first"}, cluster=each)
        yield Scene(world, planes, reconciler, core, app, mirrors)


def watch_cut(scene: Scene, _: int) -> Found:
    before = scene.cuts()
    scene.core.cut()
    scene.app.cut()
    return _measure(scene, "watch interrupted", "core and app", lambda: scene.cuts() > before)


def too_old(scene: Scene, _: int) -> Found:
    """Compact etcd, and let every watch resume from a revision that was compacted."""
    before = scene.expired()
    oldest = compact(scene.planes, CORE)
    follow, sent = Kube.watch, set[int]()
    lock = threading.Lock()

    def from_the_past(self: Kube, *args: Any, since: str, **kwargs: Any) -> Any:
        with lock:
            first = threading.get_ident() not in sent
            sent.add(threading.get_ident())
        return follow(self, *args, since=oldest if first else since, **kwargs)

    with mock.patch.object(Kube, "watch", from_the_past):
        scene.core.cut()
        return _measure(scene, "410 after compaction", "core", lambda: scene.expired() > before)


def restart(scene: Scene, number: int) -> Found:
    """Kill the API server of the core or the app cluster, and restart it seconds later."""
    name = (CORE, APP)[number % 2]
    before = scene.cuts()
    api_server(scene.planes, name).kill()
    if name == APP:
        eventually(scene.shown_away, "Reachable=False and its figure")
    else:
        eventually(lambda: scene.cuts() > before, "the figure of cut watches")
        time.sleep(AWAY / 2)
    scene.planes.provider.start(name)
    eventually(lambda: scene.planes.provider.state(name).ready, "its readiness")
    told = "Reachable=False, reachable 0" if name == APP else "interrupted watches counted"
    return _measure(scene, "API server restart", name, lambda: True, told=told)


def half_open(scene: Scene, number: int) -> Found:
    """Silence all open connections forever, and new ones for a few seconds.

    Every fourth time new connections work at once, so that only our own timeouts detect the
    silence.
    """
    name = ("core", "app")[number % 2]
    proxy = scene.core if name == "core" else scene.app
    before = scene.cuts()
    proxy.deaf(number % 4 != 2)
    proxy.silence()
    if name == "app":
        eventually(scene.shown_away, "Reachable=False and its figure")
        proxy.deaf(False)
        return _measure(
            scene, "half-open TCP", name, lambda: True, told="Reachable=False, reachable 0"
        )
    if number % 4 != 2:
        time.sleep(AWAY)
    proxy.deaf(False)
    return _measure(scene, "half-open TCP", name, lambda: scene.cuts() > before)


def expired(scene: Scene, number: int) -> Found:
    """Replace Argo CD's token in the cluster Secret, or the reconciler's own, by an expired one."""
    world = scene.world
    if number % 2:
        source = scene.reconciler.kube._token
        assert source is not None
        token = source._token  # type: ignore[attr-defined]
        old = expired_token(scene.planes, CORE, token.text)
        source._token = type(token)(old, token.issued_at, token.expires_at)  # type: ignore[attr-defined]
        return _measure(
            scene,
            "expired token",
            "the reconciler's own",
            lambda: source._token.text != old,  # type: ignore[attr-defined]
            told="turned down, asked for anew",
        )
    secret = world.cluster_secret(APP)
    assert secret is not None
    labels = {
        "cluster": APP,
        "identity": names.ARGOCD_IDENTITY,
        "result": "done",
    }
    before = scene.figure("token_renewals_total", **labels)
    config = json.loads(base64.b64decode(secret["data"]["config"]))
    config["bearerToken"] = expired_token(scene.planes, APP, config["bearerToken"])
    text = base64.b64encode(json.dumps(config).encode()).decode()
    world.core.patch(SECRET, f"cluster-{APP}", ARGOCD, {"data": {"config": text}})
    return _measure(
        scene,
        "expired token",
        "Argo CD's",
        lambda: (
            scene.figure("token_renewals_total", **labels) > before
            and token_of(world.cluster_secret(APP) or {}) != config["bearerToken"]
        ),
        told="renewal counted",
    )


KINDS: dict[str, Callable[[Scene, int], Found]] = {
    "watch interrupted": watch_cut,
    "410 after compaction": too_old,
    "API server restart": restart,
    "half-open TCP": half_open,
    "expired token": expired,
}


def _measure(
    scene: Scene,
    kind: str,
    where: str,
    shown: Callable[[], bool],
    *,
    told: str = "interrupted watches counted",
) -> Found:
    """Called at the end of a fault: make a change, and measure the time to full recovery."""
    began = time.monotonic()
    right = scene.right(scene.change())
    eventually(lambda: shown() and right(), f"{kind} ({where}) healed")
    return Found(kind, where, time.monotonic() - began, told)


def compact(planes: Planes, name: str) -> str:
    """Compact a cluster's etcd at its newest revision; returns a revision that was compacted."""
    newest = int(_etcd(planes, name, "/v3/kv/range", {"key": "Lw=="})["header"]["revision"])
    _etcd(planes, name, "/v3/kv/compaction", {"revision": str(newest), "physical": True})
    return "2"


def _etcd(planes: Planes, name: str, path: str, body: object) -> dict[str, Any]:
    """Call etcd's JSON gateway over its UNIX socket."""
    found = next(ClusterFolder(planes.folder / "clusters", name).root.rglob("client.sock"))
    connection = http.client.HTTPConnection("localhost", timeout=10)
    folder = os.open(found.parent, os.O_RDONLY)
    try:
        raw = socket.socket(socket.AF_UNIX)
        raw.settimeout(10)
        raw.connect(f"/proc/self/fd/{folder}/{found.name}")
        connection.sock = raw
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        # The API server may have compacted it in the same moment, which serves as well.
        assert answer.status == 200 or b"compacted" in text, text
        parsed: dict[str, Any] = json.loads(text)
        return parsed
    finally:
        connection.close()
        os.close(folder)


def memory(process: psutil.Process) -> int:
    """Memory of the process alone (USS), in MiB."""
    return int(process.memory_full_info().uss / 2**20)
