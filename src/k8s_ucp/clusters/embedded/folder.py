"""The folder of one embedded control plane.

`<clusters>/<name>.lock` beside the folder is its lock. The folder contains our record, the file
that marks the cluster as running, and kwokctl's own folder. Imports little, because the watcher
imports it.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.workspace import write_private_file, write_private_json
from k8s_ucp.workspace.records import parse_json, record_of

COMPONENTS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok-controller",
)
"""Names of the processes of a control plane, as in kwokctl's PID and log files."""

VITAL = ("etcd", "kube-apiserver")
"""Without these the API does not respond; the others recover by themselves."""

PORTS = tuple(each for each in COMPONENTS if each != "etcd")
"""Components that listen on a port; etcd listens on sockets in the cluster's folder."""

_PORT_OPTIONS = {
    "kube-apiserver": "kubeApiserverPort",
    "kube-controller-manager": "kubeControllerManagerPort",
    "kube-scheduler": "kubeSchedulerPort",
    "kwok-controller": "kwokControllerPort",
}
_OPTION = re.compile(r"^  (kubeVersion|k\w+Port): (\S+)$", re.M)
"""In kwokctl's definition of a cluster."""


@dataclass(frozen=True)
class Record:
    """The record of a cluster whose creation was completed."""

    version: str
    """Kubernetes version with "v"."""
    ports: Mapping[str, int]
    """Keys: the names in PORTS."""


@dataclass(frozen=True)
class ClusterFolder:
    """One cluster's files; `clusters` is the folder of all clusters."""

    clusters: Path
    name: str

    @property
    def root(self) -> Path:
        return self.clusters / self.name

    @property
    def lock(self) -> Path:
        return self.clusters / f"{self.name}.lock"

    @property
    def kwok(self) -> Path:
        """kwokctl's folder; one per cluster, so that none sees another's.

        It is `.kwok` in the home folder that kwokctl is given. KWOK_WORKDIR could name it directly,
        but is silently ignored if the path contains a space.
        """
        return self.root / ".kwok"

    @property
    def kwok_config(self) -> Path:
        """The configuration that kwokctl is given."""
        return self.kwok / "kwok.yaml"

    @property
    def stages(self) -> Path:
        """kwok's Stages for the cluster's objects; kwok reads the file when it starts."""
        return self.root / "stages.yaml"

    @property
    def kwokctl(self) -> Path:
        """Link to the kwokctl that created the cluster; the process monitor uses it too."""
        return self.root / "kwokctl"

    @property
    def home(self) -> Path:
        """kwokctl's files of the cluster; also the working folder of its processes."""
        return self.kwok / "clusters" / self.name

    @property
    def definition(self) -> Path:
        """kwokctl's list of the cluster's components, with their arguments."""
        return self.home / "kwok.yaml"

    def pid_file(self, component: str) -> Path:
        return self.home / "pids" / f"{component}.pid"

    def log(self, component: str) -> Path:
        return self.home / "logs" / f"{component}.log"

    def program(self, component: str) -> Path:
        """The link through which kwokctl starts a component."""
        return self.home / "bin" / component

    def certificate(self, name: str) -> Path:
        """Path of a file in the PKI folder: ca.crt, admin.crt or admin.key."""
        return self.home / "pki" / name

    @property
    def record_file(self) -> Path:
        return self.root / "cluster.json"

    @property
    def seed_note(self) -> Path:
        """Digest of the cluster's seed; written once all of the seed is applied."""
        return self.root / "seed"

    @property
    def data(self) -> Path:
        """etcd's data."""
        return self.home / "etcd"

    @property
    def data_copy(self) -> Path:
        return self.root / "etcd-before"

    @property
    def upgrade_record(self) -> Path:
        """The programs from before an upgrade, kept until the cluster is known to be healthy."""
        return self.root / "upgrade.json"

    @property
    def running_mark(self) -> Path:
        return self.root / "running"

    @property
    def incomplete_mark(self) -> Path:
        """Exists while the cluster is created or deleted, so that a lost record proves neither."""
        return self.root / "incomplete"

    def record(self) -> Record | None:
        """The record; None if there is no cluster or only remains of one.

        A lost or corrupt file is replaced by what the definition says: as remains, the cluster
        would be deleted with its data. Raises UcpError if that is not possible.
        """
        if stored := self._stored_record():
            return stored
        corrupt = self.record_file.exists()
        if not corrupt and (self.incomplete_mark.exists() or not self._is_used()):
            return None
        if defined := self._defined_record():
            return defined
        raise UcpError(
            f"the record of cluster {self.name} is {'corrupt' if corrupt else 'lost'} "
            f"({self.record_file}), and so is kwokctl's definition ({self.definition})",
            next="restore one of the two files; or delete the cluster's folder with its data, and "
            f"recreate the cluster: {command_line('rm', '-r', self.root)}",
        )

    def complete(self, record: Record) -> None:
        """Note that the cluster is complete; writes the record if it is lost or corrupt."""
        if self._stored_record() is None:
            self.write_record(record)
        self.incomplete_mark.unlink(missing_ok=True)

    def mark_incomplete(self) -> None:
        """Note that the folder's content may be deleted, until `complete`."""
        write_private_file(self.incomplete_mark, "")

    def _is_used(self) -> bool:
        """Whether it was started and not stopped since, or contains data of etcd."""
        stored = (each for each in (self.data, self.data_copy) if each.is_dir())
        return self.should_run() or any(any(each.iterdir()) for each in stored)

    def _stored_record(self) -> Record | None:
        try:
            found = record_of(Record, parse_json(self.record_file.read_text(encoding="utf-8")))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        return found if all(0 <= port < 65536 for port in found.ports.values()) else None

    def _defined_record(self) -> Record | None:
        try:
            options = dict(_OPTION.findall(self.definition.read_text(encoding="utf-8")))
            ports = {name: int(options[option]) for name, option in _PORT_OPTIONS.items()}
            return Record(options["kubeVersion"], ports)
        except (FileNotFoundError, NotADirectoryError, ValueError, KeyError):
            return None

    def write_record(self, record: Record) -> None:
        write_private_json(self.record_file, record)

    def should_run(self) -> bool:
        """Whether it was started and not stopped since: the process monitor keeps it alive."""
        return self.running_mark.exists()

    def mark_running(self) -> None:
        write_private_file(self.running_mark, "")

    def mark_stopped(self) -> None:
        self.running_mark.unlink(missing_ok=True)

    def read_pid(self, component: str) -> int | None:
        """The PID that kwokctl recorded, which may belong to another process by now."""
        try:
            number = int(self.pid_file(component).read_text(encoding="ascii"))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        return number if number > 0 else None

    def link(self, link: Path, program: Path) -> None:
        """Point one of the cluster's links to a program."""
        if not link.is_symlink() or link.readlink() != program:
            link.unlink(missing_ok=True)
            link.symlink_to(program)

    def remove(self) -> None:
        """Remove the folder; its processes must have ended.

        After an interruption no cluster is left that would start with partial data: the record
        becomes the mark, since a full disk has no space for another file, and the mark is deleted
        after the data.
        """
        if not self.root.exists():
            return
        if self.record_file.exists():
            self.record_file.replace(self.incomplete_mark)
        elif not self.incomplete_mark.exists():
            with contextlib.suppress(OSError):
                self.mark_incomplete()
        for data in (self.data, self.data_copy):
            shutil.rmtree(data, ignore_errors=True)
        shutil.rmtree(self.root)


def clusters_in(folder: Path) -> list[str]:
    """Sorted names of the clusters that have a folder here, complete or not."""
    if not folder.is_dir():
        return []
    return sorted(each.name for each in folder.iterdir() if each.is_dir())
