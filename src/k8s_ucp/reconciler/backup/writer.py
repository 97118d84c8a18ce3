"""Writes changes on the core to the backup, and records why if it can't.

It works in its own clone, so that it never interferes with the user or a command. It can push if
the user's git settings can; otherwise the next `ucp start` or `stop` pushes, and `ucp doctor`
reports it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp.errors import UcpError
from k8s_ucp.kube import KubeError
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.settings import Settings
from k8s_ucp.workspace import FILE_MODE, make_private_folder, write_private_file

if TYPE_CHECKING:
    from k8s_ucp.reconciler.backup.core_state import CoreState

RENEWAL_SECONDS = 3600.0
"""Minimum interval between commits with nothing new but renewed tokens of kubeconfigs."""


def failure(folder: Path) -> str:
    """Why the last backup failed; empty if it did not.

    folder: see BackupSettings.
    """
    try:
        return _note(folder).read_text("utf-8") or "the disk was full"
    except OSError:
        return ""


def note_failure(folder: Path, reason: str) -> None:
    """Record why what is new could not be written. Doesn't fail, since `ucp stop` must go on."""
    with contextlib.suppress(OSError, UcpError):
        make_private_folder(folder)
        try:
            write_private_file(_note(folder), reason)
        except OSError:
            # On a full disk, an empty file can usually be created.
            _note(folder).touch(FILE_MODE)


def forget_failure(folder: Path) -> None:
    """Remove the record of a failed backup: a later one succeeded."""
    _note(folder).unlink(missing_ok=True)


def _note(folder: Path) -> Path:
    return folder / "failed"


def core_of(settings: Settings) -> CoreState:
    """CoreState as admin: the reconciler's ServiceAccount may not read it. Raises UcpError."""
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
    """Writes the backup of one topology. Not thread-safe."""

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
        """Time of the last commit by the clock."""
        self._logged = ""
        make_private_folder(self._where.folder)

    def write(self) -> None:
        """Back up changes. Record a failure and log it once, unless the core is unreachable."""
        try:
            self._core = core = self._core or self._open_core(self._settings)
            # Otherwise a start is in progress and has not restored everything yet.
            if not core.restored():
                return
            commit = self._save(core)
        except KubeError:
            # Reported elsewhere. An earlier failure still counts, since its state is not in git.
            return
        except UcpError as error:
            note_failure(self._where.folder, error.message)
            if error.message != self._logged:
                self._log.warning("not backed up", error=error.message)
            self._logged = error.message
            return
        forget_failure(self._where.folder)
        self._logged = ""
        if commit:
            self._log.info("backed up", commit=commit[:8])

    def close(self) -> None:
        if self._core:
            self._core.kube.close()

    def _save(self, core: CoreState) -> str | None:
        # Imported on demand: a pod, which never backs up, needs neither git nor age.
        from k8s_ucp.git.clones import make_clone, replaceable
        from k8s_ucp.git.repository import Repository
        from k8s_ucp.reconciler.backup.backup_file import BackupFile
        from k8s_ucp.reconciler.backup.backup_key import load_key
        from k8s_ucp.reconciler.backup_content import Backup, is_renewal, updated

        where, name, seen = self._where, self._settings.topology, core.collect()
        key = load_key(where.key)
        if key is None and not seen:
            return None
        if key is None:
            raise UcpError(f"the backup key {where.key} is missing")

        recent = self._clock() - self._written < RENEWAL_SECONDS

        def change(known: Backup) -> Backup:
            wanted = updated(known, seen, core.is_deleted)
            return known if recent and is_renewal(known, wanted) else wanted

        own = where.folder / "core"
        if (where.clone / ".git").exists() and not (own / ".git").exists():
            # Read what starts and stops wrote, without a request to the remote. Once we have
            # written something ourselves, the user's clone may be outdated.
            shared = BackupFile(Repository(where.clone), where.branch, name)
            known = shared.read(shared.seen, key)
            if change(known) == known:
                return None
        clone = make_clone(own, where.url, branch=where.branch)
        own_file = BackupFile(clone, where.branch, name)
        with replaceable(clone):
            commit = own_file.save(key, change)
        if commit:
            self._written = self._clock()
        return commit
