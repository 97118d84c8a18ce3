"""Tells a remote that lost the branch we push to from an empty one.

If a branch is renamed at the forge, a push to its old name succeeds: it creates a second branch
beside the renamed one, without people's commits. So whoever is about to create a branch asks first.
"""

from __future__ import annotations

from collections.abc import Mapping

from k8s_ucp.errors import UcpError, some_of

_HEADS = "refs/heads/"


def branches(remote: Mapping[str, str]) -> list[str]:
    """Sorted names of the branches among a remote's refs."""
    return [name.removeprefix(_HEADS) for name in sorted(remote) if name.startswith(_HEADS)]


def has_others_only(remote: Mapping[str, str], branch: str) -> bool:
    """Whether a remote with these refs has branches, but not this one."""
    found = branches(remote)
    return bool(found) and branch not in found


def lost_branch(repository: str, branch: str, remote: Mapping[str, str]) -> UcpError:
    """The error for a remote that has other branches only, or none any more.

    repository: such as "core repository".
    """
    found = branches(remote)
    if not found:
        return UcpError(f"the {repository} has no branch {branch} any more", next="ucp start")
    return UcpError(
        f"the {repository} has no branch {branch}; its branches: {some_of(found)}",
        next=(
            f"if a branch was renamed, rename it back to {branch}, or set spec.git.branch in "
            "ucp.yaml to its new name, in all repositories of the topology alike; to move to a new "
            f"branch, push it first: git push origin {found[0]}:refs/heads/{branch}"
        ),
    )
