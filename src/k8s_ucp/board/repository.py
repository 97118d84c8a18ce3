"""The app repository as the board reads it: nothing is checked out, nothing is changed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from k8s_ucp.board.versions import Overview, overview
from k8s_ucp.errors import UcpError
from k8s_ucp.git.environment import Credential
from k8s_ucp.git.repository import Repository
from k8s_ucp.workspace import GitopsFolder

FETCH_SECONDS = 30.0
"""Between two fetches from a repository that lies elsewhere."""


@dataclass
class AppRepository:
    """A topology's own. Used by one thread."""

    folder: GitopsFolder
    branch: str
    credential: Credential | None = None
    _fetched: float = field(default=float("-inf"))

    def read(self, before: Overview | None) -> Overview:
        """What the newest commit says. Raises UcpError."""
        if self.folder.apps_remote.is_dir():
            repository, ref = Repository(self.folder.apps_remote), f"refs/heads/{self.branch}"
        else:
            repository = Repository(self.folder.apps, credential=self.credential)
            ref = f"refs/remotes/origin/{self.branch}"
            if time.monotonic() - self._fetched > FETCH_SECONDS:
                self._fetched = time.monotonic()
                repository.fetch()
        commit = repository.resolve(ref)
        if commit is None:
            raise UcpError(f"the app repository has no branch {self.branch}", next="ucp start")
        return overview(repository, commit, before)
