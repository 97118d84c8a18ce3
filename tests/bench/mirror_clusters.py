"""Bare API servers for the benchmarks of mirrors: a core, four app clusters and a reconciler."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from ruamel.yaml import YAML

from k8s_ucp import names
from k8s_ucp.cluster_provider import ClusterRequest
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.clusters.ports import Ports, default_registry
from k8s_ucp.kube import CONFIG_MAP, NAMESPACE, SECRET, SYNCER, Kube, KubeError, Object
from k8s_ucp.tools.catalogue import EMBEDDED
from k8s_ucp.tools.installer import Installer
from tests.bench.mirror_progress import SCALE, say
from tests.conftest import CACHE

NAMES = ("one", "two", "three", "four")
SOURCES = "crossplane-system"
TARGET = "mirrored"
THREADS_EACH = 4
"""Threads of the raw writers per cluster: as many as the reconciler has."""

_FOLDER = Path(__file__).resolve().parents[2]
_CRDS = _FOLDER / "tests/golden/trees/demo/core/platform/reconciler"
_ACCESS = _FOLDER / "tests/golden/trees/demo/core/platform/reconciler/access.yaml"


@dataclass
class Clusters:
    """The control planes; app clusters by environment."""

    folder: Path
    core: Kube
    core_config: dict[str, Any]
    apps: dict[str, Kube]
    configs: dict[str, dict[str, Any]]

    def register(self) -> None:
        """Create kubeconfig Secrets with the label, the quickest way to register clusters."""
        for name, config in self.configs.items():
            self.core.apply(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {
                        "name": f"demo-{name}-kubeconfig",
                        "namespace": names.CLUSTERS_NAMESPACE,
                        "labels": {names.KUBECONFIG_LABEL: "", names.ENVIRONMENT: name},
                    },
                    "stringData": {"kubeconfig": json.dumps(config)},
                },
                manager="bench",
            )

    def syncer(self, name: str, label: str, **targets: Any) -> Object:
        return self.core.apply(
            {
                "apiVersion": "k8s-ucp.io/v1alpha1",
                "kind": "Syncer",
                "metadata": {"name": name, "namespace": SOURCES},
                "spec": {
                    "data": [
                        {
                            "sourceSelector": {"matchLabels": {"bench": label}},
                            "targetNamespace": TARGET,
                            **(targets or {"targetSelector": {}}),
                        }
                    ]
                },
            },
            manager="bench",
        )

    def mirror_hot(self) -> int:
        """Register all clusters and mirror 1,000 Secrets to each; return the number of Secrets."""
        hot = int(1000 * SCALE)
        self.register()
        self.syncer("hot", "hot")
        self.make_sources(hot, "hot")
        until("the first copies", lambda: self.synced("hot") == (hot * 4, hot * 4))
        say(f"{hot} mirrored")
        return hot

    def make_sources(self, count: int, label: str, threads: int = 8) -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda n: self.core.create(source(n, label)), range(count)))

    def synced(self, name: str) -> tuple[int, int]:
        status = (self.core.find(SYNCER, name, SOURCES) or {}).get("status") or {}
        return int(status.get("synced", 0)), int(status.get("copies", 0))


def source(number: int, label: str, generation: int = 0) -> Object:
    """A connection Secret of about 600 bytes."""
    values = {
        "endpoint": f"db-{number}.example.org",
        "port": "5432",
        "username": f"user-{number}",
        "password": f"{number:08d}{generation:08d}" * 2,
        "ca.crt": "x" * 400,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"{label}-{number:05d}",
            "namespace": SOURCES,
            "labels": {"bench": label},
        },
        "type": "connection.crossplane.io/v1alpha1",
        "stringData": values,
    }


@contextmanager
def clusters(environments: tuple[str, ...] = NAMES) -> Iterator[Clusters]:
    """Run the control planes in their own folder, and delete them at the end."""
    folder = Path(tempfile.mkdtemp(prefix="ucp-bench-"))
    toolbox = Installer(CACHE, lambda event: None).install(EMBEDDED)
    provider = EmbeddedProvider(folder / "clusters", toolbox, ports=Ports(default_registry()))
    everything = ("bench-core", *(f"demo-{each}" for each in environments))
    try:
        with ThreadPoolExecutor(2) as pool:
            list(
                pool.map(
                    lambda each: provider.create(ClusterRequest(each), lambda line: None),
                    everything,
                )
            )
        core = Kube(provider.kubeconfig("bench-core"))
        _furnish(core, environments)
        configs = {each: provider.kubeconfig(f"demo-{each}") for each in environments}
        apps = {each: Kube(config) for each, config in configs.items()}
        yield Clusters(folder, core, provider.kubeconfig("bench-core"), apps, configs)
    finally:
        for name in provider.names():
            provider.delete(name)
        shutil.rmtree(folder, ignore_errors=True)


def _furnish(core: Kube, environments: tuple[str, ...]) -> None:
    yaml = YAML(typ="safe", pure=True)
    for name in (names.CLUSTERS_NAMESPACE, names.ARGOCD_NAMESPACE, SOURCES):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        core.apply(namespace, manager="bench")
    for file in ("crds.yaml", "syncers.yaml"):
        core.apply(yaml.load((_CRDS / file).read_text("utf-8")), manager="bench")
    for item in yaml.load_all(_ACCESS.read_text("utf-8")):
        core.apply(item, manager="bench")
    core.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": names.ENVIRONMENTS, "namespace": names.CLUSTERS_NAMESPACE},
            "data": dict.fromkeys(environments, ""),
        },
        manager="bench",
    )
    for kind in ("syncers", "localclusters"):
        path = f"/apis/k8s-ucp.io/v1alpha1/{kind}"
        until(f"{kind} served", lambda path=path: core.request("GET", path))


class ReconcilerProcess:
    """The reconciler in its own process, as it runs for users."""

    def __init__(self, world: Clusters) -> None:
        self._kubeconfig = world.folder / "core.kubeconfig"
        self._kubeconfig.write_text(json.dumps(world.core_config))
        self._log = (world.folder / "reconciler.log").open("ab")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.reconciler_alone", str(self._kubeconfig)],
            cwd=_FOLDER,
            env={**os.environ, "MALLOC_ARENA_MAX": "2"},
            stdout=self._log,
            stderr=self._log,
        )

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(15)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def memory(self) -> float:
        """Resident memory in MiB."""
        assert self.process is not None
        return float(psutil.Process(self.process.pid).memory_info().rss) / 2**20

    def cpu(self) -> float:
        """CPU seconds used so far."""
        assert self.process is not None
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)


def until(what: str, met: Callable[[], Any], seconds: float = 600, pause: float = 0.1) -> Any:
    """Wait until `met` returns something true; errors of API servers count as not yet."""
    deadline = time.monotonic() + seconds
    last: object = None
    while time.monotonic() < deadline:
        try:
            last = met()
        except KubeError as error:
            last = error
        else:
            if last:
                return last
        time.sleep(pause)
    raise AssertionError(f"{what}: not within {seconds:g} s; last: {last!r}")


class Arrivals:
    """Times at which a namespace's Secrets were seen on each cluster, by version of content."""

    def __init__(self, world: Clusters, namespace: str = TARGET) -> None:
        self.seen: dict[tuple[str, str, str], float] = {}
        self._stop = False
        self._ready: list[threading.Event] = []
        self._threads = []
        for name, kube in world.apps.items():
            ready = threading.Event()
            thread = threading.Thread(
                target=self._watch, args=(name, kube, namespace, ready), daemon=True
            )
            self._ready.append(ready)
            self._threads.append(thread)
            thread.start()
        for each in self._ready:
            each.wait(30)

    def _watch(self, name: str, kube: Kube, namespace: str, ready: threading.Event) -> None:
        _, version = kube.list_with_version(SECRET, namespace, labels=names.MIRROR)
        ready.set()
        while not self._stop:
            try:
                for event, item in kube.watch(
                    SECRET, namespace, since=version, labels=names.MIRROR, seconds=20
                ):
                    now = time.monotonic()
                    version = item["metadata"].get("resourceVersion", version)
                    if event in ("ADDED", "MODIFIED"):
                        password = item["data"].get("password", "")
                        self.seen.setdefault((name, item["metadata"]["name"], password), now)
            except KubeError:
                time.sleep(0.2)

    def stop(self) -> None:
        self._stop = True


def writes_since(kube: Kube, before: dict[str, str], kinds: tuple[Any, ...] = ()) -> list[str]:
    """Objects that changed since `versions` was called."""
    after = versions(kube, kinds)
    return sorted(each for each in {*before, *after} if before.get(each) != after.get(each))


def versions(kube: Kube, kinds: tuple[Any, ...] = ()) -> dict[str, str]:
    """{object: resource version} of everything that a reconciler may write."""
    found = {}
    for kind in kinds or (SECRET, CONFIG_MAP, NAMESPACE):
        for item in kube.list_all(kind):
            metadata = item["metadata"]
            key = f"{kind.kind} {metadata.get('namespace', '')}/{metadata['name']}"
            found[key] = metadata["resourceVersion"]
    return found
