"""backup/state.age in the core repository: read, and written where its content has changed.

age never encrypts the same way twice, so contents are compared, not files: what is unchanged is no
commit. Pushes are repeated while others push.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from k8s_ucp.backup import PATH, Backup, dump, parse
from k8s_ucp.backup_key import BackupKey
from k8s_ucp.git.push_loop import push_until_accepted
from k8s_ucp.git.repository import RefUpdate, Repository

MESSAGE = f"""Back up what the core cluster made

{PATH}: passwords, registration sources and external names, encrypted.
"""


@dataclass(frozen=True)
class BackupFile:
    """clone: of the core repository."""

    clone: Repository
    branch: str

    @property
    def seen(self) -> str | None:
        """The branch's tip as the clone saw it last."""
        return self.clone.resolve(f"refs/remotes/origin/{self.branch}")

    def sealed(self, commit: str | None) -> bytes | None:
        """The file at a commit, as it is."""
        return self.clone.read(commit, PATH).get(PATH) if commit else None

    def read(self, commit: str | None, key: BackupKey) -> Backup:
        """What a commit holds; an empty one where there is no file. Raises BadKey, UcpError."""
        sealed = self.sealed(commit)
        return parse(key.open(sealed)) if sealed else Backup()

    def save(self, key: BackupKey, change: Callable[[Backup], Backup]) -> str | None:
        """Commit and push what `change` makes of the backup; None where that is nothing new.

        The commit where it did. Raises the errors of the door to git, BadKey.
        """
        # Most often nothing is new, which the clone can tell without asking the remote.
        if self.seen and change(known := self.read(self.seen, key)) == known:
            return None
        return push_until_accepted(lambda _: self._save(key, change))

    def _save(self, key: BackupKey, change: Callable[[Backup], Backup]) -> str | None:
        self.clone.fetch()
        tip = self.seen
        if tip is None:
            # A repository without its branch: the next start pushes it.
            return None
        known = self.read(tip, key)
        wanted = change(known)
        if wanted == known:
            return None
        text = key.close(dump(wanted))
        commit = self.clone.write_commit(MESSAGE, {PATH: text}, parent=tip)
        self.clone.push([RefUpdate(f"refs/heads/{self.branch}", commit)])
        return commit
