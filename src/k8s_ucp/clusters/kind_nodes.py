"""What is seen of one workspace's kind clusters: their nodes, how to get in, whether they are well.

Everything is asked of the engine and of the clusters: no file of ours has to exist for it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

from k8s_ucp.cluster_provider import ClusterState, Reach
from k8s_ucp.clusters import api_server
from k8s_ucp.clusters.container_engine import ContainerEngine, Node
from k8s_ucp.clusters.kind_config import API, HTTP, HTTPS, LOOPBACK, kubeconfig, node_name
from k8s_ucp.errors import CommandFailed, ProgramMissing, UcpError
from k8s_ucp.kube import NODE, Kube, KubeError

NOTE = "/kind/k8s-ucp.json"
"""In the node: written last when a cluster is made."""
ADMIN = "/etc/kubernetes/admin.conf"
VERSION = "/kind/version"


class KindNodes:
    """owner: whose nodes count. Safe to share between threads."""

    def __init__(self, engine: ContainerEngine, owner: str) -> None:
        self._engine = engine
        self._owner = owner
        self._known: dict[str, tuple[dict[str, Any], str]] = {}
        """kubeadm's kubeconfig of the admin and the version, by the node's id."""
        self._lock = threading.Lock()

    def of(self, cluster: str | None = None) -> list[Node]:
        """Our nodes of one cluster or of all; none where no engine is installed.

        Raises UcpError where the engine does not answer.
        """
        try:
            _ = self._engine.name
        except ProgramMissing:
            return []
        return [each for each in self._engine.nodes(cluster) if each.owner == self._owner]

    def clusters(self) -> list[str]:
        """Names of our clusters, sorted."""
        return sorted({each.cluster for each in self.of()})

    def state(self, name: str) -> ClusterState:
        """An engine that is silent leaves everything open: not ready, and the reason."""
        try:
            nodes = self.of(name)
        except UcpError as error:
            return ClusterState(name, True, running=True, ready=False, message=error.message)
        if not nodes:
            message = "there is no such cluster"
            return ClusterState(name, False, running=False, ready=False, message=message)
        there = addresses(nodes[0])
        if not all(each.running for each in nodes):
            return ClusterState(name, True, False, False, "stopped", addresses=there)
        try:
            _, version = self._admin(nodes[0])
            message = _not_ready(self.config(nodes[0], Reach.MACHINE)) or ""
        except UcpError as error:
            return ClusterState(name, True, True, False, error.message, addresses=there)
        return ClusterState(name, True, True, not message, message, version, there)

    def config(self, node: Node, reach: Reach) -> dict[str, Any]:
        """The admin's kubeconfig, certificates inlined. Raises UcpError where it can't be had.

        Pods reach the node by its name on the engine's network, this machine by a mapped port.
        """
        admin, _ = self._admin(node)
        if reach is Reach.PODS:
            return kubeconfig(node.cluster, admin, f"https://{node_name(node.cluster)}:{API}")
        host, port = node.ports.get(API, (LOOPBACK, API))
        return kubeconfig(node.cluster, admin, f"https://{host}:{port}")

    def is_made(self, cluster: str) -> bool:
        """It is there and whole, or stopped: not in the middle of being made."""
        nodes = self.of(cluster)
        if not nodes or not all(each.running for each in nodes):
            return bool(nodes)
        return self.read_note(nodes[0]) is not None

    def read_note(self, node: Node) -> dict[str, Any] | None:
        """What was written down when the cluster was whole; None: it never was."""
        try:
            found = json.loads(self._engine.execute(node, "cat", NOTE))
        except (CommandFailed, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def write_note(self, nodes: Sequence[Node], note: dict[str, Any]) -> None:
        for each in nodes:
            words = ("exec", "--interactive", each.id, "tee", NOTE)
            self._engine.run(*words, stdin=json.dumps(note))

    def _admin(self, node: Node) -> tuple[dict[str, Any], str]:
        """kubeadm's kubeconfig and the version; a node keeps both for its life."""
        with self._lock:
            if node.id in self._known:
                return self._known[node.id]
        from ruamel.yaml import YAML

        if not node.running:
            raise UcpError(f"cluster {node.cluster} is stopped", next="ucp start")
        try:
            text = self._engine.execute(node, "cat", ADMIN)
            version = self._engine.execute(node, "cat", VERSION).strip()
        except CommandFailed as error:
            raise UcpError(f"cluster {node.cluster} is still being made") from error
        found = (dict(YAML(typ="safe", pure=True).load(text)), version)
        with self._lock:
            self._known[node.id] = found
        return found


def absent(cluster: str) -> UcpError:
    return UcpError(f"there is no kind cluster {cluster} of this workspace", next="ucp start")


def addresses(node: Node) -> dict[str, str]:
    """Where the node takes traffic in on this machine: http, https -> host:port."""
    return {
        name: f"{node.ports[port][0]}:{node.ports[port][1]}"
        for name, port in (("http", HTTP), ("https", HTTPS))
        if port in node.ports
    }


def _not_ready(config: dict[str, Any]) -> str | None:
    """Why the cluster is not ready now: its API server, then its nodes."""
    if reason := api_server.not_ready(config):
        return reason
    kube = Kube(config)
    try:
        for node in kube.list_all(NODE):
            for each in (node.get("status") or {}).get("conditions") or []:
                if each["type"] == "Ready" and each["status"] != "True":
                    return f"node {node['metadata']['name']}: {each.get('message') or 'not ready'}"
    except KubeError as error:
        return error.message
    finally:
        kube.close()
    return None
