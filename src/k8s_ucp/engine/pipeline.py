"""Runs a plan: steps in the order of their dependencies, in parallel where possible.

Steps are idempotent, so an interrupted plan is resumed by running it again; completed work is
kept. After the first failure, or Ctrl-C, no further step starts; running steps are told to give up
(`Cancel`) and get some time to end. The error then says how far the plan came.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, TypeVar

from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.engine.waiting import Cancel, Cancelled
from k8s_ucp.errors import UcpError

Context = TypeVar("Context", contravariant=True)
"""What the steps of a plan share."""
Report = Callable[[str], None]

PATIENCE = 10.0
"""Seconds that running steps have to end after a failure or Ctrl-C."""


_RUN_AGAIN = "run the command again"
"""How advice ends if the command is to be repeated."""


class RunInterrupted(UcpError):
    """Ctrl-C was pressed: how far the plan came, and how to continue."""

    exit_code = 130
    still_running = False
    """Some steps did not give up in time, so what they will have done is unknown."""


@dataclass(frozen=True)
class Step(Generic[Context]):
    """One unit of work that can be run again."""

    id: str
    """Verb and object with hyphens: start-core."""
    title: str
    """Shown while it runs: Start the core cluster."""
    run: Callable[[Context, Report], None]
    """Do the work, or find that it is done. report: takes a line of progress. Raises UcpError."""
    preview: Callable[[Context], Iterable[PlannedChange]] = lambda _: ()
    """What `run` would do given the real state; changes nothing. Raises UcpError."""


def step(
    title: str,
    *,
    preview: Callable[[Context], Iterable[PlannedChange]] = lambda _: (),
    id: str | None = None,
) -> Callable[[Callable[[Context, Report], None]], Step[Context]]:
    """Make a function a step. id: default is the function's name, with hyphens."""
    return lambda run: Step(id or run.__name__.replace("_", "-"), title, run, preview)


@dataclass(frozen=True)
class Task(Generic[Context]):
    """A step in a plan, with its dependencies."""

    step: Step[Context]
    after: tuple[str, ...] = ()
    """Ids of the steps that must be done before."""
    when: bool = True
    """False: this run skips it, and no other task waits for it."""


@dataclass(frozen=True)
class Plan(Generic[Context]):
    """Tasks and their order."""

    name: str
    """Name of the command: start, stop."""
    tasks: tuple[Task[Context], ...]
    """After construction, only those with `when`."""
    checks: tuple[Callable[[Context], None], ...] = ()
    """Checks before the first change. Each raises UcpError."""
    whole: bool = False
    """All or nothing: after a failure nothing of it is kept."""

    def __post_init__(self) -> None:
        """Check that each step comes after its dependencies, which rules out cycles."""
        seen: set[str] = set()
        for task in self.tasks:
            unknown = set(task.after) - seen
            if unknown or task.step.id in seen:
                raise ValueError(f"{self.name}: {task.step.id} after {sorted(unknown)}")
            seen.add(task.step.id)
        ids = {each.step.id for each in self.tasks if each.when}
        needed = (
            replace(each, after=tuple(name for name in each.after if name in ids))
            for each in self.tasks
            if each.when
        )
        object.__setattr__(self, "tasks", tuple(needed))


class StepState(StrEnum):
    """State of a step in one run."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass
class StepRun:
    """Progress of a step in one run."""

    id: str
    title: str
    state: StepState = StepState.WAITING
    began: float = 0.0
    """Seconds since the run began."""
    seconds: float = 0.0
    message: str = ""
    """The last progress message, or the error of a failed step."""


@dataclass(frozen=True)
class StepEvent:
    """A step changed its state, or reported progress."""

    step: StepRun
    steps: Sequence[StepRun]
    """All of them, in the order of the plan."""


OnEvent = Callable[[StepEvent], None]


@dataclass
class _Run(Generic[Context]):
    """One run of a plan. Only the thread that called `run` may touch its state."""

    plan: Plan[Context]
    context: Context
    cancel: Cancel
    on_event: OnEvent
    clock: Callable[[], float] = time.monotonic
    steps: dict[str, StepRun] = field(default_factory=dict)
    updates: queue.SimpleQueue[tuple[str, StepState, str | BaseException]] = field(
        default_factory=queue.SimpleQueue
    )
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        self.began = self.clock()
        self.steps = {
            task.step.id: StepRun(task.step.id, task.step.title) for task in self.plan.tasks
        }

    def to_the_end(self) -> None:
        """Run until all steps are done or one fails."""
        self.launch_ready()
        while self.running() and self.failure is None:
            self.handle(self.updates.get())
            if self.failure is None:
                self.launch_ready()

    def wind_down(self, patience: float) -> None:
        """Tell running steps to give up and wait for them, `patience` seconds at most."""
        self.cancel.request()
        until = self.clock() + patience
        while self.running() and (left := until - self.clock()) > 0:
            try:
                self.handle(self.updates.get(timeout=left))
            except queue.Empty:
                return

    def running(self) -> list[StepRun]:
        return [each for each in self.steps.values() if each.state is StepState.RUNNING]

    def launch_ready(self) -> None:
        for task in self.plan.tasks:
            step = self.steps[task.step.id]
            needs = (self.steps[each].state for each in task.after)
            if step.state is StepState.WAITING and all(each is StepState.DONE for each in needs):
                self.launch(task.step, step)

    def launch(self, step: Step[Context], run: StepRun) -> None:
        run.state = StepState.RUNNING
        run.began = self.clock() - self.began
        self.emit(run)
        # A daemon thread: a step that does not give up must not keep the command from ending.
        thread = threading.Thread(target=self.work, args=(step,), name=step.id, daemon=True)
        thread.start()

    def work(self, step: Step[Context]) -> None:
        """Run a step in its own thread."""

        def report(message: str) -> None:
            self.updates.put((step.id, StepState.RUNNING, message))

        try:
            step.run(self.context, report)
        except BaseException as error:  # noqa: BLE001 (the calling thread raises it)
            self.updates.put((step.id, StepState.FAILED, error))
        else:
            self.updates.put((step.id, StepState.DONE, ""))

    def handle(self, update: tuple[str, StepState, str | BaseException]) -> None:
        name, state, outcome = update
        step = self.steps[name]
        step.seconds = self.clock() - self.began - step.began
        if isinstance(outcome, BaseException):
            given_up = isinstance(outcome, Cancelled) or self.cancel.requested
            step.state = StepState.CANCELLED if given_up else StepState.FAILED
            step.message = (
                "canceled" if given_up else (str(outcome) or repr(outcome)).splitlines()[0]
            )
            if not given_up and self.failure is None:
                self.failure = outcome
        else:
            step.state = state
            step.message = outcome or ("" if state is StepState.DONE else step.message)
        self.emit(step)

    def emit(self, step: StepRun) -> None:
        self.on_event(StepEvent(step, tuple(self.steps.values())))


def run(
    plan: Plan[Context],
    context: Context,
    *,
    cancel: Cancel,
    on_event: OnEvent,
    again: str | None = None,
    patience: float = PATIENCE,
) -> None:
    """Run a plan to its end. Call it from the main thread, since Ctrl-C arrives there.

    on_event: called in this thread, one call at a time. again: the command that continues the run.
    Raises RunInterrupted, or the first failure of a step; the message says how far the plan came.
    Steps that did not give up in time are still running then, in daemon threads.
    """
    again = again or f"ucp {plan.name}"
    if not plan.whole:
        again += " (completed steps are kept)"
    going = _Run(plan, context, cancel, on_event)
    try:
        going.to_the_end()
    except KeyboardInterrupt:
        _wind_down_unless_pressed_again(going, patience)
        interrupted = RunInterrupted(
            f"interrupted; {left_standing(going.steps.values())}", next=again
        )
        interrupted.still_running = bool(going.running())
        raise interrupted from None
    except BaseException:
        # The listener failed, such as at a closed stderr: don't leave programs of steps behind.
        cancel.request()
        raise
    if going.failure is None:
        return
    _wind_down_unless_pressed_again(going, patience)
    failed = next(each for each in going.steps.values() if each.state is StepState.FAILED)
    error = going.failure
    if isinstance(error, UcpError):
        error.message = f"{failed.title}: {error.message}"
        if not plan.whole:
            error.message += f"\n  {left_standing(going.steps.values())}"
        error.next = _then(error.next, again)
    raise error


def _then(advice: str | None, again: str) -> str:
    """Advice that ends with the command to run again, named once."""
    if not advice:
        return again
    if advice.endswith(_RUN_AGAIN):
        return advice.removesuffix(_RUN_AGAIN) + again
    return f"{advice}; then {again}"


def preflight(plan: Plan[Context], context: Context) -> None:
    """Run all checks of a plan. Raises one UcpError with all problems."""
    errors: list[UcpError] = []
    for check in plan.checks:
        try:
            check(context)
        except UcpError as error:
            if all(str(error) != str(other) for other in errors):
                errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        together = UcpError(
            "\n".join(["nothing was changed, because:", *(f"- {each}" for each in errors)])
        )
        together.exit_code = max(each.exit_code for each in errors)
        raise together


def preview(plans: Iterable[Plan[Context]], context: Context) -> dict[str, list[Any]]:
    """The output of `--plan`: what each step previews, in order. Raises UcpError."""
    found = [
        (task.step.id, each)
        for plan in plans
        for task in plan.tasks
        for each in task.step.preview(context)
    ]
    return {
        "steps": [
            {"id": step, "action": each.action, "object": each.object, "reason": each.reason}
            for step, each in found
        ],
        "lost": [each.lost for _, each in found if each.lost],
    }


def left_standing(steps: Iterable[StepRun]) -> str:
    """One line on how far an unfinished plan came, in the words of its display."""
    steps = list(steps)
    by_state: dict[StepState, list[str]] = {}
    for each in steps:
        by_state.setdefault(each.state, []).append(each.title)
    done = len(by_state.get(StepState.DONE, []))
    parts = [f"{done} of {len(steps)} steps done"]
    parts += [
        f"{words}: {', '.join(by_state[state])}"
        for state, words in (
            (StepState.RUNNING, "still running"),
            (StepState.CANCELLED, "interrupted"),
        )
        if state in by_state
    ]
    return "; ".join(parts)


def _wind_down_unless_pressed_again(going: _Run[Context], patience: float) -> None:
    try:
        going.wind_down(patience)
    except KeyboardInterrupt:
        return
