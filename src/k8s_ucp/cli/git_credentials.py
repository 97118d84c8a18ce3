"""Who we are to git repositories over http(s): argv is public, so no flag says it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from k8s_ucp.git.environment import ANY_USER, Credential

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.topology import Topology
    from k8s_ucp.workspace import Workspace


def git_credential() -> Credential | None:
    """What UCP_GIT_TOKEN (and UCP_GIT_USERNAME) say; None: the user's own git settings count."""
    token = os.environ.get("UCP_GIT_TOKEN")
    return Credential(os.environ.get("UCP_GIT_USERNAME") or ANY_USER, token) if token else None


def credential_of(topology: Topology, workspace: Workspace) -> Credential | None:
    """For the topology's own repositories: the variables, else what `spec.git.auth` names.

    Raises BadCredential.
    """
    name = topology.spec.git.auth
    if (said := git_credential()) or name is None:
        return said
    return named_credential(name, topology, workspace)


def credential_or_note(call: Invocation, topology: Topology) -> Credential | None:
    """The same, of a command that goes on without one: the step that can't push says what lacks."""
    from k8s_ucp.credentials import BadCredential

    try:
        return credential_of(topology, call.workspace)
    except BadCredential as error:
        call.console.say(f"note: {error.message}")
        return None


def read_credential_of(topology: Topology, workspace: Workspace) -> Credential | None:
    """What `spec.git.readAuth` names, for Argo CD; None: it reads with what pushes.

    Raises BadCredential.
    """
    name = topology.spec.git.read_auth
    return None if name is None else named_credential(name, topology, workspace)


def named_credential(name: str, topology: Topology, workspace: Workspace) -> Credential:
    """One of the topology's credentials. Raises BadCredential."""
    from k8s_ucp.credentials import load_login, place_of

    username, password = load_login(name, place_of(topology, workspace, name))
    return Credential(username or ANY_USER, password)
