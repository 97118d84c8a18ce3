"""The kind provider: real clusters with real pods, each a container of the user's engine.

A cluster is ours by a mark that its node has from the first moment: a mount whose path in the node
names the workspace (../container_engine.py). Nodes with another mark, or none, are never touched. A
cluster is complete once its node contains our note. One without a note is recreated only if this
workspace recorded the beginning of its creation but not the end, and no API server responds: any
other may contain data that somebody needs, so the user has to decide.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp.cluster_provider import (
    HTTP,
    HTTPS,
    ClusterRequest,
    ClusterState,
    ProviderInfo,
    Reach,
    Report,
)
from k8s_ucp.clusters import api_server
from k8s_ucp.clusters.container_engine import ContainerEngine, ContainerNode, mark_folder, mark_of
from k8s_ucp.clusters.images import mirrored
from k8s_ucp.clusters.kind import checks, network, program
from k8s_ucp.clusters.kind.config import KindSettings, config_text
from k8s_ucp.clusters.kind.images import KindImages
from k8s_ucp.clusters.kind.nodes import KindNodes, absent
from k8s_ucp.clusters.kind.program import KindProgram
from k8s_ucp.clusters.ports import Ports, default_registry
from k8s_ucp.errors import DeadlineExceeded, UcpError
from k8s_ucp.locks import locked
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import Workspace, cache_folder, make_private_folder, write_private_file

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

NODE_IMAGE = (
    "kindest/node:v1.37.0@sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5"
)
"""The node image that the pinned kind was released with."""
CREATE_SECONDS = 600.0
PAUSE = 0.2
DELETE_SECONDS = 180.0
"""On a busy machine, Docker takes more than a minute to remove the containers of a cluster."""
ANSWER_SECONDS = 60.0
"""Time for an API server to respond before its cluster is considered to have none."""
BEGUN = "begun"
"""Our file for a cluster whose creation is in progress."""


class KindProvider:
    """One topology's kind clusters. Implements ClusterProvider; thread-safe."""

    def __init__(
        self,
        folder: Path,
        programs: Toolbox | None,
        *,
        owner: str,
        engine: ContainerEngine | None = None,
        node_image: str | None = None,
        mirror: str | None = None,
        archives: Sequence[Path] = (),
        ports: Ports | None = None,
    ) -> None:
        """folder: for our files about the clusters; all of them can be rebuilt.

        programs: with kind; None if clusters are only inspected, started, stopped or deleted.
        owner: of the clusters, such as Workspace.machine_id. mirror: registry for the pinned node
        image; an image that the user names is pulled by that name. archives: of images (`docker
        save`), loaded into each new cluster.
        """
        self._base = folder.resolve()
        self._owner = owner
        self._engine = engine or ContainerEngine()
        self._kind = KindProgram(programs, self._engine)
        self._nodes = KindNodes(self._engine, owner)
        self.images = KindImages(self._base, self._engine, self._kind, self._nodes)
        """Loads images into the nodes."""
        self._image = node_image or NODE_IMAGE
        self._mirror = None if node_image else mirror
        self._archives = tuple(archives)
        self._ports = ports or Ports(default_registry())

    @property
    def info(self) -> ProviderInfo:
        return PROVIDERS["kind"]

    def check_machine(self, clusters: int) -> None:
        """Check the inotify instances for so many clusters. Raises UcpError."""
        checks.check_limits(clusters=clusters)

    def preflight(
        self,
        request: ClusterRequest,
        *,
        reach: Reach = Reach.MACHINE,  # noqa: ARG002 (its network has one reach)
    ) -> None:
        """Check everything that can be checked before the first change. Raises UcpError."""
        checks.check_name(request.name)
        checks.check_version(request, self._image)
        checks.check_mounts(request.mounts)
        checks.check_archives(self._archives)
        info = self._engine.info()
        checks.check_engine(self._engine, info)
        checks.check_limits()
        nodes = self._engine.nodes(request.name)
        checks.check_owner(self._engine, request.name, nodes, self._owner)
        if nodes:
            checks.check_same_ports(request, nodes[0])
        else:
            checks.check_ports(request.name, request.ports, info)

    def create(
        self, request: ClusterRequest, report: Report, *, timeout: float = CREATE_SECONDS
    ) -> None:
        """Create the cluster if absent, start it if stopped, keep it if it runs.

        Returns when the API server serves the admin; the node becomes Ready some seconds later.
        Raises DeadlineExceeded or UcpError; a failed creation leaves nothing behind.
        """
        self.preflight(request)
        until = time.monotonic() + timeout
        name = request.name
        with self._locked(name, timeout):
            nodes = self._nodes.of(name)
            if nodes:
                self._nodes.start(nodes, timeout=_left(until))
                note = self._read_note(nodes[0], until)
                if note is None and not self._was_interrupted(name, nodes, until):
                    report(f"completing {name}, whose creation was interrupted")
                    note = {}
                if note is not None:
                    self._await(name, until)
                    checks.check_same_mounts(request, nodes[0])
                    self._load(nodes, note, report, until)
                    return
                report(f"deleting the remains of an interrupted creation of {name}")
                self._clear(name)
            try:
                self._make(request, report, until)
            except BaseException:
                self._clear(name)
                self._lock_file(name).unlink(missing_ok=True)
                raise

    def start(self, name: str, *, timeout: float = 120) -> None:
        """Start an existing cluster with its data. Raises UcpError if there is none."""
        until = time.monotonic() + timeout
        if not self._nodes.of(name):
            raise absent(name)
        with self._locked(name, timeout):
            nodes = self._nodes.of(name)
            if not nodes:
                raise absent(name)
            self._nodes.start(nodes, timeout=_left(until))
            self._await(name, until)

    def stop(self, name: str, *, timeout: float = 60) -> None:
        """Stop it and keep its data. Does nothing if it is absent or stopped."""
        if any(each.running for each in self._nodes.of(name)):
            with self._locked(name, timeout):
                running = [each for each in self._nodes.of(name) if each.running]
                self._engine.stop(running, timeout=timeout)

    def delete(self, name: str, *, timeout: float = DELETE_SECONDS) -> None:
        """Delete it with its data. Does nothing if it is absent."""
        self.images.forget(name)
        if self._nodes.of(name) or self._folder(name).exists():
            with self._locked(name, timeout):
                self._clear(name, timeout=timeout)
                self._lock_file(name).unlink(missing_ok=True)

    def state(self, name: str) -> ClusterState:
        """State of a cluster; running, not ready, with the reason, if the engine is silent."""
        return self._nodes.state(name)

    def names(self) -> list[str]:
        """Sorted names of this workspace's clusters; empty if no engine is installed."""
        return self._nodes.clusters()

    def remains(self, names: Collection[str]) -> Mapping[str, str]:
        """{cluster: description} of those with one of these names that have containers."""
        return {each: f"kind cluster {each}" for each in self.names() if each in names}

    def kubeconfig(self, name: str, *, reach: Reach = Reach.MACHINE) -> dict[str, Any]:
        """An admin kubeconfig, certificates inlined. Raises UcpError if there is none.

        Pods reach the node by its name on the engine's network, this machine through a mapped port.
        """
        nodes = self._nodes.of(name)
        if not nodes:
            raise absent(name)
        return self._nodes.config(nodes[0], reach)

    def _make(self, request: ClusterRequest, report: Report, until: float) -> None:
        name, folder = request.name, self._folder(request.name)
        mirror = mirrored(self._image, self._mirror)
        image = program.at_hand(self._engine, self._image, mirror, report, timeout=_left(until))
        report(f"creating cluster {name}")
        make_private_folder(folder)
        # Deleted before the note is written: an interruption between the two leaves neither, and a
        # cluster that has neither is never deleted.
        write_private_file(folder / BEGUN, "")
        file = folder / "kind.json"
        write_private_file(file, config_text(self._settings(request)))
        with network.noted(self._engine, cache_folder()):
            self._kind.create(name, image, file, timeout=_left(until), report=report)
        nodes = self._nodes.of(name)
        self._await(name, until)
        self._load(nodes, {}, report, until)

    def _read_note(self, node: ContainerNode, until: float) -> dict[str, Any] | None:
        """Read the note; retry while a node that just started refuses commands. Raises UcpError."""
        limit = min(until, time.monotonic() + ANSWER_SECONDS)
        while True:
            try:
                return self._nodes.read_note(node)
            except UcpError:
                if time.monotonic() >= limit:
                    raise
            time.sleep(PAUSE)

    def _was_interrupted(self, name: str, nodes: Sequence[ContainerNode], until: float) -> bool:
        """Nodes without a note: True if they were never in use; False if only the note is missing.

        Raises UcpError if neither can be proven.
        """
        reason = self._last_reason(lambda: self._silence(name), until)
        if reason is None:
            reason = self._last_reason(lambda: self._nodes.lacks(nodes[0]), until)
            if reason is None:
                return False
        if (self._folder(name) / BEGUN).exists() and not self._nodes.api_server_responds(nodes[0]):
            return True
        names = " ".join(each.name for each in nodes)
        raise UcpError(
            f"the kind cluster {name} is incomplete, and may have been in use: its "
            f"node has no creation record of ucp, and: {reason}",
            next=(
                "inspect it (kubectl, or the node's log); if nothing on it is needed, "
                f"delete it with `{self._engine.name} rm --force --volumes {names}`, then "
                "run the command again"
            ),
        )

    def _settings(self, request: ClusterRequest) -> KindSettings:
        reserved = self._ports.reserve(str(self._folder(request.name)), ("api", "http", "https"))
        mark = mark_folder(cache_folder())
        mark.mkdir(parents=True, exist_ok=True)
        return KindSettings(
            request.name,
            api_port=reserved["api"],
            ports=request.ports or {HTTP: reserved["http"], HTTPS: reserved["https"]},
            mounts={**request.mounts, mark_of(self._owner): mark},
            cgroup=self._engine.info().cgroup,
        )

    def _load(
        self, nodes: Sequence[ContainerNode], note: Mapping[str, Any], report: Report, until: float
    ) -> None:
        """Load the archives; that completes the cluster."""
        name = nodes[0].cluster
        self.images.load_archives(
            nodes,
            note,
            self._archives,
            report,
            timeout=_left(until),
            before_note=lambda: (self._folder(name) / BEGUN).unlink(missing_ok=True),
        )

    def _await(self, name: str, until: float) -> None:
        """Wait until the API server serves the admin."""
        began = time.monotonic()
        while reason := self._silence(name):
            if time.monotonic() >= until:
                raise DeadlineExceeded(
                    f"an API server that serves cluster {name}", until - began, reason
                )
            time.sleep(PAUSE)

    def _last_reason(self, look: Callable[[], str | None], until: float) -> str | None:
        """The last reason why a cluster is incomplete after a while; None once it is complete."""
        limit = min(until, time.monotonic() + ANSWER_SECONDS)
        while (reason := look()) and time.monotonic() < limit:
            time.sleep(PAUSE)
        return reason

    def _silence(self, name: str) -> str | None:
        try:
            return api_server.not_ready(self.kubeconfig(name))
        except UcpError as error:
            return error.message

    def _clear(self, name: str, *, timeout: float = DELETE_SECONDS) -> None:
        """Remove the cluster's containers, ports and files, and the network if it was ours."""
        until = time.monotonic() + timeout
        # Repeated, because a creation that was killed may still be adding a container.
        while nodes := self._nodes.of(name):
            self._engine.remove(nodes, timeout=_left(until))
            time.sleep(PAUSE)
        network.remove_if_ours(self._engine, cache_folder())
        folder = self._folder(name)
        if folder.exists():
            shutil.rmtree(folder)
        self._ports.release(str(folder))

    def _folder(self, name: str) -> Path:
        return self._base / name

    def _lock_file(self, name: str) -> Path:
        return self._base / f"{name}.lock"

    def _locked(self, name: str, timeout: float) -> Any:
        make_private_folder(self._base)
        return locked(self._lock_file(name), f"the lock of cluster {name}", timeout=timeout)


def why_unavailable() -> UcpError | None:
    """Why no container engine is available, with advice; None if kind can be used."""
    try:
        ContainerEngine().info()
    except UcpError as error:
        return error
    return None


def _left(until: float) -> float:
    return max(0.1, until - time.monotonic())


def make(workspace: Workspace, topology: Topology, toolbox: Toolbox | None) -> KindProvider:
    images = topology.spec.images
    return KindProvider(
        workspace.state(topology.name).root / PROVIDERS["kind"].state_folder,
        toolbox,
        owner=workspace.machine_id(topology.name),
        node_image=images.node_image,
        mirror=images.mirror,
        archives=[workspace.root / each for each in images.archives],
    )
