"""Reads backup/state.age in the core repository, and writes it if its content has changed.

age encrypts the same content differently each time, so contents are compared instead of files to
avoid commits without changes. Pushes are repeated if others have pushed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from k8s_ucp.git.lost_branch import branches, lost_branch
from k8s_ucp.git.push_loop import push_until_accepted
from k8s_ucp.git.repository import RefUpdate, Repository
from k8s_ucp.reconciler.backup.backup_key import BackupKey
from k8s_ucp.reconciler.backup_content import PATH, Backup, dump, parse

MESSAGE = f"""Back up what the core cluster made

{PATH}: passwords, registration sources and external names, encrypted.
"""


@dataclass(frozen=True)
class BackupFile:
    """clone: of the core repository. topology: whose backup it is; "" if it is only looked at."""

    clone: Repository
    branch: str
    topology: str = ""

    @property
    def seen(self) -> str | None:
        """Tip of the branch as last fetched."""
        return self.clone.resolve(f"refs/remotes/origin/{self.branch}")

    def sealed(self, commit: str | None) -> bytes | None:
        """The encrypted file at a commit."""
        return self.clone.read(commit, PATH).get(PATH) if commit else None

    def read(self, commit: str | None, key: BackupKey) -> Backup:
        """The backup at a commit; empty if there is no file. Raises BadKey, UcpError."""
        sealed = self.sealed(commit)
        return Backup() if sealed is None else parse(key.open(sealed), self.topology)

    def save(self, key: BackupKey, change: Callable[[Backup], Backup]) -> str | None:
        """Apply `change` to the backup, commit and push it; None if nothing changed.

        Returns the commit. Raises BadKey, UcpError if the branch is gone, and the errors of git/.
        """
        # Usually nothing has changed, which the clone shows without a request to the remote.
        if self.seen and change(known := self.read(self.seen, key)) == known:
            return None
        return push_until_accepted(lambda _: self._save(key, change))

    def _save(self, key: BackupKey, change: Callable[[Backup], Backup]) -> str | None:
        self.clone.fetch()
        tip = self.seen
        if tip is None:
            # The branch doesn't exist yet; the next start pushes it.
            return None
        remote = self.clone.remote_refs()
        if self.branch not in branches(remote):
            # A push would create it anew from what was fetched last, beside its renamed successor.
            raise lost_branch("core repository", self.branch, remote)
        known = self.read(tip, key)
        wanted = change(known)
        if wanted == known:
            return None
        text = key.close(dump(wanted, self.topology))
        commit = self.clone.write_commit(MESSAGE, {PATH: text}, parent=tip)
        self.clone.push([RefUpdate(f"refs/heads/{self.branch}", commit)])
        return commit
