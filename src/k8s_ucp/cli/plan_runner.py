"""Runs a plan for a command: lock, checks, view, journal, log."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from k8s_ucp.cli.command import Invocation, Output
from k8s_ucp.cli.console import Console, silence_closed_terminal
from k8s_ucp.context import StartContext
from k8s_ucp.engine import journal, pipeline
from k8s_ucp.engine.journal import Journal
from k8s_ucp.engine.pipeline import Plan, RunInterrupted, Step, StepEvent, Task, preview
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.costs import costs_of
from k8s_ucp.redaction import without_secrets
from k8s_ucp.timestamps import stamp
from k8s_ucp.topology import Topology
from k8s_ucp.workspace import FILE_MODE, StateFolder, Workspace, writing

LOG_BYTES = 1024 * 1024
PlannedChanges = Mapping[str, Iterable[PlannedChange]]
"""{id of what a command does in addition to its plan: what that would do}"""


class EditKept(RunInterrupted):
    """Ctrl-C after an edit was pushed, or when that is unknown: ucp.yaml keeps the edit."""


def run_plan(
    plan: Plan[StartContext],
    context: StartContext,
    console: Console,
    *,
    before: Callable[[], None] = lambda: None,
    locked: bool = False,
    part_of: Journal | None = None,
) -> float:
    """Run a plan on a topology; returns the seconds it took.

    before: called between the checks and the first step, with the topology's lock. locked: the
    caller already holds the lock. part_of: the journal of a command that does more than this plan.
    Raises UcpError, RunInterrupted.
    """
    began = time.monotonic()
    state = context.state
    if not locked:
        _refuse_beside_another(context)
    if plan.checks:
        pipeline.preflight(plan, context)
    for note in context.notes:
        console.say(f"note: {note}")
    state.make()
    end_like_ctrl_c()
    with contextlib.ExitStack() as stack:
        if not locked:
            stack.enter_context(alone(context.workspace, context.topology.name))
        before()
        if plan.name != "stop":  # stop must work on a full disk, too
            context.workspace.settle_identity()
        log = stack.enter_context(_log(state.logs / "ucp.log", plan.name))
        view = stack.enter_context(console.steps())
        writing = part_of or open_journal(state.journal, plan.name, command_line(), console)
        writing.begin_part()
        context.journal = writing
        if plan.name == "start":
            state.destroyed.unlink(missing_ok=True)

        def on_event(event: StepEvent) -> None:
            view.on_event(event)
            writing.note(event)
            log(event)

        with _ending(writing):
            pipeline.run(
                plan, context, cancel=context.cancel, on_event=on_event, again=command_line()
            )
        if not part_of:
            writing.end("done")
        _discard_finished(context, plan)
    return time.monotonic() - began


def _refuse_beside_another(context: StartContext) -> None:
    """Before the checks, to which what the other command has not finished looks broken.

    Raises UcpError.
    """
    lock = context.state.lock
    # If the lock can't be opened, a check knows why.
    with contextlib.suppress(OSError):
        if lock.exists():
            with journal.held(lock, context.topology.name, command_line()):
                pass


@contextlib.contextmanager
def _ending(writing: Journal) -> Iterator[None]:
    """Note in the journal that the block was interrupted or failed."""
    try:
        yield
    except RunInterrupted:
        writing.end("interrupted")
        raise
    except BaseException:
        writing.end("failed")
        raise


def end_like_ctrl_c() -> None:
    """From now on, handle a canceled CI job or a closed terminal like Ctrl-C.

    A signal that is ignored, as `nohup` does, stays ignored.
    """
    for each in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _interrupt)


def edit_journal(state: StateFolder, console: Console) -> Journal:
    """The journal of an edit of ucp.yaml; if interrupted after that, a start publishes the edit."""
    path = state.unfinished_file(journal.EDIT)
    return open_journal(path, "edit", command_line(), console, next="ucp start")


def open_journal(
    path: Path | None, plan: str, command: str, console: Console, *, next: str = ""
) -> Journal:
    """Open the journal of a run; next: the command that continues it, if that is another one.

    Prints what is continued, or what happened to a journal that can't be read. Raises UcpError if
    another process is in the run.
    """
    if path and (words := journal.set_aside(path)):
        console.say(f"note: {words}")
    opened = Journal(path, plan, command, next)
    if before := opened.resumed:
        if before.state == "running" and before.pid != os.getpid():
            # Such as a command that waits for a cluster, without the topology's lock.
            raise journal.another_command("", before.command, before.pid)
        console.say(f"{before}; continuing from there")
    return opened


def _discard_finished(context: StartContext, plan: Plan[StartContext]) -> None:
    """Delete journals that this run has completed.

    A start or an edit publishes an interrupted edit; a teardown ends everything. A start rolls back
    an interrupted upgrade of components; that of a cluster waits for the next upgrade.
    """
    state = context.state
    if plan.name == "destroy":
        for each in state.unfinished.glob("*.json"):
            each.unlink(missing_ok=True)
    elif plan.name in ("publish", "start"):
        state.unfinished_file(journal.EDIT).unlink(missing_ok=True)
    upgrade = state.unfinished_file(journal.UPGRADE)
    if plan.name == "start" and upgrade.exists():
        from k8s_ucp.steps.upgrading.resume import interrupted_parts

        if not interrupted_parts(context, None):
            upgrade.unlink()


@contextlib.contextmanager
def alone(workspace: Workspace, topology: str) -> Iterator[None]:
    """Hold the lock of a topology. Raises UcpError at once if another command holds it."""
    state = workspace.state(topology)
    state.make()
    with journal.held(state.lock, topology, command_line()):
        yield


def _interrupt(number: int, _: object) -> None:
    silence_closed_terminal()
    raise KeyboardInterrupt(signal.Signals(number).name)


def command_line() -> str:
    """The command line as typed, without passwords in URLs."""
    return without_secrets(shlex.join(["ucp", *sys.argv[1:]]))


@contextlib.contextmanager
def _log(path: Path, name: str) -> Iterator[Callable[[StepEvent], None]]:
    """The run log (0600), with a line for each change; one old file is kept."""
    with contextlib.suppress(OSError):
        if path.stat().st_size > LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
    with writing(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)
    # Unbuffered: on a full disk, closing a buffer would fail and hide the outcome of the run.
    with os.fdopen(descriptor, "ab", buffering=0) as stream:

        def write(words: str) -> None:
            line = f"{stamp(time.time())} {name} {without_secrets(words)}\n"
            with contextlib.suppress(OSError):
                stream.write(line.encode("utf-8", "replace"))

        write(f"begins: {command_line()}")
        last: dict[str, str] = {}

        def on_event(event: StepEvent) -> None:
            step = event.step
            words = f"{step.id}: {step.state} {step.message}".strip()
            if last.get(step.id) != words:
                last[step.id] = words
                write(f"{words} ({step.seconds:.2f} s)")

        try:
            yield on_event
        except UcpError as error:
            # The step's own line has only the first line of the message.
            write("failed: " + str(error).replace("\n", "\n  "))
            raise
        write("ends")


def show_plan(
    call: Invocation,
    plans: Sequence[Plan[StartContext]],
    context: StartContext,
    output: Output,
    *,
    before: PlannedChanges | None = None,
    after: PlannedChanges | None = None,
    now: Topology | None = None,
) -> None:
    """Print what plans would do, without doing it.

    before, after: what the command does in addition. now: ucp.yaml as it is, if the plans are for a
    changed one; prices are taken from both. Raises UcpError if the checks of a plan fail.
    """
    for plan in plans:
        pipeline.preflight(plan, context)
    with tempfile.TemporaryDirectory(prefix="ucp-plan-") as folder:
        context.publishing.scratch = Path(folder)
        data = preview([_around(before or {}), *plans, _around(after or {})], context)
    costs = costs_of([*([now] if now else []), context.topology], data["steps"])
    if costs:
        data["costs"] = [each.data() for each in costs]
    rows = [[each[name] for name in ("action", "object", "reason", "id")] for each in data["steps"]]
    columns = ("action", "object", "reason", "step")
    call.show_list(output, data, columns, rows, spare=("step",))
    for each in context.notes:
        call.console.say(f"note: {each}")
    if output is Output.table:
        if costs:
            words = [f"  {each}" for each in costs]
            call.console.data("\n".join(["", "costs, by the prices in ucp.yaml:", *words]))
        lost = [f"  {each}" for each in data["lost"]] or ["  nothing"]
        call.console.data("\n".join(["", "lost for good:", *lost]))


def _around(changes: PlannedChanges) -> Plan[StartContext]:
    def planned(id: str) -> Callable[[StartContext], Iterable[PlannedChange]]:
        return lambda _: changes[id]

    return Plan(
        "", tuple(Task(Step(each, each, lambda *_: None, planned(each))) for each in changes)
    )
