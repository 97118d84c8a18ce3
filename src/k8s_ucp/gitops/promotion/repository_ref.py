"""Resolves `--repo` to a repository and opens the branch that a promotion lands on."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.errors import UcpError, UsageError, command_line
from k8s_ucp.git.command import is_bare, used_address
from k8s_ucp.git.environment import Credential
from k8s_ucp.git.failures import GitFailed, SettingsUnreadable, redact
from k8s_ucp.git.objects import Author
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.manifests.sources import refuse_password
from k8s_ucp.gitops.promotion.branch import (
    RemoteBranch,
    Writer,
    shallow_clone,
    upstream_url,
    working_clone,
)
from k8s_ucp.gitops.promotion.tip import GitTip
from k8s_ucp.workspace import Workspace, enclosing_workspace


@dataclass(frozen=True)
class RepositoryRef:
    """An app repository and one of its branches."""

    url: str = ""
    clone: Path | None = None
    """A working clone of the user, instead of a URL."""
    branch: str = ""
    """"" means the remote's default branch, or the clone's current branch."""
    credential: Credential | None = None

    @property
    def remote(self) -> str:
        """The URL to push to."""
        return self.url or upstream_url(self.clone or Path())


def resolve_repository(
    repo: str,
    branch: str,
    workspace: Workspace,
    topology: str | None,
    credential: Credential | None,
) -> RepositoryRef:
    """Resolve `--repo`; without it, the app repository of the workspace's topology.

    Raises UsageError if it isn't a repository or the choice is ambiguous.
    """
    if not repo:
        return _of_topology(workspace, topology, branch, credential)
    path = Path(repo).expanduser()
    if path.exists():
        return _at(path.resolve(), branch, credential)
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://|[^/\s]+:", repo):
        raise UsageError(f"{repo} does not exist", next="set --repo to a folder or a URL")
    refuse_password(
        repo, next="use the URL without it, and set the token in the variable UCP_GIT_TOKEN"
    )
    return RepositoryRef(url=repo, branch=branch, credential=_sent(credential, repo))


def _sent(credential: Credential | None, url: str) -> Credential | None:
    """The credential, if git uses an http(s) URL after the user's insteadOf settings.

    If these settings point to another host, the user has chosen that host too. Raises UsageError if
    they downgrade https to http.
    """
    if credential is None:
        return None
    address = used_address(url)
    if url.lower().startswith("https://") and address.lower().startswith("http://"):
        raise UsageError(
            f"your git settings (insteadOf) rewrite {url} to {redact(address)}, where the token "
            "would be sent unencrypted",
            next="use https in url.<base>.insteadOf: git config --list --show-origin",
        )
    # file:// needs no credential, and http credentials are only for http remotes.
    return credential if address.lower().startswith(("http://", "https://")) else None


@contextmanager
def open_branch(
    ref: RepositoryRef,
    *,
    apps: Sequence[str],
    message: Writer,
    person: Author | None = None,
    history: bool = False,
    deadline: float = 300.0,
    patience: float = 0.0,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[RemoteBranch]:
    """Open the branch for the duration of the block. history: all commits, not just the newest.

    deadline: seconds to wait for an unresponsive host, or for another command that uses the clone,
    which `report` announces. patience: additional seconds until pushes must be finished. Raises
    DeadlineExceeded, and UcpError for a working clone that can't be used or lacks the requested
    history.
    """
    until = time.monotonic() + deadline
    if ref.clone:
        with working_clone(
            ref.clone, ref.branch, credential=ref.credential, until=until, report=report
        ) as found:
            repository, name, remote = found
            if history:
                _refuse_shallow(repository)
            yield _ClonedBranch(
                repository, name, apps=apps, message=message, person=person, remote=remote,
                until=until + patience,
            )  # fmt: skip
        return
    with shallow_clone(
        ref.url,
        ref.branch,
        credential=ref.credential,
        depth=None if history else 1,
        until=until,
    ) as (repository, name, commit):
        yield RemoteBranch(
            repository, name, apps=apps, message=message, person=person, fetched=commit,
            shallow=not history, until=until + patience,
        )  # fmt: skip


def _refuse_shallow(repository: Repository) -> None:
    """Raise UcpError: without the older commits, the history would be wrong."""
    if repository.git("rev-parse", "--is-shallow-repository").strip() == b"true":
        raise UcpError(
            f"{repository.folder} is a shallow clone, which lacks the history of the app",
            next=(
                f"{command_line('git', '-C', repository.folder, 'fetch', '--unshallow')}, or set "
                "--repo to the repository's URL"
            ),
        )


class _ClonedBranch(RemoteBranch):
    """A branch in the user's own clone, which is fast-forwarded after a push has landed."""

    def fetch(self) -> GitTip:
        tip = super().fetch()
        if not self.repository.contains(tip.commit, "HEAD"):
            folder, upstream = self.repository.folder, f"{self.remote}/{self.branch}"
            reset = command_line("git", "-C", folder, "reset", "--hard", upstream)
            raise UcpError(
                f"{folder} has commits that are not on {upstream}",
                next=f"push them, or discard them: {reset}",
            )
        return tip

    def settle(self, commit: str) -> str:
        try:
            self.repository.git("merge", "--quiet", "--ff-only", "--no-stat", commit)
        except GitFailed as error:
            lines = [line.strip() for line in error.message.splitlines()[1:]]
            first = next((each for each in lines if each.startswith(("fatal:", "error:"))), "")
            folder = self.repository.folder
            return (
                f"failed to update {folder} to {commit[:12]}: "
                f"{first or error.message}; then: "
                f"{command_line('git', '-C', folder, 'pull', '--ff-only')}"
            )
        return ""


def _at(path: Path, branch: str, credential: Credential | None) -> RepositoryRef:
    if is_bare(path):
        return RepositoryRef(url=path.as_uri(), branch=branch)
    try:
        Repository(path).git("rev-parse", "--is-inside-work-tree")
    except SettingsUnreadable:
        raise
    except (GitFailed, NotADirectoryError) as error:
        raise UsageError(
            f"{path} is not a git repository",
            next="set --repo to a clone, a bare repository or a URL",
        ) from error
    return RepositoryRef(clone=path, branch=branch, credential=credential)


def _of_topology(
    workspace: Workspace, topology: str | None, branch: str, credential: Credential | None
) -> RepositoryRef:
    folder = workspace.root / "gitops"
    names = sorted(each.parent.name for each in folder.glob("*/apps")) if not topology else []
    remotes = sorted(each.parent.name for each in folder.glob("*/apps.git")) if not topology else []
    known = sorted({*names, *remotes})
    if not known and not topology:
        # Only the repositories are missing: it is a workspace all the same.
        known = workspace.topologies()
    if len(known) > 1 and workspace.topology_file.exists():
        # As for other commands, ucp.yaml selects one.
        from k8s_ucp.topology import load

        named = load(workspace.topology_file).name
        known = [named] if named in known else known
    name = topology or (known[0] if len(known) == 1 else "")
    if not name and known:
        raise UsageError(
            f"the app repository is not specified: {workspace.root} has {len(known)} topologies",
            next="--repo URL, or --topology " + " or ".join(known),
        )
    if not name and workspace.topology_file.exists():
        raise UsageError(
            f"the app repository is not specified: nothing was started in {workspace.root}",
            next="ucp start, or add --repo URL",
        )
    if not name:
        above = enclosing_workspace(workspace.root)
        raise UsageError(
            f"the app repository is not specified: {workspace.root} is not a workspace",
            next=f"add {command_line('--workspace', above)} to the command"
            if above
            else "run the command in the workspace, or add --workspace DIR or --repo URL",
        )
    gitops = workspace.gitops(name)
    if gitops.apps_remote.is_dir():
        return RepositoryRef(url=gitops.apps_remote.as_uri(), branch=branch)
    if not gitops.apps.is_dir():
        raise UsageError(
            f"{workspace.root} has no app repository of the topology {name}",
            next="restore gitops/ from a copy, or add --repo URL",
        )
    return RepositoryRef(url=Repository(gitops.apps).url(), branch=branch, credential=credential)
