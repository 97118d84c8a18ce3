"""The branch that promotions land on, in a temporary shallow clone or the user's working clone.

Nothing is checked out, and none of the user's files is changed before a push has landed. A working
clone (`--repo PATH`) provides its remote, settings and object store; afterwards it is
fast-forwarded to the new commit.
"""

from __future__ import annotations

import math
import os
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from k8s_ucp import locks
from k8s_ucp.errors import DeadlineExceeded, UcpError, command_line
from k8s_ucp.git import failures
from k8s_ucp.git.command import NETWORK_SECONDS, run_git, shared_connection
from k8s_ucp.git.environment import FALLBACK, Credential
from k8s_ucp.git.objects import Author, CommitIdentity, NewCommit, commit_time
from k8s_ucp.git.repository import RefUpdate, Repository
from k8s_ucp.git.ssh_connection import SshConnection
from k8s_ucp.gitops.promotion.decision import Decision
from k8s_ucp.gitops.promotion.overlay import Writes
from k8s_ucp.gitops.promotion.tip import GitTip

_FETCH = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")

CLONE_PAUSES = (0.3, 0.6, 1.2)
"""Pauses in seconds between attempts to clone."""

_LACKS = re.compile(r"couldn't find remote ref")

Writer = Callable[[Sequence[Decision]], str]
"""Creates the commit message."""


class RemoteBranch:
    """One branch of a remote, accessed through a repository on this machine."""

    def __init__(
        self,
        repository: Repository,
        branch: str,
        *,
        apps: Sequence[str],
        message: Writer,
        person: Author | None = None,
        remote: str = "origin",
        fetched: str = "",
        shallow: bool = False,
        until: float = math.inf,
    ) -> None:
        """apps: whose overlays are read. person: the author if git has none configured.

        fetched: a commit just fetched as the newest one, which saves the first fetch. shallow: a
        temporary clone that needs only the newest commits. until: time of the monotonic clock after
        which an unresponsive host is not waited for any longer.
        """
        self.repository = repository
        self.branch = branch
        self.remote = remote
        self.apps = tuple(apps)
        self._message = message
        self._person = person
        self._fetched = fetched
        self._shallow = shallow
        self._until = until
        self._settings: tuple[CommitIdentity, bool] | None = None

    @property
    def tracking(self) -> str:
        """The remote-tracking ref of the branch, as of the last fetch."""
        return f"refs/remotes/{self.remote}/{self.branch}"

    @property
    def seconds_left(self) -> float:
        """Time left until pushes must be finished."""
        return self._until - time.monotonic()

    def fetch(self) -> GitTip:
        commit, self._fetched = self._fetched, ""
        if not commit:
            # Also in a shallow clone, this fetches all commits since the last fetch: `has` needs
            # them.
            try:
                with _network():
                    self.repository.git(
                        *_FETCH, self.remote, f"+refs/heads/{self.branch}:{self.tracking}",
                        timeout=_left(self._until),
                    )  # fmt: skip
            except failures.GitFailed as error:
                if not _LACKS.search(error.message):
                    raise
                raise self._without_branch() from error
            commit = self.repository.resolve(self.tracking) or ""
        return GitTip(self.repository, commit, self.apps)

    def _without_branch(self) -> UcpError:
        url = failures.redact(self.repository.url(self.remote))
        advice = "choose an existing branch with --branch"
        if not self._shallow:
            git = ("git", "-C", self.repository.folder)
            push = command_line(*git, "push", "--set-upstream", self.remote, self.branch)
            advice = f"push it first: {push}"
        return UcpError(f"{url} has no branch {self.branch}", next=advice)

    def fetch_beside(self, branch: str) -> str:
        """The newest commit of another branch; "" if it doesn't exist."""
        ref = f"refs/remotes/{self.remote}/{branch}"
        depth = ["--depth=50"] if self._shallow else []
        with _network():
            # A pattern may match nothing, unlike a name; with a depth, git then exits with code 1.
            self.repository.git(
                *_FETCH, "--prune", *depth, self.remote, f"+refs/heads/{branch}*:{ref}*",
                timeout=_left(self._until), codes=(0, 1),
            )  # fmt: skip
        return self.repository.resolve(ref) or ""

    def messages(self, commit: str) -> list[str]:
        """Messages of a commit and its first-parent ancestors, newest first."""
        raw = self.repository.git(
            "log", "-z", "--first-parent", "--max-count=50", "--no-show-signature", "--format=%B",
            "--end-of-options", commit,
        )  # fmt: skip
        return raw.decode("utf-8", "replace").split("\0")

    def parents_of(self, commit: str) -> tuple[str, ...]:
        """The commit's parents, including those that a shallow clone doesn't have."""
        lines = self._head_of(commit)
        return tuple(line.split()[1].decode() for line in lines if line.startswith(b"parent "))

    def age_of(self, commit: str) -> float:
        """Seconds since the commit, by the committer's clock: negative if that clock is ahead."""
        arguments = ("log", "--max-count=1", "--no-show-signature", "--format=%ct", commit)
        return time.time() - commit_time(self.repository.git(*arguments).decode().strip())

    def differ(self, one: str, other: str, folder: str) -> bool:
        """Two commits differ in the files below a folder."""
        arguments = ("diff-tree", "-r", "--name-only", one, other, "--", folder)
        return bool(self.repository.git(*arguments).strip())

    def _head_of(self, commit: str) -> list[bytes]:
        return self.repository.git("cat-file", "commit", commit).split(b"\n\n")[0].splitlines()

    def commit(
        self,
        tip: GitTip,
        writes: Writes,
        decisions: Sequence[Decision],
        *,
        parents: tuple[str, ...] = (),
    ) -> str:
        """parents: of the commit, if not only `tip`; its files are based on `tip` in any case."""
        identity, signs = self._who()
        modes = {path: mode for path in writes if (mode := tip.mode(path))}
        new = NewCommit(self._message(decisions), writes, (tip.commit,), modes)
        commit = self.repository.write_commits([new], identity=identity)[0]
        if signs or parents:
            return self.repository.write_commit_of(
                commit, new.message, parents or new.parents, identity, sign=signs
            )
        return commit

    def push(self, commit: str, *, branch: str = "") -> None:
        """Push the commit to this branch, or to `branch` if it is given."""
        update = RefUpdate(f"refs/heads/{branch or self.branch}", commit)
        with _network(pushing=True):
            # If the push were terminated too early, it would be unknown whether it landed.
            timeout = _left(self._until, least=15.0)
            self.repository.push([update], remote=self.remote, timeout=timeout)

    def has(self, tip: GitTip, commit: str) -> bool:
        return self.repository.contains(tip.commit, commit)

    def settle(self, commit: str) -> str:  # noqa: ARG002 (a working clone needs it)
        """Clean up after `commit` landed: a message for the user, or ""."""
        return ""

    def _who(self) -> tuple[CommitIdentity, bool]:
        """Author and committer, and whether commits are signed; read once."""
        if self._settings is None:
            identity = self.repository.identity()
            if self._person and identity.author == FALLBACK:
                identity = replace(identity, author=self._person)
            self._settings = identity, self.repository.signs_commits()
        return self._settings


@contextmanager
def shallow_clone(
    url: str,
    branch: str,
    *,
    credential: Credential | None,
    depth: int | None = 1,
    until: float = math.inf,
) -> Iterator[tuple[Repository, str, str]]:
    """A bare clone of one branch in a temporary folder: (repository, branch, its commit).

    branch: "" is the remote's default branch. until: time of the monotonic clock after which an
    unresponsive host is not waited for any longer. Raises UcpError for an empty repository.
    """
    how = [
        *([f"--depth={depth}"] if depth else []),
        *([f"--branch={branch}"] if branch else []),
    ]
    with shared_connection(url) as connection, _temporary_folder() as folder:
        repository = Repository(folder, credential=credential, connection=connection)
        try:
            _clone(how, url, folder, credential, connection, until)
        except failures.GitFailed as error:
            if not re.search(r"Remote branch .{0,500} not found", error.message):
                raise
            raise UcpError(
                f"{failures.redact(url)} has no branch {branch}",
                next="choose an existing branch with --branch",
            ) from error
        head = (folder / "HEAD").read_text("utf-8").removeprefix("ref: refs/heads/").strip()
        commit = repository.resolve("HEAD")
        if not commit:
            raise UcpError(
                f"the branch {head} of {failures.redact(url)} has no commits",
                next="push an initial commit, or choose another branch with --branch",
            )
        yield repository, head, commit


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ucp-promote-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _clone(
    how: Sequence[str],
    url: str,
    folder: Path,
    credential: Credential | None,
    connection: SshConnection,
    until: float,
) -> None:
    """Clone, with retries if the connection breaks: git then leaves an empty folder."""
    if url.startswith("file://"):
        # Users who forbid the file protocol mean URLs inside of repositories, such as submodules.
        how = [*how, "-c", "protocol.file.allow=always"]
    for pause in (*CLONE_PAUSES, None):
        try:
            with _network():
                run_git(
                    [
                        "clone", "--bare", "--quiet", "--single-branch", "--no-tags",
                        "--template=", *how, "--", url, str(folder),
                    ],
                    where=url, timeout=_left(until), credential=credential, connection=connection,
                )  # fmt: skip
        except failures.Interrupted:
            if pause is None or time.monotonic() + pause >= until:
                raise
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 (no secret)
        else:
            return


@contextmanager
def working_clone(
    folder: Path,
    branch: str,
    *,
    credential: Credential | None,
    until: float = math.inf,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[Repository, str, str]]:
    """The user's clone, locked against other promotions: (repository, remote's branch, remote).

    until: time of the monotonic clock after which the lock is not waited for any longer. report:
    called when waiting. Raises DeadlineExceeded, and UcpError if the clone is dirty, has a detached
    HEAD or no remote, or is on another branch.
    """
    repository = Repository(folder, credential=credential)
    top = Path(os.fsdecode(repository.git("rev-parse", "--show-toplevel").removesuffix(b"\n")))
    repository, git = Repository(top, credential=credential), ("git", "-C", top)
    with _held(top, until, report):
        name = _current_branch(repository)
        if not name:
            url = failures.redact(repository.url()) or "URL"
            raise UcpError(
                f"{top} has a detached HEAD",
                next=f"{command_line(*git, 'switch', 'BRANCH')}, or {command_line('--repo', url)}",
            )
        changed = repository.git("status", "--porcelain", "--untracked-files=no")
        if changed:
            shown = changed.decode("utf-8", "replace").splitlines()[:5]
            raise UcpError(
                f"{top} has uncommitted changes:\n" + "\n".join(f"  {line}" for line in shown),
                next="commit or stash them, or set --repo to the repository's URL",
            )
        remote, upstream = _upstream(repository, name)
        if branch and branch != upstream:
            raise UcpError(
                f"{top} is on the branch {name}, not on {branch}",
                next=command_line(*git, "switch", branch),
            )
        with shared_connection(repository.url(remote), top) as connection:
            repository = Repository(top, credential=credential, connection=connection)
            yield repository, upstream, remote


def upstream_url(folder: Path) -> str:
    """URL of the remote that a clone's current branch tracks; "" if there is none."""
    repository = Repository(folder)
    settings = repository.settings(r"^branch\.")
    return repository.url(_followed(repository, settings, _current_branch(repository)))


def _current_branch(repository: Repository) -> str:
    """The current branch; "" if HEAD is detached."""
    local = repository.git("symbolic-ref", "--quiet", "--short", "HEAD", codes=(0, 1))
    return local.decode().strip()


def _followed(repository: Repository, settings: Mapping[str, str], branch: str) -> str:
    """The remote that a branch tracks. settings: git's settings of branches.

    Raises UcpError for a branch that tracks a local branch.
    """
    remote = settings.get(f"branch.{branch}.remote", "origin")
    if remote != ".":
        return remote
    other = settings.get(f"branch.{branch}.merge", "").removeprefix("refs/heads/")
    raise UcpError(
        f"the branch {branch} of {repository.folder} follows the local branch {other}, not a "
        "branch of a remote",
        next=(
            f"{command_line('git', '-C', repository.folder, 'switch', other)}, or set --repo "
            "to the repository's URL"
        ),
    )


def _upstream(repository: Repository, branch: str) -> tuple[str, str]:
    """(remote, branch on the remote)."""
    settings = repository.settings(r"^(branch|remote)\.")
    remote = _followed(repository, settings, branch)
    if f"remote.{remote}.url" not in settings:
        raise UcpError(
            f"{repository.folder} has no remote to push to",
            next=command_line("git", "-C", repository.folder, "remote", "add", "origin", "URL"),
        )
    merge = settings.get(f"branch.{branch}.merge", f"refs/heads/{branch}")
    return remote, merge.removeprefix("refs/heads/")


@contextmanager
def _held(clone: Path, until: float, report: Callable[[str], None]) -> Iterator[None]:
    """Hold the clone's lock. Raises DeadlineExceeded naming the process that holds it."""

    def report_wait(process: int | None) -> None:
        report(f"waiting for {locks.named(process)}, which uses {clone}")

    seconds = max(0.0, until - time.monotonic())
    with locks.folder_locked_within(clone, seconds, report_wait) as holder:
        if holder is not None:
            look = f" (ps -p {holder})" if holder else ""
            raise DeadlineExceeded(
                f"the lock of the clone {clone}",
                seconds,
                f"{locks.named(holder)} uses it; nothing was changed",
                next=f"wait for that command to end{look}, or set --repo to the repository's URL",
            )
        yield


def _left(until: float, *, least: float = 1.0) -> float:
    """Timeout in seconds for a call to the remote."""
    return min(NETWORK_SECONDS, max(least, until - time.monotonic()))


@contextmanager
def _network(*, pushing: bool = False) -> Iterator[None]:
    """Turn errors that a retry may fix into Interrupted."""
    try:
        yield
    except (failures.GitFailed, DeadlineExceeded) as error:
        broken = isinstance(error, failures.HostUnreachable | DeadlineExceeded)
        if broken or (pushing and type(error) is failures.GitFailed):
            raise failures.Interrupted(error.message, next=error.next) from error
        raise
