"""Lands a promotion on a branch with concurrent pushes.

A commit is made on the branch's newest tip and pushed without force. Where somebody was faster,
the new tip is taken and the intent decided again on it: nothing of the others' is lost, and what
lands is right for what is there. How a host words its refusal matters little: a branch that has
moved since it was read was moved by others, so trying again is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from k8s_ucp.errors import UcpError
from k8s_ucp.git.failures import Rejected, Unexplained
from k8s_ucp.git.push_loop import Pace, push_until_accepted
from k8s_ucp.gitops.promotion.decision import Decision
from k8s_ucp.gitops.promotion.overlay import Tip, Writes


class CommitTip(Tip, Protocol):
    """A tip that knows its commit."""

    @property
    def commit(self) -> str: ...


TipType = TypeVar("TipType", bound=CommitTip)


class Branch(Protocol[TipType]):
    """One branch of a remote repository, as a promotion sees it."""

    def fetch(self) -> TipType:
        """The newest commit. Raises UcpError; Interrupted where it may work next time."""

    def commit(self, tip: TipType, writes: Writes, decisions: Sequence[Decision]) -> str:
        """Write a commit on `tip`, seen by nobody yet: its id."""

    def push(self, commit: str) -> None:
        """Make `commit` the newest one if its parent still is.

        Raises Rejected, Unexplained, Interrupted, or another UcpError where trying again is no
        use.
        """

    def has(self, tip: TipType, commit: str) -> bool:
        """`commit` is `tip` or in its history."""


STUCK = 5
"""Pushes that come too late on a branch nobody moves: a lock was left behind on the remote."""


@dataclass(frozen=True)
class Landing:
    """What came of it. commit: "" where nothing was to be written."""

    decisions: tuple[Decision, ...]
    commit: str
    attempts: int
    request: str = ""
    """URL of the pull request, where it is to land through one."""


def land(
    branch: Branch[TipType],
    decide: Callable[[TipType], Sequence[Decision]],
    pace: Pace,
    report: Callable[[str], None] = lambda _: None,
) -> Landing:
    """Decide at the newest tip, commit and push, as often as it takes.

    Raises what `decide` and the branch raise for good, DeadlineExceeded when others were faster
    every time.
    """
    return push_until_accepted(_Attempts(branch, decide).attempt, pace, report)


class _Attempts:
    """What the tries so far tell the next one."""

    def __init__(
        self, branch: Branch[TipType], decide: Callable[[TipType], Sequence[Decision]]
    ) -> None:
        self._branch = branch
        self._decide = decide
        self._unsure: Landing | None = None
        self._refused: UcpError | None = None
        self._seen = ""
        self._still = 0
        """How often the branch was refused to us although it had not moved."""

    def attempt(self, number: int) -> Landing:
        tip = self._branch.fetch()
        if self._unsure and self._branch.has(tip, self._unsure.commit):
            return replace(self._unsure, attempts=number)
        self._still = self._still + 1 if tip.commit == self._seen else 0
        self._seen = tip.commit
        if self._refused and self._still >= (STUCK if type(self._refused) is Rejected else 1):
            # Nobody else moved the branch, so the refusal meant us.
            raise UcpError(self._refused.message, next=self._refused.next)
        decisions = tuple(self._decide(tip))
        writes = {path: content for each in decisions for path, content in each.writes.items()}
        if not writes:
            return Landing(decisions, "", number)
        commit = self._branch.commit(tip, writes, decisions)
        # Whatever is answered, it may have landed: HTTP repeats a push whose answer got lost, and
        # the host refuses the second one because of the first.
        self._unsure, self._refused = Landing(decisions, commit, number), None
        try:
            self._branch.push(commit)
        except (Rejected, Unexplained) as error:
            self._refused = error
            # Words that tell nothing: whether the branch moved will.
            raise Rejected(error.message, next=error.next) from error
        return self._unsure
