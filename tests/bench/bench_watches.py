"""ucp's watches and the official client's informer: a silent connection, and a long list.

Each runs in its own process, against the same real API server.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import re
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from k8s_ucp.kube import CONFIG_MAP, Kube
from k8s_ucp.tools.catalogue import EMBEDDED
from k8s_ucp.tools.installer import Installer
from tests.conftest import CACHE
from tests.control_planes import control_planes, made
from tests.evidence import table, write
from tests.integration.reconciler.silent_proxy import SilentProxy

OBJECTS = 5000
BYTES = 1000
PATIENCE = 60.0
NAMESPACE = "default"


def run(rounds: int) -> None:
    """Measure, and write docs/evidence/watches.md. rounds: number of silent connections."""
    toolbox = Installer(CACHE, lambda event: None).install(EMBEDDED)
    folder = Path(tempfile.mkdtemp(prefix="ucp-bench-"))
    with control_planes(folder, toolbox) as planes:
        provider = planes.provider()
        kube = made(provider, "bench")
        config = provider.kubeconfig("bench")
        kinds = ("ours", "informer", "informer, resync 6 s")
        with ThreadPoolExecutor(rounds * len(kinds)) as pool:
            # They only wait, each behind its own proxy.
            waits = {
                (each, number): pool.submit(_silence, each, config, kube, number)
                for each in kinds
                for number in range(rounds)
            }
            silent = [
                [each, *(waits[each, number].result() for number in range(rounds))]
                for each in kinds
            ]
        _fill(kube)
        lists = [[each, *_apart(_list, each, config)] for each in kinds[:2]]
    heads = ["", *(f"round {number + 1}" for number in range(rounds))]
    write(
        "watches",
        "Watches: ours beside the official client's informer",
        {
            "A connection goes silent, new ones work: seconds until the next change is known": (
                table(heads, silent)
            ),
            f"{OBJECTS} ConfigMaps of {BYTES} bytes are listed and kept": table(
                ["", "seconds", "MiB at the peak, beside the imports", "requests for the list"],
                lists,
            ),
        },
        command="make bench ARGS=watches",
    )


def _silence(kind: str, config: dict[str, Any], kube: Kube, number: int) -> str:
    port = int(config["clusters"][0]["cluster"]["server"].rsplit(":", 1)[1])
    with SilentProxy(port) as proxy:
        through = json.loads(json.dumps(config))
        through["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
        known, stop = _follow(kind, through)
        name = f"{kind.split(',')[0]}-{len(kind)}-{number}"
        _put(kube, f"{name}-before")
        _until(lambda: f"{name}-before" in known(), 30)
        proxy.silence()
        _put(kube, f"{name}-after")
        seconds = _until(lambda: f"{name}-after" in known(), PATIENCE)
    # The informer can't be stopped while it waits on the silent connection.
    stop()
    return f"{seconds:.1f}" if seconds is not None else f"not within {PATIENCE:.0f}"


def _list(kind: str, config: dict[str, Any]) -> list[str]:
    began = time.monotonic()
    known, stop = _follow(kind, config)
    _until(lambda: len(known()) >= OBJECTS, 120)
    seconds = time.monotonic() - began
    stop()
    requests = 1 if kind == "informer" else -(-OBJECTS // 500)
    return [f"{seconds:.1f}", str(_peak()), str(requests)]


def _apart(work: Callable[..., list[str]], *arguments: Any) -> list[str]:
    """Run in a new process, so that its memory can be measured."""
    context = multiprocessing.get_context("spawn")
    results: Any = context.Queue()
    child = context.Process(target=_report, args=(results, work, *arguments))
    child.start()
    found: list[str] = results.get(timeout=300)
    child.join(10)
    if child.is_alive():
        child.kill()
    return found


def _report(results: Any, work: Callable[..., list[str]], *arguments: Any) -> None:
    import kubernetes.informer  # noqa: F401 (both begin with the same imports)

    import k8s_ucp.reconciler.runtime.informer  # noqa: F401

    base = _peak()
    found = work(*arguments)
    found[1] = str(int(found[1]) - base)
    results.put(found)


def _peak() -> int:
    """Peak resident memory in MiB. getrusage would also count the parent's memory at the fork."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found.group(1)) // 1024


def _follow(
    kind: str, config: dict[str, Any]
) -> tuple[Callable[[], set[str]], Callable[[], object]]:
    """Functions that return the known names and stop the watch."""
    if kind == "ours":
        from k8s_ucp.reconciler.runtime.informer import Informer, WatchSpec
        from k8s_ucp.reconciler.runtime.logs import Log
        from k8s_ucp.reconciler.runtime.metrics import Metrics
        from k8s_ucp.reconciler.runtime.settings import Settings

        seconds = Settings(kubeconfig=None, machine="", topology="").watch_seconds
        watch = Informer(
            Kube(config),
            WatchSpec(CONFIG_MAP, NAMESPACE),
            Log(io.StringIO()),
            metrics=Metrics(),
            seconds=seconds,
        )
        watch.start()
        return lambda: {each.rpartition("/")[2] for each in watch.store.identifiers()}, watch.stop
    import kubernetes
    from kubernetes.informer import SharedInformer

    client = kubernetes.config.new_client_from_config_dict(config)
    informer = SharedInformer(
        kubernetes.client.CoreV1Api(client).list_namespaced_config_map,
        namespace=NAMESPACE,
        resync_period=6 if "resync" in kind else 0,
    )
    informer.start()
    return lambda: {each.rpartition("/")[2] for each in informer.cache.list_keys()}, informer.stop


def _fill(kube: Kube) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: _put(kube, f"many-{number}"), range(OBJECTS)))


def _put(kube: Kube, name: str) -> None:
    kube.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "data": {"text": "x" * BYTES},
        }
    )


def _until(met: Callable[[], bool], seconds: float) -> float | None:
    """Seconds until the condition was met; None at the deadline."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if met():
            return time.monotonic() - began
        time.sleep(0.02)
    return None
