"""Runs a plan: steps in the order of what they need, side by side where nothing forbids it.

A step is safe to run again, so a plan that was cut off is resumed by running it once more: what is
there already is kept. The first failure, or Ctrl-C, keeps further steps from starting, tells those
that run (`Cancel`) and waits for them a while; the error then says what is left standing.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, TypeVar

from k8s_ucp.engine.foresight import Foreseen
from k8s_ucp.engine.waiting import Cancel, Cancelled
from k8s_ucp.errors import UcpError

World = TypeVar("World", contravariant=True)
Report = Callable[[str], None]

PATIENCE = 10.0
"""Seconds that running steps get to end after a failure or Ctrl-C."""


class RunInterrupted(UcpError):
    """Ctrl-C: what is left standing, and how to go on."""

    exit_code = 130
    still_running = False
    """Steps did not give up in time: nobody knows what they will have done."""


@dataclass(frozen=True)
class Step(Generic[World]):
    """One small piece of work."""

    id: str
    """The verb and the object, with hyphens: start-core."""
    title: str
    """What a person reads while it runs: Start the core cluster."""
    run: Callable[[World, Report], None]
    """Do it, or see that it is done. report: one line on how far it is. Raises UcpError."""
    foresee: Callable[[World], Iterable[Foreseen]] = lambda _: ()
    """What `run` would do, from the real state, changing nothing. Raises UcpError."""


def step(
    title: str,
    *,
    foresee: Callable[[World], Iterable[Foreseen]] = lambda _: (),
    id: str | None = None,
) -> Callable[[Callable[[World, Report], None]], Step[World]]:
    """Make a function a step. id: where it is not the function's name."""
    return lambda run: Step(id or run.__name__.replace("_", "-"), title, run, foresee)


@dataclass(frozen=True)
class Task(Generic[World]):
    """A step in a plan, and what must be done before it."""

    step: Step[World]
    after: tuple[str, ...] = ()
    """Ids of steps."""
    when: bool = True
    """False: this run does without it, and nobody waits for it."""


@dataclass(frozen=True)
class Plan(Generic[World]):
    """What happens in which order."""

    name: str
    """Of the command: start, stop."""
    tasks: tuple[Task[World], ...]
    """Once made, only those that the run needs."""
    checks: tuple[Callable[[World], None], ...] = ()
    """What is looked at before the first change. Each raises UcpError."""
    whole: bool = False
    """It is done whole or not at all: after a failure nothing of it is kept."""

    def __post_init__(self) -> None:
        """A step comes after those that it needs, which rules out circles."""
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
    """Of a step in one run."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass
class StepRun:
    """How one step fares in one run."""

    id: str
    title: str
    state: StepState = StepState.WAITING
    began: float = 0.0
    """Seconds since the run began."""
    seconds: float = 0.0
    message: str = ""
    """The last thing reported; the error of a failed step."""


@dataclass(frozen=True)
class StepEvent:
    """A step changed its state, or reported something."""

    step: StepRun
    steps: Sequence[StepRun]
    """All of them, in the order of the plan."""


OnEvent = Callable[[StepEvent], None]


@dataclass
class _Run(Generic[World]):
    """One run of a plan. Its state is touched by the thread that called `run` only."""

    plan: Plan[World]
    world: World
    cancel: Cancel
    on_event: OnEvent
    clock: Callable[[], float] = time.monotonic
    steps: dict[str, StepRun] = field(default_factory=dict)
    news: queue.SimpleQueue[tuple[str, StepState, str | BaseException]] = field(
        default_factory=queue.SimpleQueue
    )
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        self.began = self.clock()
        self.steps = {
            task.step.id: StepRun(task.step.id, task.step.title) for task in self.plan.tasks
        }

    def to_the_end(self) -> None:
        """Or to the first failure."""
        self.launch_ready()
        while self.running() and self.failure is None:
            self.hear(self.news.get())
            if self.failure is None:
                self.launch_ready()

    def wind_down(self, patience: float) -> None:
        """Let running steps give up, for `patience` seconds."""
        self.cancel.request()
        until = self.clock() + patience
        while self.running() and (left := until - self.clock()) > 0:
            try:
                self.hear(self.news.get(timeout=left))
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

    def launch(self, step: Step[World], run: StepRun) -> None:
        run.state = StepState.RUNNING
        run.began = self.clock() - self.began
        self.tell(run)
        # Daemons: a step that does not give up must not keep the command from ending.
        thread = threading.Thread(target=self.work, args=(step,), name=step.id, daemon=True)
        thread.start()

    def work(self, step: Step[World]) -> None:
        """In a thread of its own."""

        def report(message: str) -> None:
            self.news.put((step.id, StepState.RUNNING, message))

        try:
            step.run(self.world, report)
        except BaseException as error:  # noqa: BLE001 (it is raised by the calling thread)
            self.news.put((step.id, StepState.FAILED, error))
        else:
            self.news.put((step.id, StepState.DONE, ""))

    def hear(self, told: tuple[str, StepState, str | BaseException]) -> None:
        name, state, said = told
        step = self.steps[name]
        step.seconds = self.clock() - self.began - step.began
        if isinstance(said, BaseException):
            given_up = isinstance(said, Cancelled) or self.cancel.requested
            step.state = StepState.CANCELLED if given_up else StepState.FAILED
            step.message = "canceled" if given_up else (str(said) or repr(said)).splitlines()[0]
            if not given_up and self.failure is None:
                self.failure = said
        else:
            step.state = state
            step.message = said or ("" if state is StepState.DONE else step.message)
        self.tell(step)

    def tell(self, step: StepRun) -> None:
        self.on_event(StepEvent(step, tuple(self.steps.values())))


def run(
    plan: Plan[World],
    world: World,
    *,
    cancel: Cancel,
    on_event: OnEvent,
    again: str | None = None,
    patience: float = PATIENCE,
) -> None:
    """Run a plan to its end. Call it from the main thread: Ctrl-C arrives there.

    on_event: called in this thread, one call at a time. again: the command that goes on from here.
    Raises the first failure of a step, its message completed by what is left standing, or
    Interrupted. Steps that did not give up in time are still busy then, in daemon threads.
    """
    again = again or f"ucp {plan.name}"
    if not plan.whole:
        again += " (completed steps are kept)"
    going = _Run(plan, world, cancel, on_event)
    try:
        going.to_the_end()
    except KeyboardInterrupt:
        _wind_down_unless_pressed_again(going, patience)
        interrupted = RunInterrupted(
            f"interrupted; {left_standing(going.steps.values())}", next=again
        )
        interrupted.still_running = bool(going.running())
        raise interrupted from None
    if going.failure is None:
        return
    _wind_down_unless_pressed_again(going, patience)
    failed = next(each for each in going.steps.values() if each.state is StepState.FAILED)
    error = going.failure
    if isinstance(error, UcpError):
        error.message = f"{failed.title}: {error.message}"
        if not plan.whole:
            error.message += f"\n  {left_standing(going.steps.values())}"
        error.next = f"{error.next}; then {again}" if error.next else again
    raise error


def preflight(plan: Plan[World], world: World) -> None:
    """Make all checks of a plan. Raises one UcpError with all that is wrong."""
    errors: list[UcpError] = []
    for check in plan.checks:
        try:
            check(world)
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


def foresee(plans: Iterable[Plan[World]], world: World) -> dict[str, list[Any]]:
    """The data of `--plan`: what each step says, in the order of the plans. Raises UcpError."""
    found = [
        (task.step.id, each)
        for plan in plans
        for task in plan.tasks
        for each in task.step.foresee(world)
    ]
    return {
        "steps": [
            {"id": step, "action": each.action, "object": each.object, "reason": each.reason}
            for step, each in found
        ],
        "lost": [each.lost for _, each in found if each.lost],
    }


def left_standing(steps: Iterable[StepRun]) -> str:
    """One line on how far a plan came that did not end, in the words of its display."""
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


def _wind_down_unless_pressed_again(going: _Run[World], patience: float) -> None:
    try:
        going.wind_down(patience)
    except KeyboardInterrupt:
        return
