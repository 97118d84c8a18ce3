"""Credentials for git over http(s). They never come from flags, since argv is public."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from k8s_ucp.git.environment import ANY_USER, Credential

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.topology import Topology
    from k8s_ucp.workspace import Workspace


def git_credential() -> Credential | None:
    """From UCP_GIT_TOKEN (and UCP_GIT_USERNAME); None: use the user's git settings."""
    token = os.environ.get("UCP_GIT_TOKEN")
    if not token:
        return None
    username = os.environ.get("UCP_GIT_USERNAME") or ANY_USER
    return Credential(username, token, source="the variable UCP_GIT_TOKEN")


def credential_of(topology: Topology, workspace: Workspace) -> Credential | None:
    """For the topology's own repositories: from the variables, or else from `spec.git.auth`.

    Raises BadCredential.
    """
    name = topology.spec.git.auth
    if (credential := git_credential()) or name is None:
        return credential
    return named_credential(name, topology, workspace, *_repositories(topology))


def credential_or_note(call: Invocation, topology: Topology) -> Credential | None:
    """Like `credential_of`, but None with a note: the step that has to push reports the problem."""
    from k8s_ucp.credentials import BadCredential

    try:
        return credential_of(topology, call.workspace)
    except BadCredential as error:
        call.console.say(f"note: {error.message}")
        return None


def read_credential_of(topology: Topology, workspace: Workspace) -> Credential | None:
    """The credential of `spec.git.readAuth`, for Argo CD; None: Argo CD uses the one for pushes.

    Raises BadCredential.
    """
    name = topology.spec.git.read_auth
    if name is None:
        return None
    return named_credential(name, topology, workspace, *_repositories(topology))


def _repositories(topology: Topology) -> tuple[str, ...]:
    return tuple(each for each in (topology.spec.git.core, topology.spec.git.apps) if each)


def named_credential(name: str, topology: Topology, workspace: Workspace, *urls: str) -> Credential:
    """One of the topology's credentials, to be sent to the hosts of the URLs.

    Raises BadCredential.
    """
    from k8s_ucp.cli.credential_hosts import require_allowed
    from k8s_ucp.credentials import credential_ref, load_login

    ref = credential_ref(topology, workspace, name)
    require_allowed(name, ref, workspace.root, urls)
    username, password = load_login(name, ref)
    return Credential(username or ANY_USER, password, source=str(ref))
