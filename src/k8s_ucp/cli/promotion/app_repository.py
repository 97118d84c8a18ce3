"""Selects the app repository and branch for a promotion, a rollback or a history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.git_credentials import credential_of, git_credential
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.promotion.repository_ref import RepositoryRef, resolve_repository

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology


def app_repository(call: Invocation, repo: str, branch: str) -> RepositoryRef:
    """The repository of `--repo` and `--branch`, or else the one that Argo CD follows.

    The topology's credential is used for its own repositories only. Raises UsageError if it isn't a
    repository, UcpError if the choice is ambiguous, BadCredential.
    """
    credential = git_credential()
    if not repo and (topology := _topology(call)):
        credential = credential_of(topology, call.workspace)
        branch = branch or topology.spec.git.branch
    return resolve_repository(repo, branch, call.workspace, call.topology, credential)


def _topology(call: Invocation) -> Topology | None:
    """The topology; None if all repositories are local ones on this machine.

    These have no credential, and the default branch, so that loading the topology would waste time.
    """
    clones = call.workspace.root.glob("gitops/*/apps")
    if not any(not each.with_suffix(".git").exists() for each in clones):
        return None
    from k8s_ucp.cli.topology_selection import chosen_topology

    try:
        return chosen_topology(call)
    except UcpError:
        return None  # resolve_repository reports the problem more clearly.
