"""The embedded provider: real control planes as processes of this machine, simulated nodes.

kwokctl's binary runtime starts etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
the kwok controller, which simulates nodes and pods. processes.py verifies the identity of the
processes and ends them; process_monitor.py keeps them alive. Here are the checks and locks of the
protocol; control_plane.py has what is done with one cluster.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp import process
from k8s_ucp.cluster_provider import (
    ClusterRequest,
    ClusterState,
    InterruptedUpgrade,
    ProgramHealth,
    ProviderInfo,
    Reach,
    Report,
)
from k8s_ucp.clusters.api_server import READY, failure_of
from k8s_ucp.clusters.embedded import api_server, datastore, program_upgrade, programs, stages
from k8s_ucp.clusters.embedded.control_plane import (
    ControlPlaneLifecycle,
    admin_config,
    existing,
    left,
)
from k8s_ucp.clusters.embedded.folder import COMPONENTS, VITAL, ClusterFolder, clusters_in
from k8s_ucp.clusters.embedded.processes import (
    end_all,
    end_components,
    find_down,
    find_exposed,
    find_own,
)
from k8s_ucp.clusters.embedded.program_health import hung_problem, program_states
from k8s_ucp.clusters.embedded.program_upgrade import CLOSING_SECONDS, UpgradePhase, repair
from k8s_ucp.clusters.embedded.programs import ProgramPaths
from k8s_ucp.clusters.embedded.settings import Parameters
from k8s_ucp.clusters.ports import Ports, default_registry, in_use, is_answered
from k8s_ucp.errors import UcpError, UsageError, advise_space
from k8s_ucp.kube import Kube
from k8s_ucp.locks import locked
from k8s_ucp.names import DNS_LABEL
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import Workspace, make_private_folder

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

ROLLBACK_SECONDS = 120.0
NOT_COPIED = tuple(
    f"/registry/{each}/"
    for each in (
        "events",
        "leases",
        "masterleases",
        "peerserverleases",
        "apiregistration.k8s.io/apiservices",
        "admissionregistration.k8s.io/mutatingwebhookconfigurations",
        "admissionregistration.k8s.io/validatingwebhookconfigurations",
    )
)
"""Prefixes of keys in etcd. Webhooks and API services would call the servers of the original; the
API server creates its own API services."""


def check_path(folder: Path) -> None:
    """Check that clusters can be created in this folder. Raises UcpError."""
    # kwok's controller splits the path of its settings at these characters; Argo CD refuses to run
    # a helm whose path has an apostrophe.
    if set(str(folder)) & set(",\"'\n\r"):
        raise UcpError(
            f"the embedded engine can't use the folder {str(folder)!r}: its path "
            "contains a comma, a double quote, an apostrophe or a line break",
            next="use a workspace whose path has no such character (--workspace DIR)",
        )


@contextmanager
def _file_named(cluster: str) -> Iterator[None]:
    """Turn errors of the file system into UcpError: it may be the cache's, not the workspace's."""
    try:
        yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise UcpError(
            f"failed to create or start cluster {cluster}: {where}{error.strerror or error}",
            next=advise_space(error),
        ) from error


def _taken_port(folder: ClusterFolder, ports: Mapping[str, int]) -> UcpError | None:
    """The refusal if another program listens on a port of a component that is down."""
    answered = {name: port for name, port in ports.items() if is_answered(port)}
    if not answered:
        return None
    ours = {port for each in find_own(folder) for _, port in process.listeners(each.pid)}
    for name, port in answered.items():
        # Asked again: one of ours may have ended meanwhile.
        if port not in ours and is_answered(port):
            return in_use(port, name, f"cluster {folder.name}")
    return None


class EmbeddedProvider:
    """Control planes of one topology, in `folder`. Implements ClusterProvider."""

    def __init__(
        self,
        folder: Path,
        programs: ProgramPaths | None,
        *,
        version: str | None = None,
        ports: Ports | None = None,
    ) -> None:
        """programs: None if existing clusters are only inspected, stopped or deleted.

        version: Kubernetes version of the programs; None for the catalogue's.
        """
        self._base = folder.resolve()
        self._programs = programs
        self._version = version
        self._ports = ports or Ports(default_registry())
        self._lifecycle = ControlPlaneLifecycle(programs, version, self._ports)

    @property
    def info(self) -> ProviderInfo:
        return PROVIDERS["embedded"]

    def check_machine(self, _: int) -> None:
        """Check that clusters can be created in the topology's folder. Raises UcpError."""
        check_path(self._base)

    def preflight(
        self,
        request: ClusterRequest,
        *,
        reach: Reach = Reach.MACHINE,  # noqa: ARG002 (topologies with pods are refused)
    ) -> None:
        """Check everything that can be checked before the first change. Raises UcpError."""
        if sys.platform != "linux":
            raise UcpError("the embedded engine runs on Linux only", next="use --core kind")
        if not DNS_LABEL.fullmatch(request.name):
            raise UsageError(
                f"{request.name!r} is not a valid cluster name: use 1 to 63 of a-z, "
                "0-9 and -, a letter or digit first and last"
            )
        available = self._lifecycle.version()
        wanted = (request.version or available).removeprefix("v")
        # An existing cluster keeps its version, whatever is requested, until it is upgraded.
        fits = wanted == available or available.startswith(wanted + ".")
        if not fits and self._folder(request.name).record() is None:
            raise UsageError(
                f"Kubernetes {wanted} is not available for embedded clusters; "
                f"available: {available}",
                next=f"set version: {available}, or remove the key",
            )
        check_path(self._base)
        Parameters.of(request)
        if self._programs is not None:
            self._lifecycle.paths()

    def create(self, request: ClusterRequest, report: Report, *, timeout: float = 120) -> None:
        """Create the cluster if absent, start it if stopped, keep it if it runs.

        Returns when the API server serves the admin; default roles, controllers, scheduler and
        nodes become ready within seconds (see `state`). Raises DeadlineExceeded or UcpError; a
        failed creation leaves nothing behind.
        """
        self.preflight(request)
        until = time.monotonic() + timeout
        folder = self._folder(request.name)
        make_private_folder(self._base)
        with self._locked(folder, timeout), _file_named(request.name):
            if folder.record():
                repair(folder)
                record = self._lifecycle.start(folder, until)
                api_server.add_nodes(
                    admin_config(folder, record), Parameters.of(request).nodes, until
                )
                return
            report(f"creating control plane {request.name}")
            # Remains of an interrupted creation.
            self._lifecycle.remove(folder)
            try:
                self._lifecycle.create(folder, request, until)
            except BaseException:
                self._lifecycle.remove(folder)
                folder.lock.unlink(missing_ok=True)
                raise

    def start(self, name: str, *, timeout: float = 120) -> None:
        """Start an existing cluster with its data. Raises UcpError if there is none."""
        until = time.monotonic() + timeout
        folder = self._folder(name)
        existing(folder)  # Fails before it waits for the lock.
        with self._locked(folder, timeout):
            repair(folder)
            self._lifecycle.start(folder, until)

    def stop(self, name: str, *, timeout: float = 60) -> None:
        """Stop it and keep its data. Does nothing if it is absent or stopped."""
        folder = self._folder(name)
        if not folder.root.exists():
            return
        with self._locked(folder, timeout):
            folder.mark_stopped()
            end_all(folder, grace=min(CLOSING_SECONDS, timeout))

    def delete(self, name: str, *, timeout: float = 60) -> None:
        """Delete it with its data. Does nothing if it is absent."""
        folder = self._folder(name)
        if not self._base.is_dir():
            return
        with self._locked(folder, timeout):
            self._lifecycle.remove(folder)
            folder.lock.unlink(missing_ok=True)

    def state(self, name: str) -> ClusterState:
        folder = self._folder(name)
        record = folder.record()
        if record is None:
            broken = folder.root.exists()
            message = "its creation was interrupted" if broken else "the cluster does not exist"
            return ClusterState(name, broken, running=False, ready=False, message=message)
        outdated, obstacle = False, None
        down = find_down(folder)
        if down:
            obstacle = _taken_port(
                folder, {name: port for name, port in record.ports.items() if name in down}
            )
            stopped = not folder.should_run() and len(down) > len(VITAL)
            message = "stopped" if stopped else f"not running: {', '.join(down)}"
            running = not set(down) & set(VITAL)
        else:
            running = True
            try:
                with closing(Kube(admin_config(folder, record))) as kube:
                    message = (
                        failure_of(kube, READY)
                        or find_exposed(folder)
                        or hung_problem(folder, record)
                    )
                    outdated = not message and stages.outdated(
                        folder, api_server.gateway_kinds(kube)
                    )
            except UcpError as error:
                # Such as lost keys, which the next start replaces.
                message = error.message
        return ClusterState(
            name,
            exists=True,
            running=running,
            ready=not message,
            message=message,
            version=record.version,
            outdated=outdated,
            obstacle=obstacle,
        )

    def names(self) -> list[str]:
        """Sorted names of the clusters that exist here, complete or not."""
        return clusters_in(self._base)

    def remains(self, names: Collection[str]) -> Mapping[str, str]:
        """Running processes of these clusters, even if the folder was removed."""
        processes = ((name, find_own(ClusterFolder(self._base, name))) for name in names)
        return {
            name: ", ".join(f"{each.executable} (PID {each.pid})" for each in found)
            for name, found in processes
            if found
        }

    def entries(self, name: str) -> Mapping[str, str]:
        """Tool -> entry in the user's cache, of a cluster's programs; empty if there is none."""
        return programs.entries(self._folder(name))

    def programs(self, name: str) -> Mapping[str, ProgramHealth]:
        """Health of each program of the control plane; empty if there is no cluster."""
        folder = self._folder(name)
        record = folder.record()
        return program_states(folder, record) if record else {}

    def interrupted_upgrade(self, name: str) -> InterruptedUpgrade | None:
        """The upgrade that was not completed; None if there is none. Raises UcpError."""
        folder = self._folder(name)
        before = program_upgrade.read_record(folder)
        if before is None:
            return None
        replaced = before.phase is UpgradePhase.REPLACED
        return InterruptedUpgrade(before.entries, programs.entries(folder), replaced=replaced)

    def upgrade(self, name: str, *, timeout: float = 120) -> None:
        """Restart a cluster with the programs of this provider and its own data.

        The upgrade stays open until `settle_upgrade` confirms it or `roll_back` undoes it. Raises
        UcpError, and DeadlineExceeded if the cluster does not become ready.
        """
        until = time.monotonic() + timeout
        folder, paths = self._folder(name), self._lifecycle.paths()
        version = self._lifecycle.tag()
        with self._locked(folder, timeout):
            repair(folder)
            program_upgrade.replace_programs(folder, existing(folder), paths, version)
            self._lifecycle.start(folder, until)

    def roll_back(self, name: str) -> None:
        """Restart a cluster with its programs from before `upgrade`. Does nothing without one.

        If etcd's minor version had changed, its data is restored too. Raises UcpError.
        """
        until = time.monotonic() + ROLLBACK_SECONDS
        folder = self._folder(name)
        with self._locked(folder, ROLLBACK_SECONDS):
            if not program_upgrade.request_rollback(folder):
                return
            repair(folder)
            self._lifecycle.start(folder, until)

    def settle_upgrade(self, name: str) -> None:
        """Close an upgrade whose cluster is healthy; it can't be rolled back then."""
        folder = self._folder(name)
        with self._locked(folder, CLOSING_SECONDS):
            program_upgrade.delete_record(folder)

    def kubeconfig(self, name: str, *, reach: Reach = Reach.MACHINE) -> dict[str, Any]:
        """An admin kubeconfig with certificates inlined. Raises UcpError if there is none.

        The control planes listen on the loopback interface of this machine, which pods can't reach.
        """
        if reach is Reach.PODS:
            raise UcpError(
                f"pods of the core cluster can't reach the embedded cluster {name}",
                next="use an embedded core cluster",
            )
        folder = self._folder(name)
        return admin_config(folder, existing(folder))

    def seeded_with(self, name: str) -> str:
        """Digest of the complete seed that a cluster was created with; empty if there was none."""
        try:
            return self._folder(name).seed_note.read_text("ascii")
        except (FileNotFoundError, NotADirectoryError):
            return ""

    def stored_crds(self, name: str) -> Mapping[str, str]:
        """A running cluster's CRDs by name, in the format of a seed. Raises UcpError."""
        return datastore.read_crds(self._folder(name).home)

    def elsewhere(self, folder: Path) -> EmbeddedProvider:
        """A provider with the same programs, for clusters in another folder."""
        return EmbeddedProvider(folder, self._programs, version=self._version, ports=self._ports)

    def copy(self, original: str, folder: Path, name: str, *, timeout: float = 120) -> None:
        """Create a cluster with the data of a running one, but its own keys, ports and folder.

        Credentials for the original are not valid for the copy. Objects that would make the copy
        call other servers, and short-lived ones, are left out. Raises UcpError, DeadlineExceeded.
        """
        until = time.monotonic() + timeout
        other = self.elsewhere(folder)
        parameters = {"nodes": "0"}
        other.create(ClusterRequest(name, None, parameters), lambda _: None, timeout=timeout)
        copied = other._folder(name)
        with other._locked(copied, left(until)):
            # No component acts on incomplete data, and each reads everything when it is restarted.
            end_components(copied, [each for each in COMPONENTS if each != "etcd"])
            datastore.clear(copied.home)
            for page in datastore.read_pages(self._folder(original).home, without=NOT_COPIED):
                datastore.write(copied.home, page)
            other._lifecycle.start(copied, until)

    def peak_megabytes(self, name: str) -> int:
        """Sum of the peak memory of each process of a cluster."""
        found = find_own(self._folder(name))
        return sum(process.peak_bytes(each.pid) for each in found) // 10**6

    def _folder(self, name: str) -> ClusterFolder:
        return ClusterFolder(self._base, name)

    def _locked(self, folder: ClusterFolder, timeout: float) -> Any:
        return locked(folder.lock, f"the lock of cluster {folder.name}", timeout=timeout)


def make(workspace: Workspace, topology: Topology, toolbox: Toolbox | None) -> EmbeddedProvider:
    version = toolbox.version("kubernetes") if toolbox else None
    return EmbeddedProvider(workspace.state(topology.name).clusters, toolbox, version=version)
