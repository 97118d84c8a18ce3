"""Where the repositories of a topology are, as git and Argo CD read them. Pure."""

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
"""The Service of templates/core/platform/git-server."""


@dataclass(frozen=True)
class Addresses:
    """Where the repositories are, as git and Argo CD read them."""

    core: str
    apps: str


def addresses(topology: Topology, folder: GitopsFolder) -> Addresses:
    """Addresses of the repositories; those of local ones are file:// with escaped characters."""
    git = topology.spec.git
    if git.provider == "local":
        return Addresses(folder.core_remote.as_uri(), folder.apps_remote.as_uri())
    if not git.core or not git.apps:
        raise UcpError(
            "git.provider is url, but git.core or git.apps is not set",
            next="set both URLs in ucp.yaml",
        )
    # They are rendered into both repositories, where no credential belongs.
    return Addresses(split_credential(git.core)[0], split_credential(git.apps)[0])


def read_addresses(topology: Topology, folder: GitopsFolder) -> Addresses:
    """As Argo CD reads them: where it runs in pods, local ones come from a server beside it."""
    if needs_git_server(topology):
        names = (folder.core_remote.name, folder.apps_remote.name)
        return Addresses(*(f"{GIT_SERVER}/{name}" for name in names))
    return addresses(topology, folder)


def team_addresses(topology: Topology, folder: GitopsFolder) -> dict[str, str]:
    """{team: its repository} as Argo CD reads them."""
    served = needs_git_server(topology)

    def of(name: str) -> str:
        remote = folder.team_remote(name)
        return f"{GIT_SERVER}/{remote.name}" if served else remote.as_uri()

    return {each.name: each.repo or of(each.name) for each in topology.spec.teams}
