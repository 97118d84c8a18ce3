"""The token for git repositories over http(s), from the environment: argv is public."""

from __future__ import annotations

import os

from k8s_ucp.gitops.git_environment import Credential

ANY_USER = "x-access-token"
"""What forges take as the name that goes with a token."""


def git_credential() -> Credential | None:
    """What UCP_GIT_TOKEN (and UCP_GIT_USERNAME) say; None: the user's own git settings count."""
    token = os.environ.get("UCP_GIT_TOKEN")
    return Credential(os.environ.get("UCP_GIT_USERNAME") or ANY_USER, token) if token else None
