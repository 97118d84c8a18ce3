"""The door to other programs: run one, start one that stays, recognise one again.

A PID alone proves nothing (it may have been given to a stranger since), so a process is known by
PID, executable and start time. argv is public on every machine: secrets go through `stdin` or
`env`, never through argv.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from k8s_ucp.errors import CommandFailed, DeadlineExceeded, ProgramMissing

OUTPUT_KEPT = 200
"""Lines of output that an error carries."""


@dataclass(frozen=True)
class Identity:
    """A process that can be recognised after a restart of ours, or of the machine."""

    pid: int
    executable: str
    started_at: float
    """Seconds since the epoch, as the kernel tells it."""


class Programs:
    """Programs that `run` waits for in other threads, so that Ctrl-C in this one can end them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, Any] = {}
        self._ended = False

    @property
    def ended(self) -> bool:
        """Nothing more is to be started: threads that wait for their turn should give up."""
        return self._ended

    def end(self) -> None:
        """Kill them with all that they started; one that starts later is killed at once."""
        with self._lock:
            self._ended = True
            for running in self._running.values():
                _kill_group(running)

    def _add(self, running: Any) -> None:
        with self._lock:
            self._running[id(running)] = running
            if self._ended:
                _kill_group(running)

    def _remove(self, running: Any) -> None:
        with self._lock:
            self._running.pop(id(running), None)


def run(
    argv: Sequence[str | Path],
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    on_line: Callable[[str], None] | None = None,
    programs: Programs | None = None,
) -> str:
    """Run a program to its end and return its stdout.

    timeout: seconds, then its process group is killed. env: the whole environment, None inherits.
    on_line: called with each line of stdout and stderr as it comes. programs: where it is noted
    while it runs. Raises CommandFailed, ProgramMissing, DeadlineExceeded.
    """
    import sh

    program, *arguments = (str(each) for each in argv)
    words = (program, *arguments)
    try:
        command = sh.Command(program)
    except sh.CommandNotFound as error:
        raise ProgramMissing(
            f"the program {program} is not on this machine", next=f"install {program}"
        ) from error
    tail: list[str] = []

    def heard(line: str) -> None:
        del tail[: max(0, len(tail) - OUTPUT_KEPT)]
        tail.append(line)
        if on_line:
            on_line(line.rstrip("\n"))

    out: list[str] = []

    def printed(line: str) -> None:
        out.append(line)
        heard(line)

    running = None
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        _kill_group(running)

    # sh's own timeout ends the program alone and leaves what it started.
    timer = threading.Timer(timeout, expire)
    timer.daemon = True
    try:
        running = command(
            *arguments,
            _bg=True,
            _bg_exc=False,
            _env=dict(env) if env is not None else None,
            _cwd=str(cwd) if cwd else None,
            # Empty, not None: with None sh keeps a pipe open and takes 0.1 s longer to end.
            _in=stdin or "",
            _out=printed,
            _err=heard,
            _tty_out=False,
            _tty_in=False,
            _new_session=True,
        )
        timer.start()
        if programs:
            programs._add(running)
        running.wait()
    except sh.ErrorReturnCode as error:
        if expired.is_set():
            raise DeadlineExceeded(f"`{' '.join(words)}`", timeout, "".join(tail[-3:])) from error
        raise CommandFailed(words, error.exit_code, "".join(tail)) from error
    except BaseException:
        _kill_group(running)
        raise
    finally:
        timer.cancel()
        if programs:
            programs._remove(running)
    return "".join(out)


def _kill_group(running: Any) -> None:
    """End a program that `run` started, and all that it started in its session."""
    if running is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)


def spawn(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    cwd: Path,
    log: Path,
) -> Identity:
    """Start a program that outlives us, in a session of its own, printing to `log` (0600).

    Files that it makes are the user's alone.
    """
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        child = subprocess.Popen(
            [str(each) for each in argv],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
            close_fds=True,
            umask=0o077,
        )
    except FileNotFoundError as error:
        raise ProgramMissing(f"the program {argv[0]} is not on this machine") from error
    finally:
        os.close(descriptor)
    found = identify(child.pid)
    if found is None:
        raise CommandFailed([str(each) for each in argv], child.wait(), log.read_text()[-2000:])
    # Not waited for on purpose: it outlives this process.
    child.returncode = 0
    return found


def identify(pid: int) -> Identity | None:
    """Who has this PID now; None where nobody has (a zombie counts as nobody)."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return Identity(pid, process.exe(), process.create_time())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None


def is_running(identity: Identity) -> bool:
    """That very process still runs."""
    now = identify(identity.pid)
    return (
        now is not None
        and now.executable.removesuffix(" (deleted)")
        == identity.executable.removesuffix(" (deleted)")
        and abs(now.started_at - identity.started_at) < 0.05
    )


def terminate(identity: Identity, *, grace: float) -> None:
    """End that very process: SIGTERM, and SIGKILL after `grace` seconds. A stranger is left alone.

    Raises DeadlineExceeded when even SIGKILL does not end it within 5 s.
    """
    terminate_all([identity], grace=grace)


def terminate_all(identities: Iterable[Identity], *, grace: float) -> None:
    """End several processes at once, like `terminate`; the grace runs for all of them together."""
    left = [each for each in identities if _signal(each, signal.SIGTERM)]
    left = _still_running(left, grace)
    for each in left:
        _signal(each, signal.SIGKILL)
    for each in _still_running(left, 5):
        raise DeadlineExceeded(
            f"end of process {each.pid} ({each.executable})", grace + 5, "still running"
        )


def _still_running(identities: Sequence[Identity], seconds: float) -> list[Identity]:
    until = time.monotonic() + seconds
    return [each for each in identities if not wait_gone(each, max(0.0, until - time.monotonic()))]


def wait_gone(identity: Identity, seconds: float) -> bool:
    """True once that process is gone, False if it still runs after `seconds`.

    Gone includes its ports and files: these outlive the first of its threads by moments.
    """
    until = time.monotonic() + seconds
    try:
        descriptor = os.pidfd_open(identity.pid)
    except (OSError, AttributeError):
        return _poll_gone(identity, until)
    try:
        if not _is_or_was(identity):
            return True
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        gone = bool(poll.poll(seconds * 1000))
    finally:
        os.close(descriptor)
    if gone:
        _reap(identity.pid)
    return gone


def _poll_gone(identity: Identity, until: float) -> bool:
    """For systems without pidfd."""
    while is_running(identity):
        if time.monotonic() > until:
            return False
        _reap(identity.pid)
        time.sleep(0.02)
    return True


def _is_or_was(identity: Identity) -> bool:
    """That very process still has its PID, be it that it is just ending."""
    try:
        started_at = psutil.Process(identity.pid).create_time()
    except psutil.Error:
        return False
    return abs(started_at - identity.started_at) < 0.05


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError, OSError):
        os.waitpid(pid, os.WNOHANG)


def _signal(identity: Identity, number: int) -> bool:
    if not is_running(identity):
        return False
    try:
        os.kill(identity.pid, number)
    except ProcessLookupError:
        return False
    return True


def marked(name: str, value: str) -> list[tuple[Identity, int]]:
    """This user's processes whose environment holds name=value, each with its session's id.

    A proof of descent: only what we started with that entry, and what that started, has it.
    """
    found = []
    for process in psutil.process_iter():
        try:
            if process.uids().real == os.getuid() and _environment(process).get(name) == value:
                identity = identify(process.pid)
                if identity:
                    found.append((identity, os.getsid(process.pid)))
        except (psutil.Error, OSError):
            continue
    return found


def is_marked(pid: int, name: str, value: str) -> bool:
    """That process is this user's and its environment holds name=value."""
    try:
        process = psutil.Process(pid)
        return process.uids().real == os.getuid() and _environment(process).get(name) == value
    except (psutil.Error, OSError):
        return False


def _environment(process: psutil.Process) -> Mapping[str, str]:
    """A program that just began has none for a moment: the kernel fills it in after the start."""
    for _ in range(40):
        environment = process.environ()
        if environment or not process.exe():  # a thread of the kernel never has one
            break
        time.sleep(0.005)
    return environment


def working_in(folder: Path) -> list[Identity]:
    """Processes that work in `folder` or below it: what an interrupted run left behind."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(folder):
                found.append(identify(process.pid))
    return [each for each in found if each]


def listeners(pid: int) -> list[tuple[str, int]]:
    """(address, port) of every TCP socket that a process listens on."""
    try:
        found = psutil.Process(pid).net_connections(kind="tcp")
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return []
    return [(str(each.laddr[0]), int(each.laddr[1])) for each in found if each.status == "LISTEN"]


def find_program(name: str) -> Path | None:
    """Where a program lies on PATH; None where it doesn't."""
    found = shutil.which(name)
    return Path(found) if found else None


def available_memory() -> int:
    """Bytes that new processes can have without anything being swapped out."""
    return int(psutil.virtual_memory().available)
