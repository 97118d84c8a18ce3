"""Checks that no local repository is lost, since a new one has no promotion, or left locked."""

from __future__ import annotations

from pathlib import Path

from k8s_ucp.context import TopologyView
from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.git.leftovers import left_locks
from k8s_ucp.git.repository import Repository


def check_repositories(view: TopologyView) -> None:
    """Check that a started topology still has its repositories. Raises UcpError.

    A lost repository gets its history back from its clone. The core's exists from the first start
    on, that of the apps once the core's has a commit.
    """
    git, folder = view.topology.spec.git, view.gitops
    repositories = ((folder.core, folder.core_remote), (folder.apps, folder.apps_remote))
    lost = [
        remote
        for clone, remote in repositories
        if not remote.exists() and not (clone / ".git").exists()
    ]
    if git.provider != "local":
        return
    for clone, remote in repositories:
        _check_branch(clone, remote, git.branch)
    if not lost:
        return
    kept = [Repository(remote) for _, remote in repositories if remote.exists()]
    published = any(each.resolve(f"refs/heads/{git.branch}") for each in kept)
    if published or (folder.core_remote in lost and view.fence.settings()):
        words = " and ".join(str(each) for each in lost)
        fetch = command_line("git", "clone", "--bare", "CLONE", lost[0])
        raise UcpError(
            f"{words} {'are' if len(lost) > 1 else 'is'} missing, and so is the clone: in a new "
            "repository all apps would have their first versions, and Argo CD would deploy them",
            next=f"{fetch}, from a clone elsewhere or a "
            "backup; to start again without them: ucp stop --delete-repos, then ucp start",
        )


def _check_branch(clone: Path, remote: Path, branch: str) -> None:
    """Refuse a branch whose file a power failure emptied: git only says "not our ref 000…"."""
    file = remote / "refs/heads" / branch
    if file.is_file() and not file.stat().st_size:
        raise UcpError(
            f"the branch {branch} of {remote} points to nothing: {file} is empty, as after a power "
            "failure; its commits still exist",
            next="if nothing was pushed since your clone was updated: "
            f"{command_line('git', '-C', clone, 'rev-parse', f'origin/{branch}')} > "
            f"{command_line(file)}; {command_line('git', '-C', remote, 'fsck')} lists others",
        )


def check_git_locks(view: TopologyView) -> None:
    """Check for locks that a killed git left in the repositories. Raises UcpError."""
    folder = view.gitops
    remotes = (folder.core_remote, folder.apps_remote)
    clones = (each / ".git" for each in (folder.core, folder.apps))
    if found := [lock for each in (*remotes, *clones) for lock in left_locks(each)]:
        raise UcpError(
            f"git locks that a killed process may have left: {', '.join(map(str, found))}; commits "
            "and pushes fail while they exist",
            next=f"if no git runs there, not even an open editor: {command_line('rm', *found)}",
        )
