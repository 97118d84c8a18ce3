"""The journal of a topology: its runs, step by step, and the lock that guards it.

The start of a step is written to disk before the step begins, its outcome after it ends. Steps
find out the real state themselves; the journal only tells people and `ucp status` what an
interrupted run was doing, and which command continues it. Commands that make several commits also
store what a rerun could find nowhere else (`Journal.keep`).

`journal.json` holds the last start, stop, recreate or destroy; each replaces the one before. A
command that concerns a single object has its own file in `unfinished/` until it is done.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

from k8s_ucp import locks, process
from k8s_ucp.engine.pipeline import (
    OnEvent,
    Report,
    RunInterrupted,
    StepEvent,
    StepRun,
    StepState,
)
from k8s_ucp.errors import UcpError
from k8s_ucp.timestamps import stamp
from k8s_ucp.workspace import StateFolder, make_private_folder, write_private_json
from k8s_ucp.workspace.records import parse_json

_INTRODUCTION_SECONDS = 0.5
"""Time that a process which took the lock has to write its command to it."""
VERSION = 2
"""Version 1 recorded no version, no command and no start time of the process."""
EDIT = "edit"
"""File of an edit of ucp.yaml; a start or the next edit completes it."""
UPGRADE = "upgrade"
"""File of an upgrade. A start rolls components back and leaves clusters to the next upgrade."""
_DONE = "done"
_ENDED = {
    "running": "is running",
    "killed": "was killed",
    "interrupted": "was interrupted",
    "failed": "failed",
    _DONE: "is done",
}


class UnreadableJournal(UcpError):
    """The journal was written by a newer version, or is corrupt."""


@dataclass(frozen=True)
class RunRecord:
    """What the journal recorded of a run."""

    plan: str
    outcome: str
    """A key of _ENDED; a killed run is still recorded as running (see `state`)."""
    began: str
    steps: Sequence[Mapping[str, Any]]
    command: str = ""
    """The command as it was typed."""
    next: str = ""
    """The command that continues the run."""
    pid: int = 0
    start: str = ""
    """Start of the process, as in `ProcessIdentity.start`."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Data that the command stored for a rerun."""

    @property
    def unfinished(self) -> list[str]:
        """Titles of the steps that began and did not succeed."""
        bad = (StepState.RUNNING, StepState.FAILED, StepState.CANCELLED)
        return [str(each["title"]) for each in self.steps if each["state"] in bad]

    @functools.cached_property
    def state(self) -> str:
        """running, killed, done, failed or interrupted, when it was first asked for."""
        if self.outcome != "running":
            return self.outcome
        now = process.identify(self.pid) if self.pid else None
        alive = now is not None and process.is_start_of(self.start, now)
        return "running" if alive else "killed"

    def __str__(self) -> str:
        done = sum(each["state"] == StepState.DONE for each in self.steps)
        where = f", in: {', '.join(self.unfinished)}" if self.unfinished else ""
        return (
            f"`{self.command}` of {self.began} {_ENDED[self.state]} "
            f"({done} of {len(self.steps)} steps done{where})"
        )


class Journal:
    """Records one run as it proceeds. Each change replaces the whole file, so it is never torn.

    A run has one plan, or several plans with waits between them (`begin_part`, `step`).
    path: None if nothing is to be written.
    """

    def __init__(self, path: Path | None, plan: str, command: str = "", next: str = "") -> None:
        self._path = path
        self.resumed = unfinished_at(path, plan) if path else None
        """The run that this one continues."""
        self._earlier: list[dict[str, Any]] = []
        self._written = False
        me = process.identify(os.getpid())
        self._content: dict[str, Any] = {
            "version": VERSION,
            "plan": plan,
            "command": command or f"ucp {plan}",
            "next": next or command or f"ucp {plan}",
            "outcome": "running",
            "began": _now(),
            "pid": os.getpid(),
            "start": me.start if me else "",
            "steps": [],
            "data": dict(self.resumed.data) if self.resumed else {},
        }

    @property
    def data(self) -> Mapping[str, Any]:
        """Data stored by this run or by the one that it continues."""
        kept: Mapping[str, Any] = self._content["data"]
        return kept

    def keep(self, **data: Any) -> None:
        """Store data for a rerun, written with the next step: JSON, no secrets."""
        self._content["data"].update(data)

    def begin_part(self) -> None:
        """Keep the steps recorded so far; those of another plan follow."""
        self._earlier = list(self._content["steps"])

    def drop_part(self) -> None:
        """Drop a part that was rolled back. If nothing came before it, drop the whole run."""
        self._content["steps"] = self._earlier
        if self._earlier or self.resumed:
            self.end("failed")
        else:
            self.discard()

    def note(self, event: StepEvent) -> None:
        """Record a change of state. Progress messages are not worth a write."""
        states = [each["state"] for each in self._earlier] + [each.state for each in event.steps]
        if states != [each["state"] for each in self._content["steps"]]:
            self._content["steps"] = [*self._earlier, *(asdict(each) for each in event.steps)]
            self._write()

    @contextlib.contextmanager
    def step(self, title: str, id: str, on_event: OnEvent = lambda _: None) -> Iterator[Report]:
        """Record a step that is in no plan, such as a wait. Yields what takes its progress."""
        self.begin_part()
        began = time.monotonic()
        step = StepRun(id, title)

        def emit(state: StepState, message: str = "") -> None:
            step.state, step.message = state, message
            step.seconds = time.monotonic() - began
            event = StepEvent(step, [step])
            self.note(event)
            on_event(event)

        emit(StepState.RUNNING)
        try:
            yield lambda message: emit(StepState.RUNNING, message)
        except BaseException:
            emit(StepState.FAILED)
            raise
        emit(StepState.DONE)

    def end(self, outcome: str) -> None:
        """outcome: done, failed or interrupted."""
        self._content.update(outcome=outcome, ended=_now())
        self._write()

    @contextlib.contextmanager
    def until_done(self) -> Iterator[Journal]:
        """Delete the file on success; on failure record the outcome, if any step had begun.

        Raises RunInterrupted after Ctrl-C between the plans of the run.
        """
        try:
            yield self
        except BaseException as error:
            if self._written:
                by_hand = isinstance(error, KeyboardInterrupt | RunInterrupted)
                self.end("interrupted" if by_hand else "failed")
                if isinstance(error, KeyboardInterrupt):
                    again = self._content["next"]
                    raise RunInterrupted("interrupted", next=f"{again} (it continues)") from None
            raise
        if self._written:
            self.discard()

    def discard(self) -> None:
        """Delete the file: nothing of this run is left to do."""
        self._written = False
        if self._path:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        if self._path is None:
            return
        # On a full disk, the step that needs the space reports it better than this file could.
        with contextlib.suppress(OSError, UcpError):
            if not self._path.parent.exists():
                make_private_folder(self._path.parent)
            write_private_json(self._path, self._content)
        self._written = True


def read(path: Path) -> RunRecord | None:
    """Read a run; None if there was none. Raises UnreadableJournal."""
    try:
        content = parse_json(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableJournal(f"failed to read the journal {path}: {error.strerror}") from error
    except ValueError as error:
        raise UnreadableJournal(f"the journal {path} is corrupt: {_line(error)}") from error
    version = content.get("version", 1) if isinstance(content, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise UnreadableJournal(
            f"the journal {path} was written by a newer ucp (format {version}; "
            f"this one reads up to {VERSION})"
        )
    try:
        steps = [{"title": e["title"], "state": e["state"], **e} for e in content["steps"]]
        texts = {name: _text(content[name]) for name in ("plan", "outcome", "began")}
        if version == 1 and texts["plan"] == "publish":
            texts["outcome"] = _DONE  # A failed publish leaves nothing; any start repeats it.
        if texts["outcome"] not in _ENDED:
            raise ValueError(f"unknown outcome {texts['outcome']!r}")
        return RunRecord(
            **texts,
            steps=steps,
            command=_text(content.get("command", f"ucp {content['plan']}")),
            next=_text(content.get("next", f"ucp {content['plan']}")),
            pid=int(content.get("pid") or 0),
            start=_text(content.get("start", "")),
            data=dict(content.get("data") or {}),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise UnreadableJournal(f"the journal {path} is corrupt: {_line(error)}") from error


def unfinished(state: StateFolder) -> tuple[list[RunRecord], list[str]]:
    """(runs in progress or interrupted, newest first; errors of files that can't be read)"""
    found: list[RunRecord] = []
    problems: list[str] = []
    for path in (state.journal, *sorted(state.unfinished.glob("*.json"))):
        try:
            record = read(path)
            if record and record.state == "killed":
                # It may have ended since it was read; before that, a run writes its outcome.
                record = read(path)
        except UnreadableJournal as error:
            problems.append(error.message)
        else:
            if record and record.outcome != _DONE:
                found.append(record)
    return sorted(found, key=lambda each: each.began, reverse=True), problems


def set_aside(path: Path) -> str:
    """Rename a journal that can't be read; returns the message to print, or ""."""
    try:
        read(path)
    except UnreadableJournal as error:
        kept = path.with_name(f"{path.name}.unreadable")
        try:
            path.replace(kept)
        except OSError as failure:
            return f"{error.message}; it could not be kept: {failure.strerror}"
        return f"{error.message}; it is kept as {kept.name}, and each step looks at what is there"
    return ""


def unfinished_at(path: Path, plan: str) -> RunRecord | None:
    """The run of this plan that was interrupted; None if there is none, or it can't be read."""
    try:
        record = read(path)
    except UnreadableJournal:
        return None
    return record if record and record.plan == plan and record.outcome != _DONE else None


def _text(value: Any) -> str:
    """Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@contextlib.contextmanager
def held(lock: Path, topology: str, command: str) -> Iterator[None]:
    """Hold the lock of a topology, so that one command at a time changes it.

    The kernel releases the lock when the process ends. command: as typed, shown to whoever is
    refused. Raises UcpError at once, with the PID and the command of the holder.
    """
    with lock.open("a+", encoding="utf-8") as stream:
        if not locks.take(stream.fileno()):
            raise another_command(f" on the topology {topology}", *_holder(stream))
        # On a full disk only these words are missing: `ucp stop` must work there, too.
        with contextlib.suppress(OSError):
            os.ftruncate(stream.fileno(), 0)
            os.write(stream.fileno(), f"{os.getpid()} {command}\n".encode())
        os.fchmod(stream.fileno(), 0o600)
        yield


def _holder(stream: TextIO) -> tuple[str, str]:
    """(command, PID or "") of the process that holds the lock of an open file.

    One that has just taken the lock has not yet replaced the words of the last holder.
    """
    until = time.monotonic() + _INTRODUCTION_SECONDS
    while True:
        stream.seek(0)
        pid, _, command = stream.read().strip().partition(" ")
        holder = locks.holder(stream.fileno())
        if command and holder in (None, _number(pid)):
            return command, pid
        if time.monotonic() >= until:
            return "ucp", str(holder or "")
        time.sleep(locks.PAUSE)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def another_command(where: str, command: str, pid: int | str) -> UcpError:
    """The error for a command that has to wait for another one.

    where: after "is running". pid: empty if unknown.
    """
    process = f" (PID {pid})" if pid else ""
    return UcpError(
        f"another command is running{where}: `{command}`{process}",
        next="wait for it to finish, or interrupt it with Ctrl-C",
    )


def _now() -> str:
    return stamp(time.time())
