"""Runs programs: one to its end, or one that outlives us."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from k8s_ucp.errors import CommandFailed, DeadlineExceeded, ProgramMissing
from k8s_ucp.process.identity import ProcessIdentity, identify

OUTPUT_KEPT = 200
"""Lines of output that an error contains."""
_NOT_STARTED = 126
"""Exit code of a program that the system did not start, as in shells."""
_NO_MEMORY = re.compile(r"fatal error: .*memory")
"""The first line of what Go's runtime prints, hundreds of lines before its end."""
_DATA = re.compile(r"^VmData:\s+([0-9]+) kB$", re.MULTILINE)
_LOOK_SECONDS = 0.05
"""Interval of looks at a program's memory."""


class RunningPrograms:
    """Programs that `run` waits for in other threads, so that Ctrl-C can kill them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, Any] = {}
        self._ended = False

    @property
    def ended(self) -> bool:
        """No more programs may start; threads that are about to start one should give up."""
        return self._ended

    def end(self) -> None:
        """Kill them and their process groups. A program that starts later is killed at once."""
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
    programs: RunningPrograms | None = None,
    memory: int | None = None,
    output: int | None = None,
) -> str:
    """Run a program to its end and return its stdout.

    timeout: in seconds; then its process group is killed. env: the whole environment; None: ours.
    on_line: called with each line of stdout and stderr. programs: lists it while it runs. memory:
    bytes that it can allocate (on Linux). output: characters of stdout; if it prints more, it is
    killed. Raises CommandFailed, ProgramMissing, DeadlineExceeded.
    """
    import sh

    command_line = tuple(str(each) for each in argv)
    command = _command(command_line[0])
    running = None
    failed = None

    def kill() -> None:
        _kill_group(running)

    limits = _Limits(timeout, memory, kill)
    printed = _Output(on_line, output, kill)
    try:
        running = command(
            *command_line[1:],
            **_SH_OPTIONS,
            _env=dict(env) if env is not None else None,
            _cwd=str(cwd) if cwd else None,
            # Empty instead of None: with None, sh keeps a pipe open and takes 0.1 s longer to end.
            _in=stdin or "",
            _out=printed.on_stdout,
            _err=printed.on_stderr,
            _preexec_fn=functools.partial(_limit_memory, memory) if memory else None,
        )
        limits.start(running.pid)
        if programs:
            programs._add(running)
        running.wait()
    except sh.ErrorReturnCode as error:
        failed = error
    except sh.ForkException as error:
        # Such as an argument of others with a null character, or more than the system passes on.
        _, _, reason = str(error).strip().splitlines()[-1].partition(": ")
        raise CommandFailed(command_line[:1], _NOT_STARTED, reason) from error
    except BaseException:
        kill()
        raise
    finally:
        limits.end()
        if programs:
            programs._remove(running)
    if failed or printed.too_much:
        raise _failure(command_line, failed, limits, printed) from failed
    return printed.stdout()


def _failure(
    argv: Sequence[str], failed: Any, limits: _Limits, printed: _Output
) -> CommandFailed | DeadlineExceeded:
    """Why a program failed: for a limit that it exceeded, or by itself.

    failed: sh's error; None if it printed too much, and ended before it could be killed.
    """
    if failed and limits.expired:
        return DeadlineExceeded(f"`{' '.join(argv)}`", limits.seconds, printed.end(3))
    if printed.too_much:
        why = f"it printed more than {printed.most} characters"
        return CommandFailed(argv, -signal.SIGKILL, why)
    if limits.memory and (limits.exceeded or printed.out_of_memory):
        why = f"it needs more than {limits.memory // 1_000_000} MB of memory"
        return CommandFailed(argv, failed.exit_code, why)
    return CommandFailed(argv, failed.exit_code, printed.end(OUTPUT_KEPT))


def _command(program: str) -> Any:
    import sh

    try:
        return sh.Command(program)
    except sh.CommandNotFound as error:
        raise ProgramMissing(
            f"the program {program} is not installed", next=f"install {program}"
        ) from error


_SH_OPTIONS: Mapping[str, Any] = {
    "_bg": True,
    "_bg_exc": False,
    "_encoding": "utf-8",
    # A file name in another encoding must not fail the run; with "strict", sh passes bytes.
    "_decode_errors": "replace",
    "_tty_out": False,
    "_tty_in": False,
    "_new_session": True,
}
"""For every program: in the background, without a terminal, in a session of its own."""


class _Limits:
    """Kills a program that takes too long or, on Linux, allocates too much.

    sh's own timeout ends the program alone, and not the processes that it started. RLIMIT_DATA
    alone lets Go's programs through: since Linux 6.12, memory in place of reserved addresses is not
    checked against it (mm/vma.c, __mmap_prepare), but still counted.
    """

    def __init__(self, seconds: float, memory: int | None, kill: Callable[[], None]) -> None:
        self.seconds, self.memory, self._kill = seconds, memory, kill
        self._ended = threading.Event()
        self.expired = False
        self.exceeded = False

    def start(self, pid: int) -> None:
        threading.Thread(target=self._watch, args=(pid,), daemon=True).start()

    def end(self) -> None:
        self._ended.set()

    def _watch(self, pid: int) -> None:
        until = time.monotonic() + self.seconds
        while not self._ended.wait(self._pause(until - time.monotonic())):
            self.expired = time.monotonic() >= until
            self.exceeded = self.memory is not None and _allocated(pid) > self.memory
            if self.expired or self.exceeded:
                self._kill()
                return

    def _pause(self, left: float) -> float:
        return max(0.0, min(left, _LOOK_SECONDS) if self.memory else left)


def _allocated(pid: int) -> int:
    """Bytes that count for RLIMIT_DATA; 0 if the process has ended, or the system isn't Linux."""
    with contextlib.suppress(OSError):
        found = _DATA.search(Path(f"/proc/{pid}/status").read_text("ascii", "replace"))
        return int(found[1]) * 1024 if found else 0
    return 0


class _Output:
    """What a program prints: all of stdout, and the last lines of both streams.

    Too much on stdout ends the program.
    """

    def __init__(
        self, on_line: Callable[[str], None] | None, most: int | None, kill: Callable[[], None]
    ) -> None:
        self._on_line = on_line
        self._kill = kill
        self.most = most
        self._left = float("inf") if most is None else most
        self._stdout: list[str] = []
        self._last: list[str] = []
        self.out_of_memory = False

    def on_stdout(self, line: str) -> None:
        self._left -= len(line)
        if self.too_much:
            self._kill()
            return
        self._stdout.append(line)
        self.on_stderr(line)

    def on_stderr(self, line: str) -> None:
        self.out_of_memory = self.out_of_memory or bool(_NO_MEMORY.match(line))
        del self._last[: max(0, len(self._last) - OUTPUT_KEPT)]
        self._last.append(line)
        if self._on_line:
            self._on_line(line.rstrip("\n"))

    @property
    def too_much(self) -> bool:
        return self._left < 0

    def stdout(self) -> str:
        return "".join(self._stdout)

    def end(self, lines: int) -> str:
        """The last lines."""
        return "".join(self._last[-lines:])


def _limit_memory(most: int) -> None:
    """Called in the child. Memory that is only reserved, as Go's runtime does, doesn't count."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _kill_group(running: Any) -> None:
    """Kill a program that `run` started, and its process group."""
    if running is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)


def spawn(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    cwd: Path,
    log: Path,
) -> ProcessIdentity:
    """Start a program that outlives us, in its own session, with its output in `log` (0600).

    Only the user can access the files that it creates (umask 077).
    Raises CommandFailed, ProgramMissing.
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
        raise ProgramMissing(f"the program {argv[0]} is not installed") from error
    finally:
        os.close(descriptor)
    found = identify(child.pid)
    if found is None:
        raise CommandFailed(
            [str(each) for each in argv], child.wait(), log.read_text("utf-8", "replace")[-2000:]
        )
    # Not waited for on purpose: it outlives this process.
    child.returncode = 0
    return found


def find_program(name: str) -> Path | None:
    """Path of a program on PATH; None if it isn't there."""
    found = shutil.which(name)
    return Path(found) if found else None


PASSED_ON = (
    *("HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""Variables that locate the user's files and the network. Others may contain secrets (cloud keys,
tokens) or redirect the program (what git passes to its hooks)."""


def passed_on() -> dict[str, str]:
    """The variables of this process that a program gets, with English messages."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ} | {"LC_ALL": "C"}
