"""The folder of one embedded control plane.

`<clusters>/<name>.lock` beside it guards it; within it lie our record, the mark that says that the
cluster should run, and kwokctl's own folder. Light on purpose: the watcher imports it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import write_private_file

COMPONENTS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok-controller",
)
"""Names of the processes of a control plane, as kwokctl's PID and log files have them."""

VITAL = ("etcd", "kube-apiserver")
"""Without these nothing answers; the others come back by themselves."""

PORTS = tuple(each for each in COMPONENTS if each != "etcd")
"""Who listens on a port; etcd listens on sockets in the cluster's folder."""


@dataclass(frozen=True)
class Record:
    """What we know of a cluster that was made whole once."""

    version: str
    """Kubernetes version with its v."""
    ports: Mapping[str, int]
    """By the names in PORTS."""


@dataclass(frozen=True)
class ClusterFolder:
    """One cluster's files; `clusters` is the folder of all of them."""

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
        """kwokctl's folder: one for each cluster, so that none sees another's.

        It is `.kwok` in the home folder that kwokctl is given. KWOK_WORKDIR, which would name it
        plainly, is silently ignored when the path holds a space.
        """
        return self.root / ".kwok"

    @property
    def kwok_config(self) -> Path:
        """The settings that kwokctl is given."""
        return self.kwok / "kwok.yaml"

    @property
    def stages(self) -> Path:
        """What kwok does to the cluster's objects, as it is told when it starts."""
        return self.root / "stages.yaml"

    @property
    def kwokctl(self) -> Path:
        """A link to the kwokctl that made the cluster: the watch starts processes with it."""
        return self.root / "kwokctl"

    @property
    def home(self) -> Path:
        """What kwokctl keeps of the cluster, and where its processes work."""
        return self.kwok / "clusters" / self.name

    def pid_file(self, component: str) -> Path:
        return self.home / "pids" / f"{component}.pid"

    def log(self, component: str) -> Path:
        return self.home / "logs" / f"{component}.log"

    def program(self, component: str) -> Path:
        """The link through which kwokctl starts a component."""
        return self.home / "bin" / component

    def certificate(self, name: str) -> Path:
        """ca.crt, admin.crt or admin.key."""
        return self.home / "pki" / name

    @property
    def record_file(self) -> Path:
        return self.root / "cluster.json"

    @property
    def seed_note(self) -> Path:
        """The digest of the seed that the cluster was made with, once it had all of it."""
        return self.root / "seed"

    @property
    def data(self) -> Path:
        """Of etcd."""
        return self.home / "etcd"

    @property
    def data_copy(self) -> Path:
        return self.root / "etcd-before"

    @property
    def upgrade_note(self) -> Path:
        """What the cluster ran before its programs were exchanged, until it is well with them."""
        return self.root / "upgrade.json"

    @property
    def running_mark(self) -> Path:
        return self.root / "running"

    def record(self) -> Record | None:
        """None where there is no cluster, or only what a broken creation left.

        Raises UcpError when the record can't be read.
        """
        try:
            text = self.record_file.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return Record(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise UcpError(
                f"the record of cluster {self.name} is corrupt: {self.record_file}",
                next=f"delete the cluster's folder and recreate the cluster: rm -r '{self.root}'",
            ) from error

    def write_record(self, record: Record) -> None:
        write_private_file(self.record_file, json.dumps(asdict(record), indent=1) + "\n")

    def should_run(self) -> bool:
        """It was started and not stopped since: the watch keeps it alive."""
        return self.running_mark.exists()

    def mark_running(self) -> None:
        write_private_file(self.running_mark, "")

    def mark_stopped(self) -> None:
        self.running_mark.unlink(missing_ok=True)

    def read_pid(self, component: str) -> int | None:
        """The PID that kwokctl noted; says nothing about whose it is now."""
        try:
            number = int(self.pid_file(component).read_text(encoding="ascii"))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        return number if number > 0 else None

    def link(self, link: Path, program: Path) -> None:
        """Point one of the cluster's links at a program."""
        if not link.is_symlink() or link.readlink() != program:
            link.unlink(missing_ok=True)
            link.symlink_to(program)

    def remove(self) -> None:
        """Remove the folder; its processes have ended.

        Cut off on the way it leaves no cluster: the record goes before the data does.
        """
        self.record_file.unlink(missing_ok=True)
        if self.root.exists():
            shutil.rmtree(self.root)


def clusters_in(folder: Path) -> list[str]:
    """Names of the clusters with a folder here, whole or not, sorted."""
    if not folder.is_dir():
        return []
    return sorted(each.name for each in folder.iterdir() if each.is_dir())
