"""Keeps the backup current while the topology runs: what appears is in git some seconds later.

Supervised, on the machine that has the key, for a core in pods too: neither key nor git belong into
a cluster. It works in a clone of its own, so that it never meets the user or a command in theirs.
It can push where the user's own git settings can; elsewhere the next `ucp start` or `stop` does,
and `ucp doctor` says so.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp import __version__
from k8s_ucp.components.host.program import Program, say
from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import StateFolder, write_private_file

if TYPE_CHECKING:
    from k8s_ucp.components.host.machine import Host
    from k8s_ucp.kube import Kube

NAME = "backup"
LOOK_SECONDS = 15.0
RENEWAL_SECONDS = 3600.0
"""Between commits that hold nothing new but renewed tokens of kubeconfigs."""


def failure(state: StateFolder) -> str:
    """Why the last look could not write what is new; empty where all is well."""
    try:
        return _note(state.components / NAME).read_text("utf-8")
    except OSError:
        return ""


def _note(folder: Path) -> Path:
    return folder / "failed"


@dataclass(frozen=True)
class BackupComponent:
    """As a component of the host.

    clone: the user's of the core repository. url, branch: of that repository, for git here.
    """

    host: Host
    key: Path
    clone: Path
    url: str
    branch: str
    password_namespaces: Sequence[str]
    source_namespaces: Sequence[str]
    others_too: bool = False
    """As of CoreState."""
    python: str = sys.executable

    def programs(self) -> list[Program]:
        folder = self.host.folder(NAME)
        argv = (
            *(self.python, "-P", "-m", "k8s_ucp.components.backup_keeper"),
            *("--folder", str(folder), "--key", str(self.key), "--clone", str(self.clone)),
            *("--url", self.url, "--branch", self.branch),
            *("--kubeconfig", str(self.host.kubeconfig)),
            *("--passwords", ",".join(self.password_namespaces)),
            *("--sources", ",".join(self.source_namespaces)),
            *(["--others-too"] if self.others_too else []),
        )
        env = {
            "MALLOC_ARENA_MAX": "1",
            "UCP_VERSION": __version__,
            **self.host.cluster_environment(),
        }
        return [Program(NAME, argv, folder, env)]


@dataclass
class BackupLoop:
    """One topology's. folder: its own; clone: the user's, which is read and left as it is."""

    folder: Path
    key: Path
    clone: Path
    url: str
    branch: str
    kubeconfig: Path
    password_namespaces: Sequence[str]
    source_namespaces: Sequence[str]
    report: Callable[[str], None]
    others_too: bool = False
    clock: Callable[[], float] = time.monotonic
    _kube: Kube | None = None
    _written: float = float("-inf")
    """When the clock said so, the last commit was made."""
    _told: str = ""

    def run_once(self) -> None:
        """Write what is new. A failure is noted, and told once."""
        try:
            commit = self._save()
        except UcpError as error:
            write_private_file(_note(self.folder), error.message)
            if error.message != self._told:
                self.report(f"not backed up: {error.message}")
            self._told = error.message
            return
        _note(self.folder).unlink(missing_ok=True)
        self._told = ""
        if commit:
            self.report(f"backed up, commit {commit[:8]}")

    def _save(self) -> str | None:
        # Loaded at the first look: a start has other things to do when it starts this program.
        from k8s_ucp.backup import Backup, is_renewal, updated
        from k8s_ucp.backup_key import load_key
        from k8s_ucp.components.core_state import CoreState
        from k8s_ucp.git.clones import make_clone
        from k8s_ucp.git.repository import Repository
        from k8s_ucp.gitops.publish.backup_file import BackupFile
        from k8s_ucp.kube import Kube, KubeError

        if self._kube is None:
            self._kube = Kube.from_file(self.kubeconfig)
        core = CoreState(
            self._kube, self.password_namespaces, self.source_namespaces, self.others_too
        )
        try:
            # Before that, a start is under way: what it puts back is not there yet.
            if not core.restored():
                return None
            seen = core.collect()
        except KubeError:
            # Its silence is told by others; nothing new can appear in it.
            return None
        key = load_key(self.key)
        if key is None and not seen:
            return None
        if key is None:
            raise UcpError(f"the backup key {self.key} is missing")

        recent = self.clock() - self._written < RENEWAL_SECONDS

        def change(known: Backup) -> Backup:
            wanted = updated(known, seen, core.gone)
            return known if recent and is_renewal(known, wanted) else wanted

        own = self.folder / "core"
        if (self.clone / ".git").exists() and not (own / ".git").exists():
            # What starts and stops wrote, read without asking the remote. Once we have written
            # something ourselves, theirs may be behind ours.
            theirs = BackupFile(Repository(self.clone), self.branch)
            known = theirs.read(theirs.seen, key)
            if change(known) == known:
                return None
        ours = BackupFile(make_clone(own, self.url, branch=self.branch), self.branch)
        commit = ours.save(key, change)
        if commit:
            self._written = self.clock()
        return commit


def main() -> None:
    """`python -m k8s_ucp.components.backup_keeper --folder FOLDER …`, until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("folder", "key", "clone", "kubeconfig"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("url", "branch"):
        parser.add_argument(f"--{name}", required=True)
    for name, to in (("passwords", "password_namespaces"), ("sources", "source_namespaces")):
        parser.add_argument(f"--{name}", dest=to, type=lambda text: text.split(","), required=True)
    parser.add_argument("--others-too", action="store_true")
    loop = BackupLoop(**vars(parser.parse_args()), report=say)
    while True:
        time.sleep(LOOK_SECONDS)
        loop.run_once()


if __name__ == "__main__":
    main()
