"""Landing an intent on a branch that others push to at the same time.

A commit is made on the branch's newest tip and pushed without force. Where somebody was faster,
the new tip is taken and the intent decided again on it: nothing of the others' is lost, and what
lands is right for what is there. How a host words its refusal matters little: a branch that has
moved since it was read was moved by others, so trying again is right.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from k8s_ucp.errors import DeadlineExceeded, UcpError
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

        Raises TooLate, Refused, Interrupted, or another UcpError where trying again is no use.
        """

    def has(self, tip: TipType, commit: str) -> bool:
        """`commit` is `tip` or in its history."""


STUCK = 5
"""Pushes that come too late on a branch nobody moves: a lock was left behind on the remote."""


class TooLate(UcpError):
    """The branch has moved, or somebody is moving it right now: try again on the new tip."""


class PushRefused(UcpError):
    """The push was refused in words that don't tell why; whether the branch moved will."""


class PushInterrupted(UcpError):
    """The connection broke: what was asked for happened or not."""


@dataclass(frozen=True)
class Pace:
    """How long and how often to try. Seconds."""

    deadline: float = 300.0
    tries: int = 100
    interruptions: int = 3
    longest_pause: float = 10.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = field(default=random.random)


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
    return _Attempts(branch, decide, pace, report).run()


class _Attempts:
    def __init__(
        self,
        branch: Branch[TipType],
        decide: Callable[[TipType], Sequence[Decision]],
        pace: Pace,
        report: Callable[[str], None],
    ) -> None:
        self._branch = branch
        self._decide = decide
        self._pace = pace
        self._report = report
        self._start = pace.clock()
        self._interruptions = 0
        self._unsure: tuple[str, Sequence[Decision]] | None = None
        self._refused: tuple[str, PushRefused] | None = None
        self._seen = ""
        self._still = 0
        """How often the branch was refused to us although it had not moved."""

    def run(self) -> Landing:
        last = "nothing"
        for attempt in range(1, self._pace.tries + 1):
            begun = self._pace.clock()
            try:
                return self._once(attempt)
            except TooLate as error:
                if self._still >= STUCK:
                    raise
                last = "another push landed first"
                self._report(f"attempt {attempt}: {last}")
                self._pause(attempt, self._pace.clock() - begun, error)
            except PushRefused as error:
                last = error.message
                self._report(f"attempt {attempt}: push rejected; checking whether the branch moved")
                self._pause(attempt, self._pace.clock() - begun, error)
            except PushInterrupted as error:
                last = error.message
                self._interruptions += 1
                if self._interruptions > self._pace.interruptions:
                    raise
                self._report(f"attempt {attempt}: the connection was interrupted")
                self._pause(self._interruptions + 1, 0.5, error)
        raise self._late(last, self._pace.tries)

    def _once(self, attempt: int) -> Landing:
        tip = self._branch.fetch()
        if self._unsure:
            commit, decisions = self._unsure
            if self._branch.has(tip, commit):
                return Landing(tuple(decisions), commit, attempt)
            self._unsure = None
        self._still = self._still + 1 if tip.commit == self._seen else 0
        self._seen = tip.commit
        if self._refused and self._refused[0] == tip.commit:
            # Nobody else moved the branch, so the refusal meant us.
            raise self._final(self._refused[1])
        decisions = self._decide(tip)
        writes = {path: content for each in decisions for path, content in each.writes.items()}
        if not writes:
            return Landing(tuple(decisions), "", attempt)
        commit = self._branch.commit(tip, writes, decisions)
        # Whatever is answered, it may have landed: HTTP repeats a push whose answer got lost, and
        # the host refuses the second one because of the first.
        self._unsure = (commit, decisions)
        try:
            self._branch.push(commit)
        except PushRefused as error:
            self._refused = (tip.commit, error)
            raise
        return Landing(tuple(decisions), commit, attempt)

    def _pause(self, attempt: int, took: float, error: UcpError) -> None:
        """Wait a random part of a window that grows with the number of rivals met so far.

        took: seconds of the attempt, the time in which a rival's push does harm.
        """
        window = min(took * 2 ** min(attempt - 1, 10), self._pace.longest_pause)
        pause = window * self._pace.random()
        left = self._pace.deadline - (self._pace.clock() - self._start)
        if pause >= left:
            raise self._late(error.message, attempt) from error
        self._pace.sleep(pause)

    def _late(self, last: str, attempts: int) -> DeadlineExceeded:
        return DeadlineExceeded(
            f"the push of the promotion ({attempts} attempts)",
            self._pace.clock() - self._start,
            last,
            next="run the command again: it continues from the current state of the branch",
        )

    @staticmethod
    def _final(error: PushRefused) -> UcpError:
        return UcpError(error.message, next=error.next)
