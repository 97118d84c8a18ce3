"""The app repository and branch that a promotion, a rollback or a history is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.git_credentials import credential_of, git_credential
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.promotion.repository_ref import RepositoryRef, find_place

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology


def app_repository(call: Invocation, repo: str, branch: str) -> RepositoryRef:
    """What `--repo` and `--branch` say; without them, what Argo CD follows for the topology.

    What a topology names is for its own repositories only. Raises UsageError for what is no
    repository, UcpError where a choice is missing, BadCredential.
    """
    credential = git_credential()
    if not repo and (topology := _topology(call)):
        credential = credential_of(topology, call.workspace)
        branch = branch or topology.spec.git.branch
    return find_place(repo, branch, call.workspace, call.topology, credential)


def _topology(call: Invocation) -> Topology | None:
    """None where all repositories are this machine's own: they have no credential, and the branch
    is their default one; reading the topology would only take time.
    """
    clones = call.workspace.root.glob("gitops/*/apps")
    if not any(not each.with_suffix(".git").exists() for each in clones):
        return None
    from k8s_ucp.cli.topology_selection import chosen_topology

    try:
        return chosen_topology(call)
    except UcpError:
        return None  # Which repository is meant is asked afterwards, in better words.
