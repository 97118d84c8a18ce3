"""The work queue, compared with a model: delays, lanes, and waiting threads."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from k8s_ucp.reconciler.runtime.work_queue import BackOff, RateLimitedQueue, RetryRate, WorkQueue

KEYS = st.sampled_from(["a", "b", "c", "d"])


class QueueModel(RuleBasedStateMachine):
    """No key is lost, processed twice at a time, queued twice, or handed out early."""

    def __init__(self) -> None:
        super().__init__()
        self.back_off = BackOff(start=1, cap=8, jitter=0)
        self.queue = RateLimitedQueue(self.back_off, chance=lambda: 0.0)
        self.now = 0.0
        self.wanted: set[str] = set()
        """Keys that the next calls of `take` have to return."""
        self.hand: dict[str, bool] = {}
        """Keys being processed, and whether they were added meanwhile."""
        self.due: dict[str, float] = {}
        self.failures: dict[str, int] = {}

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.queue.add(key)
        if key in self.hand:
            self.hand[key] = True
        else:
            self.due.pop(key, None)
            self.wanted.add(key)

    @rule(seconds=st.floats(min_value=0, max_value=20))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        for key in [key for key, due in self.due.items() if due <= self.now]:
            del self.due[key]
            self.wanted.add(key)
        key = self.queue.take(self.now)
        if key is None:
            assert not self.wanted
            return
        assert key in self.wanted
        assert key not in self.hand
        self.wanted.discard(key)
        self.hand[key] = False

    @precondition(lambda self: self.hand)
    @rule(data=st.data(), again=st.none() | st.floats(min_value=0, max_value=10))
    def done(self, data: st.DataObject, again: float | None) -> None:
        key = data.draw(st.sampled_from(sorted(self.hand)))
        self.queue.done(key, self.now, again)
        self.failures[key] = 0
        if self.hand.pop(key):
            self.wanted.add(key)
        elif again is not None:
            self.due[key] = self.now + again

    @precondition(lambda self: self.hand)
    @rule(data=st.data())
    def failed(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.hand)))
        delay = self.queue.failed(key, self.now)
        self.failures[key] = self.failures.get(key, 0) + 1
        changed = self.hand.pop(key)
        assert delay == self.back_off.delay(1 if changed else self.failures[key], 0)
        self.due[key] = self.now + delay

    @invariant()
    def says_when_to_come_back(self) -> None:
        due = self.queue.next_due()
        if self.wanted:
            assert due == 0
        elif self.due:
            assert due == min(self.due.values())
        else:
            assert due is None

    @invariant()
    def counts(self) -> None:
        assert len(self.queue) == len(self.wanted) + len(self.hand)


TestQueue = QueueModel.TestCase


@given(
    failures=st.integers(min_value=1, max_value=10_000), chance=st.floats(min_value=0, max_value=1)
)
def test_the_backoff_stays_within_its_bounds(failures: int, chance: float) -> None:
    back_off = BackOff(start=0.25, cap=5, jitter=0.2)
    assert 0.25 * 0.8 <= back_off.delay(failures, chance) <= 5


@given(
    first=st.integers(min_value=1, max_value=200), second=st.integers(min_value=1, max_value=200)
)
def test_the_backoff_never_decreases_with_more_failures(first: int, second: int) -> None:
    back_off = BackOff(jitter=0)
    less, more = sorted((first, second))
    assert back_off.delay(less, 0) <= back_off.delay(more, 0)


def test_success_resets_the_failure_count() -> None:
    queue = RateLimitedQueue(BackOff(start=1, cap=100, jitter=0))
    for _ in range(5):
        queue.add("a")
        assert queue.take(0) == "a"
        queue.failed("a", 0)
    assert queue.failures("a") == 5
    queue.add("a")
    queue.take(0)
    queue.done("a", 0)
    assert queue.failures("a") == 0


def test_keys_are_taken_in_the_order_they_were_added() -> None:
    queue = RateLimitedQueue(BackOff())
    for key in ("c", "a", "b", "a"):
        queue.add(key)
    assert [queue.take(0) for _ in range(4)] == ["c", "a", "b", None]


def test_a_failure_that_changes_its_own_object_is_not_retried_in_a_busy_loop() -> None:
    queue = RateLimitedQueue(BackOff(start=1, cap=8, jitter=0))
    queue.add("a")
    now = 0.0
    for _ in range(3):
        assert queue.take(now) == "a"
        queue.add("a")
        assert queue.failed("a", now) == 1
        assert queue.take(now) is None
        now += 1


def test_a_waiting_thread_wakes_up_for_a_key_and_for_the_stop() -> None:
    queue = WorkQueue()
    taken: list[str | None] = []

    def work() -> None:
        while (key := queue.take()) is not None:
            taken.append(key)
            queue.done(key)
        taken.append(None)

    thread = threading.Thread(target=work)
    thread.start()
    queue.add("a")
    queue.add("b")
    while len(queue):
        pass
    queue.stop()
    thread.join(60)
    assert not thread.is_alive()
    assert taken == ["a", "b", None]


@pytest.mark.parametrize("threads", [1, 4])
def test_a_key_is_never_processed_by_two_threads_at_a_time(threads: int) -> None:
    queue = WorkQueue()
    lock = threading.Lock()
    processing: set[str] = set()
    twice: list[str] = []
    seen: list[str] = []

    def work() -> None:
        while (key := queue.take()) is not None:
            with lock:
                if key in processing:
                    twice.append(key)
                processing.add(key)
                seen.append(key)
            with lock:
                processing.discard(key)
            queue.done(key)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for each in workers:
        each.start()
    for number in range(500):
        queue.add(f"key {number % 7}")
    while len(queue):
        pass
    queue.stop()
    for each in workers:
        each.join(60)
    assert not twice
    assert set(seen) == {f"key {number}" for number in range(7)}


class LanesModel(RuleBasedStateMachine):
    """Two keys per lane at most are processed at a time; none waits while its lane has room."""

    keys = st.sampled_from([f"{lane}{number}" for lane in "ab" for number in range(4)])

    def __init__(self) -> None:
        super().__init__()
        self.queue = RateLimitedQueue(
            BackOff(start=1, cap=1, jitter=0), lambda: 0.0, lane=lambda key: key[0], width=2
        )
        self.line: set[str] = set()
        self.hand: dict[str, bool] = {}

    def busy(self, lane: str) -> int:
        return sum(each[0] == lane for each in self.hand)

    @rule(key=keys)
    def add(self, key: str) -> None:
        self.queue.add(key)
        if key in self.hand:
            self.hand[key] = True
        else:
            self.line.add(key)

    @rule()
    def take(self) -> None:
        possible = {key for key in self.line if self.busy(key[0]) < 2}
        assert (self.queue.next_due() == 0.0) == bool(possible)
        key = self.queue.take(0.0)
        if key is None:
            assert not possible
            return
        assert key in possible
        self.line.discard(key)
        self.hand[key] = False

    @precondition(lambda self: self.hand)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.hand)))
        self.queue.done(key, 0.0)
        if self.hand.pop(key):
            self.line.add(key)

    @invariant()
    def counts(self) -> None:
        assert len(self.queue) == len(self.line) + len(self.hand)


TestLanes = LanesModel.TestCase


def test_lanes_are_served_in_turn() -> None:
    queue = RateLimitedQueue(BackOff(), lane=lambda key: key[0], width=9)
    for key in ("a1", "a2", "a3", "b1"):
        queue.add(key)
    assert [queue.take(0) for _ in range(4)] == ["a1", "b1", "a2", "a3"]


def test_convergence_time_counts_from_the_oldest_unprocessed_change() -> None:
    queue = RateLimitedQueue(BackOff(start=1, jitter=0), chance=lambda: 0.0)
    queue.add("a", 10)
    queue.add("a", 11)
    assert queue.take(12) == "a"
    assert queue.oldest(12) == 2
    queue.failed("a", 12)
    assert queue.take(13) == "a"
    queue.add("a", 14)
    assert queue.done("a", 15) == 5
    assert queue.take(15) == "a"
    assert queue.done("a", 16, again=1) == 2
    assert queue.take(17) == "a"
    assert queue.done("a", 18) is None
    assert queue.oldest(18) == 0


def test_the_retry_rate_of_all_keys_is_limited() -> None:
    rate = RetryRate(per_second=10, burst=5)
    waits = [rate.wait(0) for _ in range(25)]
    assert waits[:5] == [0] * 5
    assert waits[24] == pytest.approx(2.0)
    assert rate.wait(100) == 0


def test_a_paused_queue_returns_no_key() -> None:
    queue = WorkQueue()
    queue.pause(True)
    queue.add("a")
    assert queue.take(0.05) is None
    queue.pause(False)
    assert queue.take(0.05) == "a"
