"""The nodes of a workspace's kind clusters: their state, health and kubeconfig.

All facts come from the engine and the clusters; none of our files is needed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

from k8s_ucp.cluster_provider import HTTP, HTTPS, ClusterState, Reach
from k8s_ucp.clusters import api_server
from k8s_ucp.clusters.container_engine import ContainerEngine, ContainerNode, mark_folder
from k8s_ucp.clusters.kind.config import API, kubeconfig, node_name
from k8s_ucp.errors import CommandFailed, ProgramMissing, UcpError
from k8s_ucp.kube import NODE, Kind, Kube, KubeError, conditions_of
from k8s_ucp.loopback import ADDRESS
from k8s_ucp.workspace import cache_folder
from k8s_ucp.workspace.records import parse_json

NOTE = "/kind/k8s-ucp.json"
"""File in the node, written as the last step of a creation."""
PRESENT, ABSENT = "there", "absent"
VERSION = "/kind/version"
"""Exists in every node, beside the note."""
READ_NOTE = (
    f"if [ -e {NOTE} ]; then echo {PRESENT} && cat {NOTE}; "
    f"elif [ -e {VERSION} ]; then echo {ABSENT}; else exit 3; fi"
)
WRITE_NOTE = f'cat > {NOTE}.new && [ "$(wc -c < {NOTE}.new)" -eq "$1" ] && mv -f {NOTE}.new {NOTE}'
STORAGE_CLASS = Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
ASK_SECONDS = 5.0
ADMIN = "/etc/kubernetes/admin.conf"


class KindNodes:
    """owner: whose nodes are included. Thread-safe."""

    def __init__(self, engine: ContainerEngine, owner: str) -> None:
        self._engine = engine
        self._owner = owner
        self._known: dict[str, tuple[dict[str, Any], str]] = {}
        """Node id -> (kubeadm's admin kubeconfig, version)."""
        self._lock = threading.Lock()

    def of(self, cluster: str | None = None) -> list[ContainerNode]:
        """Our nodes of one cluster or of all; empty if no engine is installed.

        Raises UcpError if the engine does not respond.
        """
        try:
            _ = self._engine.name
        except ProgramMissing:
            return []
        return [each for each in self._engine.nodes(cluster) if each.owner == self._owner]

    def clusters(self) -> list[str]:
        """Sorted names of our clusters."""
        return sorted({each.cluster for each in self.of()})

    def start(self, nodes: Sequence[ContainerNode], *, timeout: float) -> None:
        """Start the stopped containers of one cluster. Raises UcpError."""
        stopped = [each for each in nodes if not each.running]
        if not stopped:
            return
        # Some engines refuse to start a container if a folder that it mounts was deleted.
        mark_folder(cache_folder()).mkdir(parents=True, exist_ok=True)
        try:
            self._engine.start(stopped, timeout=timeout)
        except CommandFailed as error:
            output = error.output
            if "port is already allocated" in output or "address already in use" in output:
                name = nodes[0].cluster
                ports = ", ".join(str(port) for _, port in sorted(nodes[0].ports.values()))
                raise UcpError(
                    f"failed to start {name}: one of its ports is in use by another program "
                    f"({ports})",
                    next="stop that program (sudo ss -ltnp shows it), then run the command again",
                ) from error
            raise

    def state(self, name: str) -> ClusterState:
        """State of a cluster; running, not ready, with the reason, if the engine is silent."""
        try:
            nodes = self.of(name)
        except UcpError as error:
            return ClusterState(name, True, running=True, ready=False, message=error.message)
        if not nodes:
            message = "the cluster does not exist"
            return ClusterState(name, False, running=False, ready=False, message=message)
        node_addresses = addresses(nodes[0])
        if not all(each.running for each in nodes):
            return ClusterState(name, True, False, False, "stopped", addresses=node_addresses)
        try:
            _, version = self._admin(nodes[0])
            message = _not_ready(self.config(nodes[0], Reach.MACHINE)) or ""
        except UcpError as error:
            return ClusterState(name, True, True, False, error.message, addresses=node_addresses)
        return ClusterState(name, True, True, not message, message, version, node_addresses)

    def config(self, node: ContainerNode, reach: Reach) -> dict[str, Any]:
        """Admin kubeconfig, certificates inlined. Raises UcpError if it can't be read.

        Pods reach the node by its name on the engine's network, this machine through a mapped port.
        """
        admin, _ = self._admin(node)
        if reach is Reach.PODS:
            return kubeconfig(node.cluster, admin, f"https://{node_name(node.cluster)}:{API}")
        host, port = node.ports.get(API, (ADDRESS, API))
        return kubeconfig(node.cluster, admin, f"https://{host}:{port}")

    def is_made(self, cluster: str) -> bool:
        """Whether it exists and is complete or stopped, so not known to be under construction."""
        nodes = self.of(cluster)
        if not nodes or not all(each.running for each in nodes):
            return bool(nodes)
        try:
            return self.read_note(nodes[0]) is not None
        except UcpError:
            # A container that is just being created refuses commands.
            return False

    def read_note(self, node: ContainerNode) -> dict[str, Any] | None:
        """The note of a complete cluster; None if the node has no note.

        Only the node's own shell can prove that there is none. Raises UcpError for every other
        result: a node that exits, an engine that restarts or a full disk proves nothing.
        """
        try:
            output = self._engine.execute(node, "sh", "-c", READ_NOTE)
        except CommandFailed as error:
            raise _unreadable_note(
                node, error.output.strip() or f"exit code {error.code}"
            ) from error
        answer, _, text = output.partition("\n")
        if answer == ABSENT:
            return None
        if answer != PRESENT:
            raise _unreadable_note(node, f"unexpected output {output[:80]!r}")
        try:
            found = parse_json(text)
        except ValueError:
            found = None
        # A note without content still proves that the cluster was complete, but not what was
        # loaded.
        return found if isinstance(found, dict) else {}

    def write_note(self, nodes: Sequence[ContainerNode], note: dict[str, Any]) -> None:
        """Replace the note atomically: the old one stays until the new one is complete."""
        text = json.dumps(note)
        for each in nodes:
            arguments = ("sh", "-c", WRITE_NOTE, "sh", str(len(text.encode())))
            self._engine.run("exec", "--interactive", each.id, *arguments, stdin=text)

    def api_server_responds(self, node: ContainerNode) -> bool:
        """Whether its API server sent any response, even a refusal."""
        try:
            config = self.config(node, Reach.MACHINE)
        except UcpError:
            return False
        kube = Kube(config)
        try:
            kube.request("GET", api_server.READY, timeout=ASK_SECONDS, text=True)
        except KubeError as error:
            return error.status != 0
        finally:
            kube.close()
        return True

    def lacks(self, node: ContainerNode) -> str | None:
        """Which of kind's last objects are missing, or why it is not ready; None if complete."""
        try:
            config = self.config(node, Reach.MACHINE)
            if reason := _not_ready(config):
                return reason
            kube = Kube(config)
            try:
                for kind in (NODE, STORAGE_CLASS):
                    if not kube.list_all(kind):
                        return f"it has no {kind.kind}"
            finally:
                kube.close()
        except UcpError as error:
            return error.message
        return None

    def _admin(self, node: ContainerNode) -> tuple[dict[str, Any], str]:
        """kubeadm's kubeconfig and the version; neither changes during the life of a node."""
        with self._lock:
            if node.id in self._known:
                return self._known[node.id]
        from k8s_ucp import yaml_io

        if not node.running:
            raise UcpError(f"cluster {node.cluster} is stopped", next="ucp start")
        try:
            text = self._engine.execute(node, "cat", ADMIN)
            version = self._engine.execute(node, "cat", VERSION).strip()
        except CommandFailed as error:
            raise UcpError(
                f"cluster {node.cluster} is still being created", next="ucp status"
            ) from error
        try:
            found = (dict(yaml_io.load(text)), version)
            kubeconfig(node.cluster, found[0], "")
        except (yaml_io.YAMLError, ValueError, TypeError, LookupError) as error:
            # kubeadm may still be writing it, or a privileged pod has changed it.
            raise UcpError(f"node {node.name} has no valid {ADMIN}", next="ucp status") from error
        with self._lock:
            self._known[node.id] = found
        return found


def absent(cluster: str) -> UcpError:
    return UcpError(f"the kind cluster {cluster} does not exist", next="ucp start")


def _unreadable_note(node: ContainerNode, why: str) -> UcpError:
    return UcpError(
        f"failed to check the kind cluster {node.cluster}: reading {NOTE} on node "
        f"{node.name} failed: {why}",
        next="run the command again; nothing was deleted",
    )


def addresses(node: ContainerNode) -> dict[str, str]:
    """Addresses on this machine that lead to the node: http, https -> host:port."""
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
            for each in conditions_of(node):
                if each.get("type") == "Ready" and each.get("status") != "True":
                    return f"node {node['metadata']['name']}: {each.get('message') or 'not ready'}"
    except KubeError as error:
        return error.message
    finally:
        kube.close()
    return None
