"""Put back into a new core what an old one made, before anybody makes it anew."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.backup import PASSWORDS, SOURCES, parse
from k8s_ucp.backup_key import key_for
from k8s_ucp.context import Context
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.gitops.publish.backup_file import BackupFile


@dataclass(frozen=True)
class RestoreBackup:
    """Passwords and sources; the backup key is made here, where there is none."""

    id: str = "restore-backup"
    title: str = "Restore passwords and names from the backup"

    def run(self, context: Context, report: Report) -> None:
        core = context.published.core
        sealed = BackupFile(core.clone, context.topology.spec.git.branch).sealed(core.commit)
        key = key_for(context.workspace.backup_key, lambda: sealed is not None)
        state = context.core_state
        if {PASSWORDS, SOURCES} <= state.restored():
            return
        if sealed:
            report(", ".join(state.put_back_secrets(parse(key.open(sealed)))))
        state.note_restored(self.id, PASSWORDS, SOURCES)
