"""The folder that a user works in."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.workspace import identity, sockets
from k8s_ucp.workspace.folders import GitopsFolder, StateFolder


@dataclass(frozen=True)
class Workspace:
    """The folder that a user works in; `root` is absolute."""

    root: Path

    @classmethod
    def at(cls, folder: Path) -> Workspace:
        return cls(folder.expanduser().resolve())

    @property
    def topology_file(self) -> Path:
        return self.root / "ucp.yaml"

    @property
    def credentials(self) -> Path:
        return self.root / "creds"

    @property
    def backup_key(self) -> Path:
        """Decrypts the backups in the core repositories of this workspace's topologies."""
        return self.credentials / "backup.key"

    @property
    def states(self) -> Path:
        """The folder of all topologies' state."""
        return self.root / ".ucp"

    def state(self, topology: str) -> StateFolder:
        return StateFolder(self.states / topology)

    def gitops(self, topology: str) -> GitopsFolder:
        return GitopsFolder(self.root / "gitops" / topology)

    def topologies(self) -> list[str]:
        """Sorted names of the topologies with state here."""
        if not self.states.is_dir():
            return []
        return sorted(each.name for each in self.states.iterdir() if each.is_dir())

    def started(self) -> list[str]:
        """Topologies with state, or with repositories, since state may be deleted and rebuilt."""
        rendered = [each.parent.name for each in self.root.glob("gitops/*/core")]
        return sorted({*self.topologies(), *rendered})

    def runtime_folder(self, topology: str) -> Path:
        """A short private folder for sockets (paths are limited to 107 bytes). Creates nothing.

        It depends on the topology, not on the caller: a command from cron, under sudo or in another
        login finds the sockets of the first start. Before that start, it is the folder that will be
        used.
        """
        return sockets.runtime_folder(self.root, self.state(topology))

    def settle_runtime_folder(self, topology: str) -> Path:
        """Create and record the folder for sockets. Raises UcpError if none can be created."""
        return sockets.settle_runtime_folder(self.root, self.state(topology))

    def machine_id(self, topology: str) -> str:
        """Identifies the creator of clusters: stable for this workspace, even if it is moved.

        A LocalCluster has it in `spec.machine`, a kind cluster in its owner's mark; controllers
        elsewhere never touch these clusters. Writes nothing.
        """
        return identity.machine_id(self.root, topology)

    def original(self) -> str:
        """The workspace that this one was copied from, until something is started here; or "".

        Until then, its kubeconfigs are those of the original's clusters.
        """
        return identity.original_of(self.root)

    def settle_identity(self) -> None:
        """Give this workspace a random identity, once. Raises UcpError if it isn't writable."""
        identity.settle_identity(self.root)


def enclosing_workspace(folder: Path) -> Path | None:
    """The nearest parent of the folder in which a topology was started."""
    for each in folder.parents:
        with suppress(OSError):
            if Workspace(each).started():
                return each
    return None
