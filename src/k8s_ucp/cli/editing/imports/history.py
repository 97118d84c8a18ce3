"""`--keep-history`: merges the commits of the imported files into the app repository."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.git.failures import GitFailed
from k8s_ucp.git.grafts import fetch_history, graft
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.manifests.reachable import join, within

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.cli.editing.imports.source import ImportSource
    from k8s_ucp.topology import Topology


@dataclass(frozen=True)
class MovedFolder:
    """Files of the other repository, and their folders in the app repository."""

    path: str
    """Folder there, to which paths are relative."""
    folders: tuple[str, ...]
    """Folders there whose files are taken; empty: everything below path."""
    targets: tuple[str, ...]
    """Folders here."""

    def new_paths(self, path: str) -> list[str]:
        """Paths of a file here."""
        if not within(path, self.path):
            return []
        above = path.rpartition("/")[0]
        if self.folders and above not in self.folders:
            return []
        rest = path[len(self.path) :].strip("/")
        return [join(each, rest) for each in self.targets]

    def pathspecs(self) -> list[str]:
        """Pathspecs for git, which may match more files than have places."""
        return [f":(literal){each}" if each else "." for each in self.folders or (self.path,)]


def no_history(_: Repository) -> Sequence[str]:
    """Parents of a commit that merges nothing."""
    return ()


def history_of(
    call: Invocation,
    topology: Topology,
    opened: ImportSource,
    moved: Iterable[MovedFolder],
    work: Path,
) -> Callable[[Repository], Sequence[str]]:
    """Function that returns the parents of the app repository's new commit.

    work: an empty folder, kept until then. Raises UcpError, UsageError if the source has no
    history, or there is no app repository.
    """
    if not call.workspace.gitops(topology.name).apps.exists():
        raise UsageError(
            "--keep-history needs an app repository, which does not exist yet", next="ucp start"
        )
    folders = list(moved)
    if not folders:
        raise UsageError(
            "none of the chosen apps has a history in this repository: their files come from "
            "elsewhere",
            next="leave out --keep-history",
        )
    url, commit = _commit_of(opened)
    source = fetch_history(url, commit, work, opened.credential)

    def new_paths(path: str) -> list[str]:
        return [new_path for each in folders for new_path in each.new_paths(path)]

    def parents(clone: Repository) -> Sequence[str]:
        specs = sorted({spec for each in folders for spec in each.pathspecs()})
        newest = graft(source, specs, new_paths, clone)
        return (newest,) if newest else ()

    return parents


def _commit_of(opened: ImportSource) -> tuple[str, str]:
    """(URL, commit). Raises UcpError."""
    if opened.folder is None:
        return opened.url, opened.commit
    folder = opened.folder
    if not (folder / ".git").exists():
        raise UsageError(
            f"{folder} is not the top of a git repository", next="leave out --keep-history"
        )
    repository = Repository(folder)
    try:
        changed = repository.git("status", "--porcelain").strip()
    except GitFailed as error:
        raise UcpError(error.message, next="leave out --keep-history") from error
    commit = repository.resolve("HEAD")
    if changed or commit is None:
        raise UsageError(
            f"{folder} has changes that are not committed", next="commit them, then import again"
        )
    return folder.as_uri(), commit
