"""A team's repository: creates it if it is local, fills it if it is empty, commits changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from k8s_ucp.errors import DeadlineExceeded
from k8s_ucp.git.clones import fast_forward, make_clone, make_remote
from k8s_ucp.git.environment import Credential
from k8s_ucp.git.failures import HostUnreachable, Interrupted
from k8s_ucp.git.lost_branch import has_others_only, lost_branch
from k8s_ucp.git.push_loop import push_until_accepted
from k8s_ucp.git.repository import RefUpdate, Repository
from k8s_ucp.gitops.render.repositories import TeamStart, render_team
from k8s_ucp.gitops.render.values.claims import FOLDER, README
from k8s_ucp.topology import Team, Topology
from k8s_ucp.workspace import GitopsFolder

Files = Mapping[str, bytes]
Change = Callable[[Files], Mapping[str, bytes | None]]
"""From the files at the tip to the changes (None: delete the file). Empty: no commit."""


@dataclass(frozen=True)
class TeamRepository:
    """The working clone of a team's repository."""

    team: str
    clone: Repository
    branch: str

    def files(self, *under: str) -> dict[str, bytes]:
        """Files at the remote's tip: {path: content}. Raises GitFailed."""
        self.clone.fetch()
        tip = self._tip()
        return self.clone.read(tip, *under) if tip else {}

    def commit(self, message: str, change: Change) -> bool:
        """Commit and push a change; False if there was nothing to change.

        Raises UcpError if the remote has other branches only, and GitFailed.
        """

        written = ""

        def attempt(_: int) -> bool:
            nonlocal written
            files, tip = self.files(), self._tip()
            if written and tip and self.clone.contains(tip, written):
                return True  # Only the response to the last push was lost.
            wanted = change(files)
            if not wanted:
                return False
            remote = self.clone.remote_refs()
            if has_others_only(remote, self.branch):
                raise lost_branch(f"repository of team {self.team}", self.branch, remote)
            written = self.clone.write_commit(message, wanted, parent=tip)
            try:
                self.clone.push([RefUpdate(f"refs/heads/{self.branch}", written)])
            except (HostUnreachable, DeadlineExceeded) as error:
                raise Interrupted(error.message, next=error.next) from error
            return True

        pushed = push_until_accepted(attempt)
        self.clone.fetch()
        fast_forward(self.clone, branch=self.branch)
        return pushed

    def _tip(self) -> str | None:
        return self.clone.resolve(f"refs/remotes/origin/{self.branch}")


def open_team_repository(
    topology: Topology, team: Team, folder: GitopsFolder, credential: Credential | None = None
) -> TeamRepository:
    """A team's clone, created if missing, as is a missing local remote. Raises UcpError."""
    branch = topology.spec.git.branch
    if team.repo is None:
        make_remote(folder.team_remote(team.name), branch=branch)
    url = team.repo or folder.team_remote(team.name).as_uri()
    clone = make_clone(folder.team(team.name), url, branch=branch, credential=credential)
    return TeamRepository(team.name, clone, branch)


def fill(
    repository: TeamRepository, topology: Topology, team: Team, start: TeamStart | None = None
) -> bool:
    """Write the initial files to an empty repository, else the folder for Argo CD if it is missing.

    Raises UcpError, as `commit` does.
    """
    wanted = render_team(topology, team, start)

    def change(files: Files) -> Mapping[str, bytes | None]:
        if not files:
            return wanted
        return {} if any(each.startswith(FOLDER) for each in files) else {README: wanted[README]}

    return repository.commit(f"Begin the repository of the team {team.name}\n", change)


def fill_local(topology: Topology, folder: GitopsFolder) -> None:
    """Create the local repositories that are missing. Raises UcpError."""
    for team in topology.spec.teams:
        if team.repo is None:
            fill(open_team_repository(topology, team, folder), topology, team)
