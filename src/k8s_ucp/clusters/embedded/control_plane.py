"""Creates, starts and removes one control plane; the caller has the lock of its cluster."""

from __future__ import annotations

import contextlib
import secrets
import time
from pathlib import Path
from typing import Any

from k8s_ucp.cluster_provider import ClusterRequest, Seed
from k8s_ucp.clusters.embedded import (
    api_server,
    datastore,
    definition_edits,
    keys,
    kwokctl,
    programs,
    stages,
)
from k8s_ucp.clusters.embedded.cached import default_objects, definition
from k8s_ucp.clusters.embedded.cached.definition import Particulars
from k8s_ucp.clusters.embedded.folder import COMPONENTS, PORTS, ClusterFolder, Record
from k8s_ucp.clusters.embedded.processes import (
    clean_pid_files,
    end_all,
    end_components,
    find_component,
    find_down,
    find_exposed,
)
from k8s_ucp.clusters.embedded.program_health import find_hung
from k8s_ucp.clusters.embedded.program_upgrade import set_version
from k8s_ucp.clusters.embedded.programs import ProgramPaths
from k8s_ucp.clusters.embedded.settings import Parameters
from k8s_ucp.clusters.ports import Ports, refuse_taken
from k8s_ucp.errors import ProgramMissing, UcpError
from k8s_ucp.kube import Kube
from k8s_ucp.workspace import cache_folder, make_private_folder, write_private_file


class ControlPlaneLifecycle:
    """Runs control planes with the same installed programs."""

    def __init__(self, programs: ProgramPaths | None, version: str | None, ports: Ports) -> None:
        """See EmbeddedProvider."""
        self._programs, self._version, self._ports = programs, version, ports

    def create(self, folder: ClusterFolder, request: ClusterRequest, until: float) -> None:
        """Create a control plane in an empty folder, and wait until it serves the admin."""
        paths = self.paths()
        make_private_folder(folder.root)
        folder.mark_incomplete()
        make_private_folder(folder.kwok)
        ports = self._ports.reserve(str(folder.root), PORTS)
        folder.link(folder.kwokctl, paths["kwokctl"])
        version, cache = self.tag(), cache_folder()
        own = Particulars(folder, ports, secrets.token_hex(8))
        settings = kwokctl.settings(
            *(folder, ports, paths, own.token),
            version=version,
            gogc=Parameters.of(request).gogc,
        )
        kwokctl.write_settings(folder, settings)
        keys.make_keys(folder)
        defined = definition.write(own, settings, paths, cache)
        kwokctl.create(folder, defined=defined, timeout=left(until))
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
        if unknown and api_server.has_defaults(admin_config(folder, record), until):
            default_objects.keep(folder.home, cache, key)
        api_server.add_nodes(admin_config(folder, record), Parameters.of(request).nodes, until)
        folder.complete(record)
        folder.mark_running()

    def start(self, folder: ClusterFolder, until: float) -> Record:
        """Start what is down, with the cluster's own data and settings that are up to date.

        Returns its record. Raises UcpError if it was never created completely.
        """
        record = existing(folder)
        folder.complete(record)
        former = definition_edits.relocate(folder)
        if former and not former.exists():
            self._ports.release(str(former))
        record = self.with_own_ports(folder, record)
        if not keys.are_usable(folder):
            # Nothing could start with them. Data is not encrypted with them, and the ServiceAccount
            # tokens that they signed are renewed.
            end_components(folder, [each for each in COMPONENTS if each != "etcd"])
            keys.make_keys(folder)
        kinds = None
        if find_component(folder, "kube-apiserver"):
            config = admin_config(folder, record)
            with contextlib.closing(Kube(config)) as kube:
                kinds = api_server.gateway_kinds(kube)
            if kinds and stages.outdated(folder, kinds):
                api_server.wait_described(folder, config, kinds, until)
        end_components(folder, definition_edits.update(folder, kinds))
        end_components(folder, find_hung(folder, record))
        if down := find_down(folder):
            record = self._link_programs(folder, record)
            clean_pid_files(folder)
            taken = {name: port for name, port in record.ports.items() if name in down}
            refuse_taken(taken, f"cluster {folder.name}")
            kwokctl.start(folder, timeout=left(until))
        self._await(folder, record, until)
        if not folder.should_run():
            folder.mark_running()
        return record

    def with_own_ports(self, folder: ClusterFolder, record: Record) -> Record:
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
        definition_edits.renumber(folder, record.ports, ports)
        folder.write_record(Record(record.version, ports))
        return existing(folder)

    def remove(self, folder: ClusterFolder) -> None:
        """End its processes, and delete its folder and ports; complete or not."""
        folder.mark_stopped()
        end_all(folder, grace=0)
        folder.remove()
        self._ports.release(str(folder.root))

    def paths(self) -> dict[str, Path]:
        """Paths of the installed programs. Raises ProgramMissing."""
        if self._programs is None:
            raise ProgramMissing("the embedded engine is not installed", next="ucp tools install")
        return programs.find(self._programs)

    def version(self) -> str:
        """Kubernetes version of the programs."""
        if self._version is None:
            from k8s_ucp.tools.catalogue import CATALOGUE

            self._version = CATALOGUE["kubernetes"].version
        return self._version.removeprefix("v")

    def tag(self) -> str:
        """Kubernetes version of the programs, with "v"."""
        return f"v{self.version()}"

    def _await(self, folder: ClusterFolder, record: Record, until: float) -> None:
        api_server.wait_serving(folder, admin_config(folder, record), until)
        if find_down(folder):
            # On a slow machine a controller may exit before the API server responds.
            kwokctl.start(folder, timeout=left(until))
        exposed = find_exposed(folder)
        if exposed:
            raise UcpError(
                f"cluster {folder.name} must listen on loopback addresses only: {exposed}"
            )

    def _link_programs(self, folder: ClusterFolder, record: Record) -> Record:
        """Link newly installed programs if the cluster's own were removed."""
        dangling = [name for name, link in programs.links(folder).items() if not link.exists()]
        if dangling:
            paths = self.paths()
            programs.link(folder, {name: paths[name] for name in dangling})
        if "kube-apiserver" in dangling:
            set_version(folder, record.version, self.tag())
            return existing(folder)
        return record


def existing(folder: ClusterFolder) -> Record:
    """The record of a cluster. Raises UcpError if there is none."""
    name, record = folder.name, folder.record()
    if record is None and folder.root.exists():
        raise UcpError(
            f"the embedded cluster {name} is still being created, or its creation was interrupted",
            next="ucp status; if nothing creates it: ucp start",
        )
    if record is None:
        raise UcpError(f"the embedded cluster {name} does not exist", next="ucp start")
    return record


def admin_config(folder: ClusterFolder, record: Record) -> dict[str, Any]:
    """A kubeconfig of the admin, with certificates inlined."""
    return api_server.kubeconfig(folder, record.ports["kube-apiserver"])


def left(until: float) -> float:
    """Seconds until a time, at least a moment."""
    return max(0.1, until - time.monotonic())


def _write_seed(folder: ClusterFolder, seed: Seed) -> None:
    """Write the CRDs while the API server starts: it reads them a second after etcd responds.

    CRDs that are written later it handles like applied ones. Without the note, all are applied.
    """
    with contextlib.suppress(UcpError):
        datastore.write_crds(folder.home, seed.crds)
        write_private_file(folder.seed_note, seed.digest)
