"""An existing cluster for cores: a real control plane whose pods kwok simulates.

A simulated pod runs no program. Argo CD's programs run as processes of this machine, while its
workloads are declared on the cluster, so that Applications really sync. The programs of other pods
(the reconciler, Crossplane) do not run here; the tests on kind cover them.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp import process
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.components import argocd
from k8s_ucp.components.argocd import ArgoCD
from k8s_ucp.components.host.machine import Host
from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.components.host.redis import Redis
from k8s_ucp.components.pods.component import STATEFUL_SET
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import NAMESPACE, Kube, KubeError, Object
from k8s_ucp.workspace import StateFolder
from tests.control_planes import ControlPlanes, eventually, made
from tests.e2e.world import Workbench
from tests.integration.gitops.promotion.git_servers import HttpGit

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

NAME = "their-cluster"
CONTEXT = "admin@their/cluster"
TOPOLOGY = """apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {{name: demo}}
spec:
  core: {core_cluster}
  git: {{provider: url, core: {core}, apps: {apps}, poll: 10s}}
  reconciler:
    image: "registry.example.org/reconciler@sha256:{digest}"
    sourceNamespaces: [ucp-clusters, of-theirs]
"""
_FORWARD = """\
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterPortForward
metadata:
  name: argocd-server
spec:
  selector:
    matchNamespaces: [argocd]
  forwards:
    - ports: [8080]
      target: {{address: 127.0.0.1, port: {port}}}
"""
_SERVER_SIDE_DIFF = {"ARGOCD_APPLICATION_CONTROLLER_SERVER_SIDE_DIFF": "true"}
"""Its pods get this setting from Argo CD's ConfigMap of parameters."""
_PASSING = (
    *("Event", "Lease", "Endpoints", "EndpointSlice", "Pod", "ReplicaSet", "ControllerRevision"),
    *("Node", "ComponentStatus", "IPAddress", "APIService"),
)
"""Kinds that controllers create and delete at any time."""


@dataclass
class TheirCluster:
    """A cluster of another owner, and the kubeconfig context that leads to it."""

    kube: Kube
    config: dict[str, Any]
    planes: ControlPlanes
    argocd: ArgoCD
    """Its programs, which run while its workloads are declared."""

    def wait_for_argocd(self) -> None:
        eventually(lambda: self.argocd.ready().ready, lambda: self.argocd.ready().message)

    def contents(self) -> dict[str, str]:
        """Every object except for transient kinds: {object: UID}."""
        return {each: str(item["metadata"]["uid"]) for each, item in self._items()}

    def whole(self) -> dict[str, Object]:
        """As `contents`, but with each object's declared state instead of its UID."""
        return {each: _declared(item) for each, item in self._items()}

    def settled(self) -> dict[str, str]:
        """The contents, once controllers have created their objects in the new cluster."""
        namespaces = [each["metadata"]["name"] for each in self.kube.list_all(NAMESPACE)]
        added = {f"ConfigMap {each}/kube-root-ca.crt" for each in namespaces}
        added |= {f"ServiceAccount {each}/default" for each in namespaces}
        eventually(lambda: added <= self.contents().keys())
        last: dict[str, str] = {}
        while (now := self.contents()) != last:
            last = now
            time.sleep(1)
        return now

    def _items(self) -> Iterator[tuple[str, Object]]:
        for root in ("/api/v1", *self._groups()):
            for kind in self.kube.request("GET", root)["resources"]:
                if "list" in kind["verbs"] and kind["kind"] not in _PASSING:
                    for item in self.kube.request("GET", f"{root}/{kind['name']}")["items"]:
                        about = item["metadata"]
                        place = about.get("namespace", "")
                        yield f"{kind['kind']} {place}/{about['name']}", item

    def _groups(self) -> list[str]:
        groups = self.kube.request("GET", "/apis")["groups"]
        return [f"/apis/{each['preferredVersion']['groupVersion']}" for each in groups]


def _declared(item: Object) -> Object:
    """Everything except for the fields that servers and controllers write."""
    about = {
        key: value
        for key, value in item["metadata"].items()
        if key not in ("resourceVersion", "managedFields", "generation")
    }
    return {
        **{key: value for key, value in item.items() if key not in ("status", "operation")},
        "metadata": about,
    }


@contextlib.contextmanager
def their_cluster(root: Path, toolbox: Toolbox) -> Iterator[TheirCluster]:
    """Run such a cluster; everything is removed at the end."""
    planes = ControlPlanes(root, toolbox)
    owner = str(root / "argocd")
    try:
        provider = planes.provider()
        kube = made(provider, NAME)
        # Ports are reserved for existing folders only.
        state = StateFolder(root / "argocd")
        state.make()
        ports = planes.ports.reserve(owner, argocd.PORTS)
        _let_through(ClusterFolder(planes.folder(), NAME), ports[argocd.SERVER])
        provider.start(NAME)
        eventually(lambda: provider.state(NAME).ready, lambda: provider.state(NAME).message)
        config = provider.kubeconfig(NAME)
        state.kubeconfig(NAME).write_text(json.dumps(config))
        host = Host(state, root / "run", toolbox, ports, state.kubeconfig(NAME))
        with _played(Kube(config), host):
            yield TheirCluster(kube, config, planes, ArgoCD(host))
        kube.close()
    finally:
        planes.ports.release(owner)
        planes.remove()


def describe(world: Workbench, git_host: HttpGit, core_cluster: str) -> None:
    # Pods on another machine could not reach loopback; ucp rejects such an address.
    address = f"http://0.0.0.0:{git_host.server.server_address[1]}"
    (world.workspace / "ucp.yaml").write_text(
        TOPOLOGY.format(
            core_cluster=core_cluster,
            core=f"{address}/core.git",
            apps=f"{address}/apps.git",
            digest="1" * 64,
        )
    )


def _let_through(folder: ClusterFolder, port: int) -> None:
    """Configure kwok, before its start, to connect port-forwards to a process of this machine."""
    forward = folder.root / "forward.yaml"
    forward.write_text(_FORWARD.format(port=port))
    settings = folder.home / "kwok.yaml"
    config = re.compile(rf"^( *- '?--config=){re.escape(str(folder.stages))}('?)$", re.M)
    text, count = config.subn(rf"\g<0>\n\g<1>{forward}\g<2>", settings.read_text())
    assert count == 1
    settings.write_text(text)
    pid = folder.read_pid("kwok-controller")
    assert pid
    running = process.identify(pid)
    assert running
    process.terminate_all([running], grace=5)


@contextlib.contextmanager
def _played(kube: Kube, host: Host) -> Iterator[None]:
    """Run Argo CD's processes while its pods are declared."""
    placement = HostPlacement(host.state, host.runtime)
    over = threading.Event()

    def play() -> None:
        started = False
        while not over.wait(0.5 if started else 0.1):
            # What fails is tried again in the next round, as a kubelet does.
            with contextlib.suppress(UcpError):
                declared = _is_declared(kube)
                if declared and not started:
                    placement.ensure_running()
                    early = [*Redis(host).programs(), *ArgoCD(host).early_programs()]
                    placement.start(early)
                    placement.start(
                        [
                            replace(each, env={**each.env, **_SERVER_SIDE_DIFF})
                            for each in ArgoCD(host).programs()
                        ]
                    )
                    started = True
                elif declared:
                    placement.restart_given_up()
                elif placement.is_running():
                    placement.stop_all()
                    started = False

    thread = threading.Thread(target=play, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=30)
        placement.stop_all()
        url = f"unix://{host.runtime / 'supervisor.sock'}"
        left = process.marked(("SUPERVISOR_SERVER_URL", url))
        process.terminate_all([each for each, session in left if session != each.pid], grace=0)
        kube.close()


def _is_declared(kube: Kube) -> bool:
    try:
        found = kube.find(STATEFUL_SET, argocd.CONTROLLER, argocd.NAMESPACE)
    except KubeError:
        return False
    return found is not None and not found["metadata"].get("deletionTimestamp")
