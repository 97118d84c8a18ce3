"""The app repository and branch that a promotion, a rollback or a history is about."""

from __future__ import annotations

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.git_credentials import app_credential, has_remotes_of_others
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.promotion.repository_ref import RepositoryRef, find_place


def app_repository(call: Invocation, repo: str, branch: str) -> RepositoryRef:
    """What `--repo` and `--branch` say; without them, what Argo CD follows for the topology.

    Raises UsageError for what is no repository, UcpError where a choice is missing, BadCredential.
    """
    credential = app_credential(call, repo)
    branch = branch or ("" if repo else _branch_of_topology(call))
    return find_place(repo, branch, call.workspace, call.topology, credential)


def _branch_of_topology(call: Invocation) -> str:
    """Of local repositories it is the default branch: reading the topology would only take time."""
    if not has_remotes_of_others(call.workspace):
        return ""
    from k8s_ucp.cli.topology_selection import chosen_topology

    try:
        return chosen_topology(call).spec.git.branch
    except UcpError:
        return ""  # Which repository is meant is asked afterwards, in better words.
