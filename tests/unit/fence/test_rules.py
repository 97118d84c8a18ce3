"""Two cores never write at the same time, whatever freezes, partitions and takeovers happen."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k8s_ucp.fence.record import FenceHeld, FenceHolder, FenceRecord, claimed, released
from k8s_ucp.fence.rules import NEVER, FenceVerdict, FenceView, decide, until, wait_of

T = 30.0
HOLDER = FenceHolder("1", "desk", "/here", "embedded")
HELD = FenceRecord(3, HOLDER, 0.0)
SEEN = FenceView("1", HELD, confirmed=100.0, now=110.0, period=T)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, FenceVerdict.HELD),
        ({"now": 129.9}, FenceVerdict.HELD),
        ({"now": 130.0}, FenceVerdict.SILENT),
        ({"confirmed": NEVER}, FenceVerdict.SILENT),
        ({"now": 9999.0, "stops_when_silent": False}, FenceVerdict.HELD),
        ({"not_before": 111.0}, FenceVerdict.WAITING),
        ({"not_before": 110.0}, FenceVerdict.HELD),
        ({"id": "2"}, FenceVerdict.LOST),
        ({"id": "2", "stops_when_silent": False}, FenceVerdict.LOST),
        ({"record": FenceRecord(4, None, 0.0)}, FenceVerdict.LOST),
    ],
)
def test_the_verdict_depends_on_record_confirmation_and_waiting_time(
    change: dict[str, object], verdict: FenceVerdict
) -> None:
    assert decide(replace(SEEN, **change)) is verdict  # type: ignore[arg-type]


def test_a_permit_expires_one_period_after_the_read_began() -> None:
    assert until(SEEN) == 130.0
    assert until(replace(SEEN, stops_when_silent=False)) == 140.0


def test_only_a_takeover_has_to_wait() -> None:
    assert wait_of(HELD, period=T, now=1.0) == 0
    taken = replace(HELD, taken=True)
    assert wait_of(taken, period=T, now=0.0) == 2 * T
    assert wait_of(taken, period=T, now=50.0) == 10.0
    assert wait_of(taken, period=T, now=61.0) == 0
    assert wait_of(taken, period=T, now=-9999.0) == 2 * T


@dataclass
class Remote:
    """The core repository."""

    record: FenceRecord | None = None


@dataclass
class Core:
    """One core: its guard, and a writer that checks the gate before each write.

    A second writer can't check the gate and is stopped by the guard. It is frozen and thawed
    together with the guard, and writes until the guard has stopped it.
    """

    holder: FenceHolder
    remote: Remote
    stops_when_silent: bool = True
    known: FenceRecord | None = None
    confirmed: float = NEVER
    not_before: float = 0.0
    permitted_until: float = NEVER
    running: bool = False
    frozen: bool = False
    cut_off: bool = False
    writes: list[tuple[float, int]] = field(default_factory=list)
    unasked: list[tuple[float, int]] = field(default_factory=list)
    stopped_unasked: bool = True

    def start(self, now: float, *, takeover: bool) -> None:
        if self.cut_off or self.frozen:
            return
        try:
            record = claimed(self.remote.record, self.holder, now, takeover=takeover)
        except FenceHeld:
            return
        self.remote.record = self.known = record
        self.not_before = now + wait_of(record, period=T, now=now)
        self.running, self.confirmed, self.permitted_until = True, NEVER, NEVER

    def stop(self, now: float) -> None:
        if self.frozen or not self.running:
            return
        self.running, self.stopped_unasked = False, True
        if not self.cut_off:
            self.remote.record = released(self.remote.record, self.holder.id, now) or (
                self.remote.record
            )

    def tick(self, now: float, *, look: bool) -> None:
        """One tick of the guard."""
        if self.frozen or not self.running:
            return
        if look and not self.cut_off:
            self.known = self.remote.record
            if self.known and self.known.is_held_by(self.holder.id):
                self.confirmed = now
        seen = FenceView(
            self.holder.id,
            self.known,
            self.confirmed,
            now,
            T,
            self.not_before,
            self.stops_when_silent,
        )
        held = decide(seen) is FenceVerdict.HELD
        self.permitted_until = until(seen) if held else NEVER
        self.stopped_unasked = not held

    def write(self, now: float) -> None:
        if self.frozen or not self.running:
            return
        assert self.known
        if now < self.permitted_until:
            self.writes.append((now, self.known.epoch))
        if not self.stopped_unasked:
            self.unasked.append((now, self.known.epoch))


ACTIONS = st.sampled_from(
    ["start", "takeover", "stop", "freeze", "thaw", "cut", "join", "tick", "tick", "write", "write"]
)
MOVES = st.lists(
    st.tuples(st.integers(0, 1), ACTIONS, st.sampled_from([0.0, 0.5, 1.0, 4.0, 9.0, 31.0, 61.0])),
    max_size=120,
)


def overlaps(cores: list[Core]) -> list[tuple[float, int]]:
    """Writes whose epoch is lower than that of an earlier write."""
    writes = sorted(write for core in cores for write in core.writes)
    highest, found = 0, []
    for when, epoch in writes:
        if epoch < highest:
            found.append((when, epoch))
        highest = max(highest, epoch)
    return found


def play(moves: list[tuple[int, str, float]]) -> list[Core]:
    """Guards that aren't frozen tick in time: between the moves, and at each move."""
    remote = Remote()
    cores = [
        Core(replace(HOLDER, id=name, workspace=f"/{name}"), remote) for name in ("one", "two")
    ]
    now = 1000.0
    for number, action, pause in moves:
        core = cores[number]
        for _ in range(int(pause // (T / 3)) + 1):
            now += min(pause, T / 3)
            for each in cores:
                each.tick(now, look=True)
                each.write(now)
        now += 0.001  # What writes before and after an action doesn't write at the same time.
        match action:
            case "start" | "takeover":
                core.start(now, takeover=action == "takeover")
            case "stop":
                core.stop(now)
            case "freeze" | "thaw":
                core.frozen = action == "freeze"
            case "cut" | "join":
                core.cut_off = action == "cut"
            case "tick":
                core.tick(now, look=True)
        for each in cores:
            each.write(now)
    return cores


@settings(max_examples=300)
@given(MOVES)
def test_writers_that_check_the_gate_never_overlap(moves: list[tuple[int, str, float]]) -> None:
    assert overlaps(play(moves)) == []


@settings(max_examples=200)
@given(MOVES)
def test_at_most_one_of_two_running_cores_writes_at_a_time(
    moves: list[tuple[int, str, float]],
) -> None:
    writing: dict[float, set[int]] = {}
    for core in play(moves):
        for when, epoch in core.writes:
            writing.setdefault(when, set()).add(epoch)
    assert all(len(epochs) == 1 for epochs in writing.values())


def test_a_takeover_without_the_waiting_time_would_overlap() -> None:
    """Proves the model: a partitioned core continues to write until its permit expires."""
    remote = Remote()
    one, two = (Core(replace(HOLDER, id=each), remote) for each in ("one", "two"))
    one.start(0.0, takeover=False)
    one.tick(0.0, look=True)
    one.cut_off = True
    two.start(1.0, takeover=True)
    two.not_before = 0.0
    two.tick(1.0, look=True)
    two.write(2.0)
    one.write(3.0)
    assert overlaps([one, two]) == [(3.0, 1)]


@pytest.mark.parametrize("seed", range(20))
def test_a_takeover_takes_at_most_three_periods(seed: int) -> None:
    random_source = random.Random(seed)
    remote = Remote()
    one, two = (Core(replace(HOLDER, id=each), remote) for each in ("one", "two"))
    one.start(0.0, takeover=False)
    now, taken = 0.0, 0.0
    while not two.writes:
        now += random_source.uniform(0.1, 1.0)
        if now > 40 and not taken:
            taken = now
            two.start(now, takeover=True)
        for each in (one, two):
            each.tick(now, look=True)
            each.write(now)
    assert 2 * T <= two.writes[0][0] - taken <= 3 * T
    assert max(when for when, _ in one.writes) <= taken + T
    assert max(when for when, _ in one.unasked) <= taken + T
