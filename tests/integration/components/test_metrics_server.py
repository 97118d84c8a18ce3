"""metrics-server, built from its pinned module, with its own manifests on an embedded cluster.

Pods are simulated there and use no resources, so a small server acts as the kubelet of one node.
The rest is real: the program, its RBAC, and the API server that proxies requests for metrics to it.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.components.host.program import Program
from k8s_ucp.gitops.manifests.build_many import objects
from k8s_ucp.kube import Kind, Kube, KubeError
from k8s_ucp.process import listeners
from k8s_ucp.tools.catalogue import Tool
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import StateFolder
from tests.control_planes import control_planes, eventually, made
from tests.integration.components.built import built

pytestmark = [pytest.mark.engines, pytest.mark.soak, pytest.mark.timeout(3600)]

TOOL = Tool(
    name="metrics-server",
    version="0.9.0",
    programs={"metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server"},
    module="sigs.k8s.io/metrics-server",
    keep=("manifests/base",),
    megabytes=2500,
)
API_SERVICE = Kind("apiregistration.k8s.io/v1", "APIService", "apiservices")
NODE_METRICS = Kind("metrics.k8s.io/v1beta1", "NodeMetrics", "nodes")
NAME = "measured"
MEMORY = 123 * 2**20


class Kubelet(BaseHTTPRequestHandler):
    """A kubelet's metrics of its node: half a core all the time, and some memory."""

    def do_GET(self) -> None:
        if self.path != "/metrics/resource":
            self.send_error(404)
            return
        now = time.time()
        stamp = int(now * 1000)
        text = (
            "# TYPE node_cpu_usage_seconds_total counter\n"
            f"node_cpu_usage_seconds_total {now / 2} {stamp}\n"
            "# TYPE node_memory_working_set_bytes gauge\n"
            f"node_memory_working_set_bytes {MEMORY} {stamp}\n"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *words: object) -> None:
        """Log nothing."""


@dataclass
class Running:
    kube: Kube
    placement: HostPlacement

    def available(self) -> str:
        """Status and reason of the metrics API's conditions."""
        found = self.kube.get(API_SERVICE, "v1beta1.metrics.k8s.io")
        conditions = (found.get("status") or {}).get("conditions") or []
        return "".join(f"{each['status']} {each.get('reason')}" for each in conditions)


def kubelet() -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Kubelet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def furnish(kube: Kube, module: Path, port: int) -> None:
    """Apply the module's own objects; its Service refers to the process instead of a pod."""
    items = [
        dict(item)
        for name in ("rbac", "service", "apiservice")
        for item in objects((module / f"manifests/base/{name}.yaml").read_text())
    ]
    for item in items:
        if item["kind"] == "Service":
            item["spec"] = {
                "type": "ExternalName",
                "externalName": "localhost",
                "ports": [{"name": "https", "port": port}],
            }
        if item["kind"] == "APIService":
            item["spec"]["service"]["port"] = port
        kube.apply(item)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, toolbox: Toolbox) -> Iterator[Running]:
    tools = built(TOOL)
    runtime = Path(tempfile.mkdtemp(prefix="ucp-metrics-", dir="/tmp"))
    with contextlib.ExitStack() as leaving:
        leaving.callback(shutil.rmtree, runtime, ignore_errors=True)
        server = kubelet()
        leaving.callback(server.server_close)
        leaving.callback(server.shutdown)
        planes = leaving.enter_context(control_planes(tmp_path_factory.mktemp("ms"), toolbox))
        provider = planes.provider()
        kube = made(provider, "demo-stage")
        leaving.callback(kube.close)
        state = StateFolder(planes.root / "one" / "my files")
        state.make()
        kubeconfig = state.kubeconfig("demo-stage")
        kubeconfig.write_text(json.dumps(provider.kubeconfig("demo-stage")))
        kubeconfig.chmod(0o600)
        port = planes.ports.reserve(str(runtime), ("metrics-server",))["metrics-server"]
        leaving.callback(planes.ports.release, str(runtime))
        furnish(kube, tools.module(TOOL.name), port)
        kube.apply(NODE)
        kube.patch(NODES, NAME, None, NODE, subresource="status")
        words = argv(tools, kubeconfig, port, server.server_port, runtime)
        program = Program("metrics-server", words, runtime, {})
        placement = HostPlacement(state, runtime / "run")
        leaving.callback(placement.stop_all)
        placement.ensure_running()
        placement.start([program])
        yield Running(kube, placement)


NODES = Kind("v1", "Node", "nodes")


NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": NAME, "labels": {"measured": "true"}},
    "status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]},
}
"""A node whose kubelet is the server above."""


def argv(
    tools: Toolbox, kubeconfig: Path, port: int, kubelet_port: int, folder: Path
) -> tuple[str, ...]:
    return (
        str(tools.path("metrics-server")),
        *("--kubeconfig", str(kubeconfig)),
        *("--authentication-kubeconfig", str(kubeconfig)),
        *("--authorization-kubeconfig", str(kubeconfig)),
        *("--secure-port", str(port), "--bind-address", "127.0.0.1"),
        *("--cert-dir", str(folder / "certificates")),
        # The node's status has the port of kwok, which simulates every node.
        *("--kubelet-port", str(kubelet_port)),
        "--deprecated-kubelet-completely-insecure",
        *("--kubelet-preferred-address-types", "InternalIP"),
        *("--node-selector", "measured=true"),
        *("--metric-resolution", "10s", "--kubelet-request-timeout", "5s"),
    )


def test_the_api_server_serves_node_metrics(running: Running) -> None:
    eventually(lambda: running.available().startswith("True"), running.available, seconds=120)

    def measured() -> dict[str, Any]:
        try:
            return running.kube.find(NODE_METRICS, NAME) or {}
        except KubeError:
            return {}

    eventually(lambda: "usage" in measured(), measured, seconds=120)
    usage = measured()["usage"]
    assert usage["memory"] == f"{MEMORY // 2**20}Mi"
    # Half a core, within the accuracy of two samples.
    amount, unit = re.fullmatch(r"(\d+)([num]?)", usage["cpu"]).groups()  # type: ignore[union-attr]
    cores = int(amount) * {"": 1, "m": 1e-3, "u": 1e-6, "n": 1e-9}[unit]
    assert 0.4 < cores < 0.6


def test_metrics_server_listens_on_loopback_only(running: Running) -> None:
    state = running.placement.states()["metrics-server"]
    assert {address for address, _ in listeners(state.pid)} == {"127.0.0.1"}
