"""Lands a promotion on a branch with concurrent pushes.

A commit is created on the branch's newest tip and pushed without force. If another push was faster,
the intent is decided again at the new tip, so no other change is lost, and the result is correct
for the new state. The host's error message hardly matters: if the branch has moved since it was
fetched, a retry is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from k8s_ucp.errors import UcpError
from k8s_ucp.git.failures import Rejected, Unexplained
from k8s_ucp.git.push_loop import Pace, push_until_accepted
from k8s_ucp.gitops.promotion.decision import Decision
from k8s_ucp.gitops.promotion.overlay import Tip, Writes, diff


class CommitTip(Tip, Protocol):
    """A tip that knows its commit."""

    @property
    def commit(self) -> str: ...


TipType = TypeVar("TipType", bound=CommitTip)


class Branch(Protocol[TipType]):
    """One branch of a remote repository, as a promotion uses it."""

    def fetch(self) -> TipType:
        """The newest commit. Raises UcpError; Interrupted if a retry may succeed."""

    def commit(self, tip: TipType, writes: Writes, decisions: Sequence[Decision]) -> str:
        """Write an unpublished commit on `tip`: its id."""

    def push(self, commit: str) -> None:
        """Make `commit` the newest one if its parent still is.

        Raises Rejected, Unexplained, Interrupted, or another UcpError if a retry is pointless.
        """

    def has(self, tip: TipType, commit: str) -> bool:
        """`commit` is `tip` or one of its ancestors."""


STUCK = 5
"""Number of rejected pushes to a branch that doesn't move: a stale lock on the remote."""


@dataclass(frozen=True)
class DryRun:
    """What a dry run would commit; empty if there is nothing to write. diff: to the branch."""

    message: str = ""
    diff: str = ""


@dataclass(frozen=True)
class Landing:
    """The result. commit: "" if there was nothing to write."""

    decisions: tuple[Decision, ...]
    commit: str
    attempts: int
    request: str = ""
    """URL of the pull request, if there is one."""
    dry_run: DryRun | None = None
    """Of a dry run, which pushes nothing: the decisions are what would be done."""


def land(
    branch: Branch[TipType],
    decide: Callable[[TipType], Sequence[Decision]],
    pace: Pace,
    report: Callable[[str], None] = lambda _: None,
) -> Landing:
    """Decide at the newest tip, commit and push, with retries.

    Raises what `decide` raises, permanent errors of the branch, and DeadlineExceeded if every
    attempt lost a race.
    """
    return push_until_accepted(_Attempts(branch, decide).attempt, pace, report)


def try_landing(
    branch: Branch[TipType],
    decide: Callable[[TipType], Sequence[Decision]],
    message: Callable[[Sequence[Decision]], str],
    pace: Pace,
    report: Callable[[str], None] = lambda _: None,
) -> Landing:
    """Decide at the newest tip as `land` does, without creating a commit.

    message: creates the commit message. Raises what `land` raises.
    """

    def attempt(number: int) -> Landing:
        tip = branch.fetch()
        decisions = tuple(decide(tip))
        writes = _all_writes(decisions)
        found = DryRun(message(decisions), diff(tip, writes)) if writes else DryRun()
        return Landing(decisions, "", number, dry_run=found)

    return push_until_accepted(attempt, pace, report)


def _all_writes(decisions: Sequence[Decision]) -> Writes:
    return {path: content for each in decisions for path, content in each.writes.items()}


class _Attempts:
    """State that is carried from one attempt to the next."""

    def __init__(
        self, branch: Branch[TipType], decide: Callable[[TipType], Sequence[Decision]]
    ) -> None:
        self._branch = branch
        self._decide = decide
        self._unsure: Landing | None = None
        self._refused: UcpError | None = None
        self._seen = ""
        self._still = 0
        """Number of consecutive attempts for which the branch has not moved."""

    def attempt(self, number: int) -> Landing:
        tip = self._branch.fetch()
        if self._unsure and self._branch.has(tip, self._unsure.commit):
            return replace(self._unsure, attempts=number)
        self._still = self._still + 1 if tip.commit == self._seen else 0
        self._seen = tip.commit
        if self._refused and self._still >= (STUCK if type(self._refused) is Rejected else 1):
            # The branch hasn't moved, so the rejection wasn't caused by a concurrent push.
            raise UcpError(self._refused.message, next=self._refused.next)
        decisions = tuple(self._decide(tip))
        writes = _all_writes(decisions)
        if not writes:
            return Landing(decisions, "", number)
        commit = self._branch.commit(tip, writes, decisions)
        # Whatever the response is, the push may have landed: HTTP repeats a push whose response was
        # lost, and the host rejects the second one because of the first.
        self._unsure, self._refused = Landing(decisions, commit, number), None
        try:
            self._branch.push(commit)
        except (Rejected, Unexplained) as error:
            self._refused = error
            # The message is ambiguous: the next fetch shows whether the branch has moved.
            raise Rejected(error.message, next=error.next) from error
        return self._unsure
