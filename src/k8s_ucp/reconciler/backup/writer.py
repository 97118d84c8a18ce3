"""Writes changes on the core to the backup, and records why if it can't.

It works in a clone of its own, so that it never meets the user or a command in theirs. It can push
where the user's own git settings can; elsewhere the next `ucp start` or `stop` does, and `ucp
doctor` says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp.errors import UcpError
from k8s_ucp.kube import KubeError
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.settings import Settings
from k8s_ucp.workspace import make_private_folder, write_private_file

if TYPE_CHECKING:
    from k8s_ucp.reconciler.backup.core_state import CoreState

RENEWAL_SECONDS = 3600.0
"""Between commits that hold nothing new but renewed tokens of kubeconfigs."""


def failure(folder: Path) -> str:
    """Why the last look could not write what is new; empty where all is well.

    folder: as of BackupSettings.
    """
    try:
        return _note(folder).read_text("utf-8")
    except OSError:
        return ""


def _note(folder: Path) -> Path:
    return folder / "failed"


def core_of(settings: Settings) -> CoreState:
    """As admin: the reconciler's own ServiceAccount may not read all of this. Raises UcpError."""
    from k8s_ucp.kube import Kube
    from k8s_ucp.reconciler.backup.core_state import CoreState

    assert settings.kubeconfig and settings.backup, "runs outside of pods only"
    return CoreState(
        Kube.from_file(settings.kubeconfig),
        settings.password_namespaces,
        settings.source_namespaces,
        settings.backup.others_too,
    )


class BackupWriter:
    """Of one topology. Not safe to share between threads."""

    def __init__(
        self,
        settings: Settings,
        log: Log,
        clock: Callable[[], float] = time.monotonic,
        open_core: Callable[[Settings], CoreState] = core_of,
    ) -> None:
        assert settings.backup, "set by the command line where the backup is on"
        self._settings, self._where = settings, settings.backup
        self._log, self._clock, self._open_core = log, clock, open_core
        self._core: CoreState | None = None
        self._written = float("-inf")
        """When the clock said so, the last commit was made."""
        self._told = ""
        make_private_folder(self._where.folder)

    def write(self) -> None:
        """Write what is new. A failure is noted, and told once; not that of a silent core."""
        try:
            self._core = core = self._core or self._open_core(self._settings)
            # Before that, a start is under way: what it puts back is not there yet.
            if not core.restored():
                return
            commit = self._save(core)
        except KubeError:
            # Told by others. What was noted before still counts: it is not in git.
            return
        except UcpError as error:
            write_private_file(_note(self._where.folder), error.message)
            if error.message != self._told:
                self._log.warning("not backed up", error=error.message)
            self._told = error.message
            return
        _note(self._where.folder).unlink(missing_ok=True)
        self._told = ""
        if commit:
            self._log.info("backed up", commit=commit[:8])

    def close(self) -> None:
        if self._core:
            self._core.kube.close()

    def _save(self, core: CoreState) -> str | None:
        # Loaded at the first look: a pod, which never looks, needs neither git nor age.
        from k8s_ucp.backup import Backup, is_renewal, updated
        from k8s_ucp.backup_key import load_key
        from k8s_ucp.git.clones import make_clone
        from k8s_ucp.git.repository import Repository
        from k8s_ucp.reconciler.backup.backup_file import BackupFile

        where, seen = self._where, core.collect()
        key = load_key(where.key)
        if key is None and not seen:
            return None
        if key is None:
            raise UcpError(f"the backup key {where.key} is missing")

        recent = self._clock() - self._written < RENEWAL_SECONDS

        def change(known: Backup) -> Backup:
            wanted = updated(known, seen, core.gone)
            return known if recent and is_renewal(known, wanted) else wanted

        own = where.folder / "core"
        if (where.clone / ".git").exists() and not (own / ".git").exists():
            # What starts and stops wrote, read without asking the remote. Once we have written
            # something ourselves, theirs may be behind ours.
            theirs = BackupFile(Repository(where.clone), where.branch)
            known = theirs.read(theirs.seen, key)
            if change(known) == known:
                return None
        ours = BackupFile(make_clone(own, where.url, branch=where.branch), where.branch)
        commit = ours.save(key, change)
        if commit:
            self._written = self._clock()
        return commit
