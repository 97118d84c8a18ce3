"""Paths of a topology's state and of its repositories."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.workspace.files import hide_from_git, make_private_folder


def digest(content: bytes, length: int = 16) -> str:
    """The first hexadecimal digits of the sha256 sum."""
    # Imported here, because it loads OpenSSL: 3 ms, which `ucp --help` does not need.
    import hashlib

    return hashlib.sha256(content).hexdigest()[:length]


@dataclass(frozen=True)
class StateFolder:
    """`.ucp/<topology>/`: can be rebuilt from the repositories; never contains the only copy."""

    root: Path

    @property
    def journal(self) -> Path:
        return self.root / "journal.json"

    @property
    def unfinished(self) -> Path:
        """Journals of commands that concern a single object, each until it is done."""
        return self.root / "unfinished"

    def unfinished_file(self, name: str) -> Path:
        """Journal of one of these commands."""
        return self.unfinished / f"{name}.json"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def kubeconfigs(self) -> Path:
        return self.root / "kubeconfigs"

    @property
    def clusters(self) -> Path:
        """Control planes of the embedded provider, one folder each."""
        return self.root / "clusters"

    @property
    def copies(self) -> Path:
        """Throwaway copies of the core cluster, while an upgrade is rehearsed."""
        return self.root / "rehearsal"

    @property
    def ledger(self) -> Path:
        """Record of ucp's objects on an existing core cluster."""
        return self.root / "ledger.json"

    @property
    def cloud_record(self) -> Path:
        """Cloud resources that a teardown deletes, until they were verified to be gone."""
        return self.root / "cloud-resources.json"

    @property
    def abandoned(self) -> Path:
        """Cloud resources that could not be deleted and were abandoned."""
        return self.root / "abandoned.json"

    @property
    def destroyed(self) -> Path:
        """Progress of its destruction, until the next start."""
        return self.root / "destroyed.json"

    @property
    def components(self) -> Path:
        """Working files of the components that run as host processes."""
        return self.root / "components"

    @property
    def backup(self) -> Path:
        """Files of the backup controller."""
        return self.components / "backup"

    @property
    def fence(self) -> Path:
        """Settings for the fence's guard, and the guard's permit."""
        return self.components / "fence"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def versions(self) -> Path:
        """The cache entries of the programs that it runs."""
        return self.root / "versions.json"

    @property
    def identifier(self) -> str:
        """Unique identifier of this folder on this machine, which its processes carry."""
        return f"ucp-{digest(os.fsencode(self.root))}"

    @property
    def runtime_record(self) -> Path:
        """Record of the folder for sockets."""
        return self.root / "runtime.json"

    @property
    def supervisor_config(self) -> Path:
        return self.components / "supervisord.conf"

    def kubeconfig(self, cluster: str) -> Path:
        return self.kubeconfigs / f"{cluster}.yaml"

    def return_note(self, environment: str) -> Path:
        """Exists while `ucp recreate` brings an environment back; a rerun then only waits."""
        return self.root / f"bringing-back-{environment}"

    def make(self) -> None:
        """Create the folders, private to the user. Raises UcpError if that fails."""
        for folder in (
            self.root.parent,
            self.root,
            self.kubeconfigs,
            self.clusters,
            self.components,
            self.logs,
        ):
            make_private_folder(folder)
        hide_from_git(self.root.parent)


@dataclass(frozen=True)
class GitopsFolder:
    """`gitops/<topology>/`: working clones and, if git is local, the bare remotes."""

    root: Path

    @property
    def core(self) -> Path:
        return self.root / "core"

    @property
    def apps(self) -> Path:
        return self.root / "apps"

    @property
    def core_remote(self) -> Path:
        return self.root / "core.git"

    @property
    def apps_remote(self) -> Path:
        return self.root / "apps.git"

    def team(self, name: str) -> Path:
        """A team's working clone."""
        return self.root / f"team-{name}"

    def team_remote(self, name: str) -> Path:
        return self.root / f"team-{name}.git"
