"""The runner of plans: order, parallel steps, the first failure, Ctrl-C."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k8s_ucp.engine import pipeline
from k8s_ucp.engine.pipeline import Plan, Report, RunInterrupted, Step, StepEvent, StepState, Task
from k8s_ucp.engine.waiting import Cancel, Cancelled, wait_until
from k8s_ucp.errors import DeadlineExceeded, UcpError, UsageError


@dataclass
class RecordedRun:
    """What the steps below record, in the order in which it happened."""

    done: list[str] = field(default_factory=list)
    cancel: Cancel = field(default_factory=Cancel)
    events: list[tuple[str, StepState, str]] = field(default_factory=list)

    def run(self, *tasks: Task[RecordedRun], patience: float = 5) -> None:
        pipeline.run(
            Plan("start", tasks), self, cancel=self.cancel, on_event=self.hear, patience=patience
        )

    def hear(self, event: StepEvent) -> None:
        self.events.append((event.step.id, event.step.state, event.step.message))


def nothing(_: RecordedRun, __: Report) -> None:
    """A step that does nothing."""


def probe(name: str, does: Callable[[RecordedRun, Report], None] = nothing) -> Step[RecordedRun]:
    """A step that runs the given function and records its name."""

    def run(world: RecordedRun, report: Report) -> None:
        does(world, report)
        world.done.append(name)

    return Step(name, f"Step {name}", run)


def fail(_: RecordedRun, __: Report) -> None:
    raise UcpError("the disk is full", next="free some space")


def fail_until_run_again(_: RecordedRun, __: Report) -> None:
    raise UcpError("the disk is full", next="free some space, then run the command again")


def until_given_up(world: RecordedRun, _: Report) -> None:
    world.cancel.pause(20)


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[tuple[str, tuple[str, ...]]], set[str]]:
    """Steps with their dependencies (earlier steps), and the names of those that fail."""
    count = draw(st.integers(0, 8))
    names = [f"s{number}" for number in range(count)]
    needs = [
        (name, tuple(draw(st.lists(st.sampled_from(names[:place]), unique=True))) if place else ())
        for place, name in enumerate(names)
    ]
    failing = (
        set(draw(st.lists(st.sampled_from(names), unique=True, max_size=2))) if names else set()
    )
    return needs, failing


@given(plans())
@settings(max_examples=60, deadline=None)
def test_any_plan_runs_in_order_and_stops_at_a_failure(
    drawn: tuple[list[tuple[str, tuple[str, ...]]], set[str]],
) -> None:
    needs, failing = drawn
    world = RecordedRun()
    tasks = [
        Task(probe(name, fail if name in failing else nothing), after) for name, after in needs
    ]
    try:
        world.run(*tasks)
        failed = False
    except UcpError as error:
        failed = True
        assert "the disk is full" in str(error)
        assert error.next == "free some space; then ucp start (completed steps are kept)"
    reachable = {name for name, _ in needs}
    assert failed == bool(failing)
    assert len(set(world.done)) == len(world.done)
    for name, after in needs:
        if name in world.done:
            place = world.done.index(name)
            assert set(after) <= set(world.done[:place])
    if not failing:
        assert set(world.done) == reachable
    assert not failing & set(world.done)
    last = {name: state for name, state, _ in world.events}
    for name, after in needs:
        if set(after) & failing:
            assert name not in last, "a step began although what it needs had failed"


def test_independent_steps_run_in_parallel() -> None:
    barrier = threading.Barrier(3, timeout=60)
    world = RecordedRun()
    world.run(*(Task(probe(name, lambda *_: barrier.wait() and None)) for name in "abc"))
    assert sorted(world.done) == ["a", "b", "c"]


def test_progress_reaches_the_listener_and_is_cleared_when_done() -> None:
    def speak(_: RecordedRun, report: Report) -> None:
        report("half way")

    world = RecordedRun()
    world.run(Task(probe("a", speak)))
    assert world.events == [
        ("a", StepState.RUNNING, ""),
        ("a", StepState.RUNNING, "half way"),
        ("a", StepState.DONE, ""),
    ]


def test_a_failure_cancels_the_other_steps_and_reports_what_is_left() -> None:
    world = RecordedRun()
    with pytest.raises(UcpError) as caught:
        world.run(
            Task(probe("first")),
            Task(probe("slow", until_given_up), ("first",)),
            Task(probe("broken", fail), ("first",)),
            Task(probe("last"), ("broken",)),
        )
    assert caught.value.message == (
        "Step broken: the disk is full\n  1 of 4 steps done; interrupted: Step slow"
    )
    assert world.done == ["first"]


def test_a_listener_that_fails_cancels_the_steps() -> None:
    """Such as stderr that nobody reads any more: programs of steps would stay behind."""
    world = RecordedRun()

    def hear(event: StepEvent) -> None:
        if event.step.id == "b":
            raise BrokenPipeError

    tasks = (Task(probe("a", until_given_up)), Task(probe("b")))
    with pytest.raises(BrokenPipeError):
        pipeline.run(Plan("start", tasks), world, cancel=world.cancel, on_event=hear)
    assert world.cancel.requested


def test_a_step_that_ignores_cancellation_is_not_awaited_forever() -> None:
    release = threading.Event()
    world = RecordedRun()
    with pytest.raises(UcpError, match="still running: Step deaf"):
        world.run(
            Task(probe("deaf", lambda *_: release.wait(30) and None)),
            Task(probe("broken", fail)),
            patience=0.05,
        )
    release.set()


def test_usage_errors_and_bugs_keep_their_exception_type() -> None:
    def misuse(*_: object) -> None:
        raise UsageError("no such thing")

    def crash(*_: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(UsageError):
        RecordedRun().run(Task(probe("a", misuse)))
    with pytest.raises(ZeroDivisionError):
        RecordedRun().run(Task(probe("a", crash)))


def test_advice_that_says_to_run_the_command_again_names_it_once() -> None:
    with pytest.raises(UcpError) as caught:
        RecordedRun().run(Task(probe("a", fail_until_run_again)))
    assert caught.value.next == "free some space, then ucp start (completed steps are kept)"


def test_ctrl_c_cancels_the_steps_and_reports_what_is_left() -> None:
    def interrupt(world: RecordedRun, _: Report) -> None:
        _thread.interrupt_main()
        world.cancel.pause(20)

    world = RecordedRun()
    with pytest.raises(RunInterrupted) as caught:
        world.run(Task(probe("a")), Task(probe("b", interrupt), ("a",)), Task(probe("c"), ("b",)))
    assert caught.value.exit_code == 130
    assert caught.value.message == "interrupted; 1 of 3 steps done; interrupted: Step b"
    assert caught.value.next == "ucp start (completed steps are kept)"
    assert world.cancel.programs.ended


@pytest.mark.parametrize(
    "tasks",
    [
        (Task(probe("a"), ("b",)), Task(probe("b"))),
        (Task(probe("a"), ("a",)),),
        (Task(probe("a")), Task(probe("a"))),
    ],
    ids=["needs a later one", "needs itself", "twice"],
)
def test_invalid_plans_are_refused(tasks: tuple[Task[RecordedRun], ...]) -> None:
    with pytest.raises(ValueError, match="start: a after"):
        Plan("start", tasks)


def test_preflight_runs_every_check_and_reports_each_error_once() -> None:
    full, taken = UcpError("disk full", next="df"), UsageError("port taken")

    def refusing(error: UcpError) -> Callable[[RecordedRun], None]:
        def check(_: RecordedRun) -> None:
            raise error

        return check

    checks = (lambda _: None, *map(refusing, (full, taken, UcpError("disk full", next="df"))))
    with pytest.raises(UcpError) as caught:
        pipeline.preflight(Plan("start", (), checks), RecordedRun())
    assert caught.value.message == (
        "nothing was changed, because:\n- disk full\n  next: df\n- port taken"
    )
    assert caught.value.exit_code == 2
    with pytest.raises(UcpError) as alone:
        pipeline.preflight(Plan("start", (), checks[:2]), RecordedRun())
    assert alone.value is full
    pipeline.preflight(Plan("start", (), checks[:1]), RecordedRun())


def test_a_wait_that_times_out_reports_the_last_state() -> None:
    answers = iter(["not there", "half there", ""])
    wait_until("x", lambda: next(answers), seconds=5, cancel=Cancel(), pause=0.001)
    with pytest.raises(DeadlineExceeded) as caught:
        wait_until("x", lambda: "half there", seconds=0.01, cancel=Cancel(), pause=0.001)
    assert caught.value.last_state == "half there"


def test_a_wait_ends_immediately_on_cancellation() -> None:
    cancel = Cancel()
    threading.Timer(0.05, cancel.request).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        wait_until("x", lambda: "no", seconds=60, cancel=cancel, pause=30)
    assert time.monotonic() - began < 20
    with pytest.raises(Cancelled):
        cancel.check()
