"""Commits to a team's repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from k8s_ucp.errors import DeadlineExceeded, UcpError, UsageError
from k8s_ucp.git.clones import make_clone, make_remote
from k8s_ucp.git.failures import HostUnreachable, Rejected
from k8s_ucp.git.repository import RefUpdate, Repository
from k8s_ucp.gitops.publish.team_repository import TeamRepository

LOST: list[UcpError] = [
    DeadlineExceeded("`git push`", 120, "its host gave no answer"),
    HostUnreachable("the remote end hung up unexpectedly"),
    Rejected("the push was repeated, and the first one had moved the branch"),
]


class Lossy(Repository):
    """The response to each push is lost, or another one arrives."""

    answer = LOST[0]

    def push(
        self, updates: Sequence[RefUpdate], *, remote: str = "origin", timeout: float = 9
    ) -> None:
        super().push(updates, remote=remote, timeout=timeout)
        raise self.answer


@pytest.mark.parametrize("answer", LOST, ids=lambda each: type(each).__name__)
def test_commit_whose_push_arrived_without_a_response_is_made_once(
    tmp_path: Path, answer: UcpError
) -> None:
    """`ucp claim new` would say that the claim already exists."""
    remote = make_remote(tmp_path / "team.git")
    clone = Lossy(make_clone(tmp_path / "team", remote.folder.as_uri()).folder)
    clone.answer = answer

    def change(files: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
        if "claims/db.yaml" in files:
            raise UsageError("the claim already exists")
        return {"claims/db.yaml": b"a: 1\n"}

    assert TeamRepository("shop", clone, "main").commit("Claim db\n", change)
    assert len(remote.history("main")) == 1
    assert (clone.folder / "claims" / "db.yaml").exists()
