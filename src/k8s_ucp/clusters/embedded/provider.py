"""The embedded provider: real control planes as processes of this machine, simulated nodes.

kwokctl's binary runtime starts etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
the kwok controller, which simulates nodes and pods. processes.py verifies the identity of the
processes and ends them; process_monitor.py keeps them alive.
"""

from __future__ import annotations

import contextlib
import secrets
import sys
import time
from collections.abc import Collection, Mapping
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
    Seed,
)
from k8s_ucp.clusters.api_server import not_ready
from k8s_ucp.clusters.embedded import (
    api_server,
    datastore,
    default_objects,
    definition,
    kwokctl,
    program_exchange,
    programs,
    stages,
)
from k8s_ucp.clusters.embedded.definition import Particulars
from k8s_ucp.clusters.embedded.folder import (
    COMPONENTS,
    PORTS,
    VITAL,
    ClusterFolder,
    Record,
    clusters_in,
)
from k8s_ucp.clusters.embedded.keys import make_keys
from k8s_ucp.clusters.embedded.processes import (
    clean_pid_files,
    end_all,
    end_components,
    find_component,
    find_down,
    find_exposed,
    find_own,
)
from k8s_ucp.clusters.embedded.program_exchange import (
    CLOSING_SECONDS,
    ExchangePhase,
    note_version,
    repair,
)
from k8s_ucp.clusters.embedded.program_health import program_states
from k8s_ucp.clusters.embedded.programs import ProgramPaths
from k8s_ucp.clusters.embedded.settings import Parameters
from k8s_ucp.clusters.ports import Ports, default_registry, refuse_taken
from k8s_ucp.errors import ProgramMissing, UcpError, UsageError
from k8s_ucp.locks import locked
from k8s_ucp.names import DNS_LABEL
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import (
    Workspace,
    cache_folder,
    make_private_folder,
    write_private_file,
)

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

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
    # kwok's controller splits the path of its settings at these characters.
    if set(str(folder)) & set(',"\n\r'):
        raise UcpError(
            f"the embedded engine can't use the folder {str(folder)!r}: its path "
            "contains a comma, a double quote or a line break",
            next="use a workspace whose path has no such character (--workspace DIR)",
        )


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
        wanted = (request.version or self._available()).removeprefix("v")
        available = self._available().removeprefix("v")
        # An existing cluster keeps its version, whatever is requested, until it is upgraded.
        made = self._folder(request.name).record_file.exists()
        if not made and wanted != available and not available.startswith(wanted + "."):
            raise UsageError(
                f"Kubernetes {wanted} is not available for embedded clusters; "
                f"available: {available}",
                next=f"set version: {available}, or remove the key",
            )
        check_path(self._base)
        Parameters.of(request)
        if self._programs is not None:
            self._paths()

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
        with self._locked(folder, timeout):
            if folder.record():
                repair(folder)
                record = self._existing(folder)
                self._start(folder, record, until)
                api_server.add_nodes(self._config(folder, record), Parameters.of(request).nodes)
                return
            report(f"creating control plane {request.name}")
            # Remains of an interrupted creation.
            self._clear(folder)
            try:
                self._make(folder, request, until)
            except BaseException as error:
                self._clear(folder)
                folder.lock.unlink(missing_ok=True)
                if isinstance(error, OSError):
                    raise UcpError(
                        f"failed to create cluster {request.name} in {self._base}: {error.strerror}"
                    ) from error
                raise

    def start(self, name: str, *, timeout: float = 120) -> None:
        """Start an existing cluster with its data. Raises UcpError if there is none."""
        until = time.monotonic() + timeout
        folder = self._folder(name)
        if folder.record() is None:
            raise _absent(name)
        with self._locked(folder, timeout):
            repair(folder)
            self._start(folder, self._existing(folder), until)

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
            self._clear(folder)
            folder.lock.unlink(missing_ok=True)

    def state(self, name: str) -> ClusterState:
        folder = self._folder(name)
        record = folder.record()
        if record is None:
            broken = folder.root.exists()
            message = "its creation was interrupted" if broken else "the cluster does not exist"
            return ClusterState(name, broken, running=False, ready=False, message=message)
        outdated = False
        down = find_down(folder)
        if down:
            stopped = not folder.should_run() and len(down) > len(VITAL)
            message = "stopped" if stopped else f"not running: {', '.join(down)}"
            running = not set(down) & set(VITAL)
        else:
            config = self._config(folder, record)
            message = not_ready(config) or find_exposed(folder)
            running = True
            outdated = not message and stages.outdated(folder, api_server.gateway_kinds(config))
        return ClusterState(
            name,
            exists=True,
            running=running,
            ready=not message,
            message=message,
            version=record.version,
            outdated=outdated,
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
        before = program_exchange.noted(folder)
        if before is None:
            return None
        exchanged = before.phase is ExchangePhase.EXCHANGED
        return InterruptedUpgrade(before.entries, programs.entries(folder), exchanged=exchanged)

    def upgrade(self, name: str, *, timeout: float = 120) -> None:
        """Restart a cluster with the programs of this provider and its own data.

        The upgrade stays open until `settle_upgrade` confirms it or `roll_back` undoes it. Raises
        UcpError, and DeadlineExceeded if the cluster does not become ready.
        """
        until = time.monotonic() + timeout
        folder, paths = self._folder(name), self._paths()
        version = self._tag()
        with self._locked(folder, timeout):
            repair(folder)
            program_exchange.exchange(folder, self._existing(folder), paths, version)
            self._start(folder, self._existing(folder), until)

    def roll_back(self, name: str, *, timeout: float = 120) -> None:
        """Restart a cluster with its programs from before `upgrade`. Does nothing without one.

        If etcd's minor version had changed, its data is restored too. Raises UcpError.
        """
        until = time.monotonic() + timeout
        folder = self._folder(name)
        with self._locked(folder, timeout):
            if not program_exchange.undo(folder):
                return
            repair(folder)
            self._start(folder, self._existing(folder), until)

    def settle_upgrade(self, name: str) -> None:
        """Close an upgrade whose cluster is healthy; it can't be rolled back then."""
        folder = self._folder(name)
        with self._locked(folder, CLOSING_SECONDS):
            program_exchange.forget_before(folder)

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
        record = folder.record()
        if record is None:
            raise _absent(name)
        return self._config(folder, record)

    def seeded_with(self, name: str) -> str:
        """Digest of the complete seed that a cluster was created with; empty if there was none."""
        try:
            return self._folder(name).seed_note.read_text("ascii")
        except (FileNotFoundError, NotADirectoryError):
            return ""

    def stored_kinds(self, name: str) -> Mapping[str, str]:
        """A running cluster's CRDs by name, in the format of a seed. Raises UcpError."""
        return datastore.read_kinds(self._folder(name).home)

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
        with other._locked(copied, _left(until)):
            # No component acts on incomplete data, and each reads everything when it is restarted.
            end_components(copied, [each for each in COMPONENTS if each != "etcd"])
            datastore.clear(copied.home)
            for page in datastore.read_pages(self._folder(original).home, without=NOT_COPIED):
                datastore.write(copied.home, page)
            other._start(copied, other._existing(copied), until)

    def peak_megabytes(self, name: str) -> int:
        """Sum of the peak memory of each process of a cluster."""
        found = find_own(self._folder(name))
        return sum(process.peak_bytes(each.pid) for each in found) // 10**6

    def _make(self, folder: ClusterFolder, request: ClusterRequest, until: float) -> None:
        paths = self._paths()
        make_private_folder(folder.root)
        make_private_folder(folder.kwok)
        ports = self._ports.reserve(str(folder.root), PORTS)
        folder.link(folder.kwokctl, paths["kwokctl"])
        version, cache = self._tag(), cache_folder()
        own = Particulars(folder, ports, secrets.token_hex(8))
        settings = kwokctl.settings(
            *(folder, ports, paths, own.token),
            version=version,
            gogc=Parameters.of(request).gogc,
        )
        kwokctl.write_settings(folder, settings)
        make_keys(folder)
        defined = definition.write(own, settings, paths, cache)
        kwokctl.create(folder, defined=defined, timeout=_left(until))
        key = default_objects.key(paths)
        has_defaults = default_objects.write_cached_objects(folder.home, cache, key)
        if request.seed:
            _write_seed(folder, request.seed)
        record = Record(version, ports)
        self._await(folder, record, until)
        if not defined:
            definition.keep(own, settings, cache)
        # APIServices of a seed's CRDs are not defaults.
        unknown = not (has_defaults or request.seed)
        if unknown and api_server.has_defaults(self._config(folder, record), until):
            default_objects.keep(folder.home, cache, key)
        api_server.add_nodes(self._config(folder, record), Parameters.of(request).nodes)
        folder.write_record(record)
        folder.mark_running()

    def _start(self, folder: ClusterFolder, record: Record, until: float) -> None:
        former = definition.relocate(folder)
        if former and not former.exists():
            self._ports.release(str(former))
        record = self._with_own_ports(folder, record)
        kinds = None
        if find_component(folder, "kube-apiserver"):
            config = self._config(folder, record)
            kinds = api_server.gateway_kinds(config)
            if kinds and stages.outdated(folder, kinds):
                api_server.wait_described(folder, config, kinds, until)
        end_components(folder, kwokctl.update(folder, kinds))
        if down := find_down(folder):
            record = self._link_programs(folder, record)
            clean_pid_files(folder)
            taken = {name: port for name, port in record.ports.items() if name in down}
            refuse_taken(taken, f"cluster {folder.name}")
            kwokctl.start(folder, timeout=_left(until))
        self._await(folder, record, until)
        if not folder.should_run():
            folder.mark_running()

    def _with_own_ports(self, folder: ClusterFolder, record: Record) -> Record:
        """The record, with ports that no other cluster has got since it was started last.

        A workspace in the former place of a moved one has the ports that are reserved for there.
        """
        if len(find_down(folder)) < len(COMPONENTS):
            self._ports.claim(str(folder.root), record.ports)
            return record
        names = tuple(record.ports)
        ports = self._ports.reserve(str(folder.root), names, known=record.ports)
        if ports == record.ports:
            return record
        definition.renumber(folder, record.ports, ports)
        folder.write_record(Record(record.version, ports))
        return self._existing(folder)

    def _await(self, folder: ClusterFolder, record: Record, until: float) -> None:
        api_server.wait_serving(folder, self._config(folder, record), until)
        if find_down(folder):
            # On a slow machine a controller may exit before the API server responds.
            kwokctl.start(folder, timeout=_left(until))
        exposed = find_exposed(folder)
        if exposed:
            raise UcpError(
                f"cluster {folder.name} must listen on loopback addresses only: {exposed}"
            )

    def _clear(self, folder: ClusterFolder) -> None:
        folder.mark_stopped()
        end_all(folder, grace=0)
        folder.remove()
        self._ports.release(str(folder.root))

    def _link_programs(self, folder: ClusterFolder, record: Record) -> Record:
        """Link newly installed programs if the cluster's own were removed."""
        dangling = [name for name, link in programs.links(folder).items() if not link.exists()]
        if dangling:
            paths = self._paths()
            programs.link(folder, {name: paths[name] for name in dangling})
        if "kube-apiserver" in dangling:
            note_version(folder, record.version, self._tag())
            return self._existing(folder)
        return record

    def _existing(self, folder: ClusterFolder) -> Record:
        record = folder.record()
        if record is None:
            raise _absent(folder.name)
        return record

    def _paths(self) -> dict[str, Path]:
        if self._programs is None:
            raise ProgramMissing("the embedded engine is not installed", next="ucp tools install")
        return programs.find(self._programs)

    def _available(self) -> str:
        if self._version is None:
            from k8s_ucp.tools.catalogue import CATALOGUE

            self._version = CATALOGUE["kubernetes"].version
        return self._version

    def _tag(self) -> str:
        """The available version with "v"."""
        return "v" + self._available().removeprefix("v")

    def _folder(self, name: str) -> ClusterFolder:
        return ClusterFolder(self._base, name)

    def _locked(self, folder: ClusterFolder, timeout: float) -> Any:
        return locked(folder.lock, f"the lock of cluster {folder.name}", timeout=timeout)

    def _config(self, folder: ClusterFolder, record: Record) -> dict[str, Any]:
        return api_server.kubeconfig(folder, record.ports["kube-apiserver"])


def _write_seed(folder: ClusterFolder, seed: Seed) -> None:
    """Write the CRDs while the API server starts: it reads them a second after etcd responds.

    CRDs that are written later it handles like applied ones. Without the note, all are applied.
    """
    with contextlib.suppress(UcpError):
        datastore.write_kinds(folder.home, seed.kinds)
        write_private_file(folder.seed_note, seed.digest)


def _absent(name: str) -> UcpError:
    return UcpError(f"the embedded cluster {name} does not exist", next="ucp start")


def _left(until: float) -> float:
    return max(0.1, until - time.monotonic())


def make(workspace: Workspace, topology: Topology, toolbox: Toolbox | None) -> EmbeddedProvider:
    version = toolbox.version("kubernetes") if toolbox else None
    return EmbeddedProvider(workspace.state(topology.name).clusters, toolbox, version=version)
