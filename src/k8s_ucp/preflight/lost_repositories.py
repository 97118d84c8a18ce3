"""Checks before a start that no local repository is lost: a new one would have no promotion."""

from __future__ import annotations

import shlex

from k8s_ucp.context import TopologyView
from k8s_ucp.errors import UcpError
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
    if git.provider != "local" or not lost:
        return
    kept = [Repository(remote) for _, remote in repositories if remote.exists()]
    published = any(each.resolve(f"refs/heads/{git.branch}") for each in kept)
    if published or (folder.core_remote in lost and view.fence.settings()):
        words = " and ".join(str(each) for each in lost)
        raise UcpError(
            f"{words} {'are' if len(lost) > 1 else 'is'} missing, and so is the clone: in a new "
            "repository all apps would have their first versions, and Argo CD would deploy them",
            next=f"git clone --bare CLONE {shlex.quote(str(lost[0]))}, from a clone elsewhere or a "
            "backup; to start again without them: ucp stop --delete-repos, then ucp start",
        )
