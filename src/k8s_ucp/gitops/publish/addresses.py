"""URLs of a topology's repositories, for git and for Argo CD. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from k8s_ucp.errors import UcpError
from k8s_ucp.git.environment import split_credential
from k8s_ucp.topology.placement import needs_git_server

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology
    from k8s_ucp.workspace import GitopsFolder

GIT_SERVER = "http://git-server.ucp-git.svc"
"""URL of the Service in templates/core/platform/git-server."""


@dataclass(frozen=True)
class Addresses:
    """URLs of both repositories."""

    core: str
    apps: str


def addresses(topology: Topology, folder: GitopsFolder) -> Addresses:
    """URLs for git; local repositories have file:// URLs with escaped characters.

    Raises UcpError.
    """
    git = topology.spec.git
    if git.provider == "local":
        return Addresses(folder.core_remote.as_uri(), folder.apps_remote.as_uri())
    if not git.core or not git.apps:
        raise UcpError(
            "git.provider is url, but git.core or git.apps is not set",
            next="set both URLs in ucp.yaml",
        )
    # The URLs are rendered into both repositories, so they must not contain credentials.
    return Addresses(split_credential(git.core)[0], split_credential(git.apps)[0])


def read_addresses(topology: Topology, folder: GitopsFolder) -> Addresses:
    """URLs for Argo CD: if it runs in pods, local repositories are served by the git server."""
    if needs_git_server(topology):
        names = (folder.core_remote.name, folder.apps_remote.name)
        return Addresses(*(f"{GIT_SERVER}/{name}" for name in names))
    return addresses(topology, folder)


def team_addresses(topology: Topology, folder: GitopsFolder) -> dict[str, str]:
    """{team: URL of its repository} for Argo CD."""
    served = needs_git_server(topology)

    def of(name: str) -> str:
        remote = folder.team_remote(name)
        return f"{GIT_SERVER}/{remote.name}" if served else remote.as_uri()

    return {each.name: each.repo or of(each.name) for each in topology.spec.teams}
