"""Landing with concurrent pushes: no change is lost, the newest wins, and every wait ends."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k8s_ucp.errors import DeadlineExceeded, UcpError
from k8s_ucp.git.failures import Interrupted, Rejected, Unexplained
from k8s_ucp.git.push_loop import Pace
from k8s_ucp.gitops.manifests.image_edit import Pin, read_images
from k8s_ucp.gitops.promotion.decision import Decision, Intent, decide
from k8s_ucp.gitops.promotion.landing import DryRun, Landing, land, try_landing
from k8s_ucp.gitops.promotion.order import Order
from tests.unit.gitops.promotion.tips import IMMEDIATE, MemoryBranch, MemoryTip, shop

STAGE = "apps/echo/overlays/stage/kustomization.yaml"


def wanting(tag: str, sequence: int | None = None) -> Intent:
    return Intent("echo", "stage", Pin(tag), order=Order(sequence=sequence))


def promote(branch: MemoryBranch, intent: Intent, pace: Pace = IMMEDIATE) -> Landing:
    return land(branch, lambda tip: [decide(tip, intent)], pace)


def tag_of(tip: MemoryTip) -> str:
    return read_images(tip.text(STAGE), STAGE)[0].pin.tag


@dataclass
class Promoter:
    """One of many promoters, with the rivals that push between its attempts."""

    sequence: int | None
    rivals: list[list[Promoter]]
    name: str = ""


promoters = st.recursive(
    st.builds(Promoter, st.none() | st.integers(0, 9), st.just([])),
    lambda inner: st.builds(
        Promoter, st.none() | st.integers(0, 9), st.lists(st.lists(inner, max_size=2), max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=1000, deadline=None, derandomize=True)
@given(st.lists(promoters, min_size=1, max_size=4))
def test_an_older_sequence_never_replaces_a_newer_one(everybody: list[Promoter]) -> None:
    """Random interleavings, compared with a model: the landed commits in order.

    A promoter's push can be overtaken by whole promotions, which can be overtaken in turn:
    this covers every way in which pushes to one branch can interleave.
    """
    history = [shop(stage="first")]
    numbers = [0]
    outcomes: list[tuple[Promoter, Landing]] = []
    names = itertools.count()

    def run(promoter: Promoter) -> None:
        # Hypothesis may use one object in two places.
        promoter = replace(promoter, name=f"t{next(names)}")
        waves = iter(promoter.rivals)

        def overtaken() -> None:
            for rival in next(waves, []):
                run(rival)

        branch = MemoryBranch(history, overtaken, numbers=numbers)
        outcomes.append((promoter, promote(branch, wanting(promoter.name, promoter.sequence))))

    for promoter in everybody:
        run(promoter)

    landed = {result.commit: promoter for promoter, result in outcomes if result.commit}
    assert len(landed) + 1 == len(history), "a commit was lost or is nobody's"
    mark: int | None = None
    for tip in history[1:]:
        promoter = landed[tip.commit]
        assert tag_of(tip) == promoter.name
        if promoter.sequence is not None:
            assert mark is None or promoter.sequence >= mark
            mark = promoter.sequence
    for promoter, result in outcomes:
        status = result.decisions[0].status
        assert status in ("promoted", "superseded")
        assert status == "promoted" or (promoter.sequence or 0) < (mark or 0)


def test_a_rejected_push_is_decided_again_at_the_new_tip() -> None:
    branch = MemoryBranch([shop(stage="1")])
    rival = MemoryBranch(branch.history, numbers=branch.numbers)
    waves = iter([wanting("2", 2), wanting("3", 3)])

    def overtaken() -> None:
        found = next(waves, None)
        if found:
            promote(rival, found)

    branch.between = overtaken
    result = promote(branch, wanting("4", 4))

    assert result.attempts == 3
    assert [tag_of(tip) for tip in branch.history] == ["1", "2", "3", "4"]


def test_a_promotion_overtaken_by_a_newer_one_is_superseded() -> None:
    branch = MemoryBranch([shop(stage="1")])
    rival = MemoryBranch(branch.history, numbers=branch.numbers)
    branch.between = lambda: (
        None if len(branch.history) > 1 else void(promote(rival, wanting("9", 9)))
    )

    result = promote(branch, wanting("4", 4))

    assert (result.decisions[0].status, result.commit) == ("superseded", "")
    assert tag_of(branch.history[-1]) == "9"


def void(_: object) -> None:
    return None


@dataclass
class Troubled(MemoryBranch):
    """A branch whose first pushes fail with the given errors.

    lands: the push succeeds although its response is lost.
    """

    troubles: Sequence[UcpError] = ()
    lands: bool = False
    moves: bool = False

    def push(self, commit: str) -> None:
        failed = self.pushes
        if failed < len(self.troubles):
            if self.lands:
                super().push(commit)
            else:
                self.pushes += 1
            if self.moves:
                rival = MemoryBranch(self.history, numbers=self.numbers)
                promote(rival, wanting(f"rival{failed}"))
            raise self.troubles[failed]
        super().push(commit)


@pytest.mark.parametrize("answer", [Interrupted("hung up"), Rejected("late"), Unexplained("?")])
def test_a_push_with_a_lost_response_is_verified_and_not_repeated(answer: UcpError) -> None:
    """Rejected: an HTTP client repeats a push automatically, and the second one is rejected."""
    branch = Troubled([shop(stage="1")], troubles=[answer], lands=True)

    result = promote(branch, wanting("2"))

    assert (result.decisions[0].status, result.attempts, branch.pushes) == ("promoted", 2, 1)
    assert result.commit == branch.history[-1].commit


def test_a_push_with_a_lost_response_is_found_below_a_foreign_commit() -> None:
    """Promoting again would replace the newer tag with the older one."""
    branch = Troubled([shop(stage="1")], troubles=[Interrupted("")], lands=True, moves=True)

    result = promote(branch, wanting("2"))

    assert result.decisions[0].status == "promoted"
    assert [tag_of(tip) for tip in branch.history] == ["1", "2", "rival0"]


def test_a_push_interrupted_before_it_landed_is_repeated() -> None:
    branch = Troubled([shop(stage="1")], troubles=[Interrupted(""), Interrupted("")])

    assert promote(branch, wanting("2")).attempts == 3
    assert [tag_of(tip) for tip in branch.history] == ["1", "2"]


def test_repeated_interruptions_end_the_command() -> None:
    branch = Troubled([shop(stage="1")], troubles=[Interrupted("hung up")] * 10)

    with pytest.raises(Interrupted, match="hung up"):
        promote(branch, wanting("2"))
    assert len(branch.history) == 1


def test_an_unknown_error_is_retried_if_the_branch_moved() -> None:
    branch = Troubled(
        [shop(stage="1")], troubles=[Unexplained("TF999: computer says no")], moves=True
    )

    assert promote(branch, wanting("2")).decisions[0].status == "promoted"
    assert tag_of(branch.history[-1]) == "2"


def test_an_unknown_error_is_final_if_the_branch_did_not_move() -> None:
    branch = Troubled([shop(stage="1")], troubles=[Unexplained("TF999: computer says no")] * 9)

    with pytest.raises(UcpError, match="computer says no"):
        promote(branch, wanting("2"))
    assert branch.pushes == 1


def test_a_stale_lock_on_the_remote_ends_the_command() -> None:
    branch = Troubled([shop(stage="1")], troubles=[Rejected("cannot lock ref")] * 99)

    with pytest.raises(UcpError, match="cannot lock ref"):
        promote(branch, wanting("2"))
    assert branch.pushes < 9


def test_any_other_refusal_is_final() -> None:
    branch = Troubled([shop(stage="1")], troubles=[UcpError("hook declined")] * 9)

    with pytest.raises(UcpError, match="hook declined"):
        promote(branch, wanting("2"))
    assert branch.pushes == 1


class Clock:
    """Time that passes only in sleep and in attempts."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def tick(self) -> float:
        self.now += 0.05
        return self.now


def always_late(clock: Clock, pace: Pace) -> tuple[MemoryBranch, Pace]:
    branch = MemoryBranch([shop(stage="1")])
    rival = MemoryBranch(branch.history, numbers=branch.numbers)
    branch.between = lambda: void(promote(rival, wanting(f"r{len(branch.history)}")))
    return branch, replace(pace, clock=clock.tick, sleep=clock.sleep)


def test_landing_ends_at_the_deadline() -> None:
    clock = Clock()
    branch, pace = always_late(clock, Pace(deadline=20, random=lambda: 1.0))

    with pytest.raises(DeadlineExceeded, match=r"somebody else|fetch first"):
        promote(branch, wanting("2"), pace)
    assert clock.now <= 20


def test_the_number_of_attempts_is_bounded() -> None:
    clock = Clock()
    branch, pace = always_late(clock, Pace(tries=5, random=lambda: 0.0))

    with pytest.raises(DeadlineExceeded, match="5 attempts"):
        promote(branch, wanting("2"), pace)
    assert branch.pushes == 5


def test_pauses_grow_with_each_overtaken_push_and_stay_bounded() -> None:
    clock = Clock()
    branch, pace = always_late(clock, Pace(tries=12, longest_pause=3, random=lambda: 1.0))

    with pytest.raises(DeadlineExceeded):
        promote(branch, wanting("2"), pace)
    assert clock.slept == sorted(clock.slept)
    assert clock.slept[-1] == 3


def test_decisions_without_writes_push_nothing() -> None:
    branch = MemoryBranch([shop(stage="1")])

    def refuse(tip: MemoryTip) -> list[Decision]:
        return [replace(decide(tip, wanting("2")), status="gated", writes={})]

    assert land(branch, refuse, IMMEDIATE).commit == ""
    assert branch.pushes == 0


def test_a_dry_run_decides_at_the_newest_tip_and_pushes_nothing() -> None:
    class Interrupting(MemoryBranch):
        def fetch(self) -> MemoryTip:
            if not self.numbers[0]:
                self.numbers[0] += 1
                raise Interrupted("the connection ended")
            return super().fetch()

    branch = Interrupting([shop(stage="1")])
    intent = wanting("2", sequence=7)

    landing = try_landing(branch, lambda tip: [decide(tip, intent)], lambda _: "m", IMMEDIATE)

    assert landing.dry_run is not None
    assert (landing.decisions[0].status, landing.commit, landing.attempts) == ("promoted", "", 2)
    assert "-  newTag: '1'\n+  newTag: '2'\n" in landing.dry_run.diff
    assert landing.dry_run.message == "m"
    assert (branch.pushes, len(branch.history)) == (0, 1)


def test_a_dry_run_without_a_change_is_empty() -> None:
    intent = wanting("1")
    landing = try_landing(
        MemoryBranch([shop(stage="1")]),
        lambda tip: [decide(tip, intent)],
        lambda _: "m",
        IMMEDIATE,
    )
    assert (landing.decisions[0].status, landing.dry_run) == ("unchanged", DryRun())
