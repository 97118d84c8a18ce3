"""The app repository for the board: read without checkout or changes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from k8s_ucp.board.snapshot import Row, change_row
from k8s_ucp.board.versions import Overview, overview
from k8s_ucp.errors import UcpError
from k8s_ucp.git.environment import Credential
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.promotion.history import events
from k8s_ucp.gitops.promotion.overlay import check_name
from k8s_ucp.workspace import GitopsFolder

FETCH_SECONDS = 30.0
"""Interval of fetches from a remote repository."""
CHANGES = 20
"""Maximum number of changes of an app in an environment; the newest."""


@dataclass
class AppRepository:
    """A topology's app repository. `read` is not thread-safe."""

    folder: GitopsFolder
    branch: str
    credential: Credential | None = None
    _fetched: float = field(default=float("-inf"))

    def read(self, before: Overview | None) -> Overview:
        """Versions in the newest commit. Raises UcpError."""
        if not self._is_here() and time.monotonic() - self._fetched > FETCH_SECONDS:
            self._fetched = time.monotonic()
            self._repository().fetch()
        repository, commit = self._tip()
        return overview(repository, commit, before)

    def history(self, app: str, env: str) -> list[Row]:
        """The last changes, newest first. Thread-safe. Raises UcpError."""
        check_name("app", app)
        check_name("environment", env)
        repository, commit = self._tip()
        return [change_row(each) for each in events(repository, commit, app, env)[:CHANGES]]

    def _tip(self) -> tuple[Repository, str]:
        repository = self._repository()
        folder = "refs/heads" if self._is_here() else "refs/remotes/origin"
        commit = repository.resolve(f"{folder}/{self.branch}")
        if commit is None:
            raise UcpError(f"the app repository has no branch {self.branch}", next="ucp start")
        return repository, commit

    def _repository(self) -> Repository:
        if self._is_here():
            return Repository(self.folder.apps_remote)
        return Repository(self.folder.apps, credential=self.credential)

    def _is_here(self) -> bool:
        """Whether the remote itself is in the workspace."""
        return self.folder.apps_remote.is_dir()
