"""Recognizes a process, and ends that one and no other.

The kernel reuses PIDs, so a process is identified by PID and start: the boot of the machine and
the ticks since then. The start as a time of day would change whenever the clock is set; records of
older versions have only that, so their executable has to match too. Otherwise it doesn't count: a
program that a shell script starts with `exec` had another executable a moment before.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from k8s_ucp.errors import DeadlineExceeded

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SAME_START = 0.05
_TIME = re.compile(r"[0-9]+\.[0-9]+")


@dataclass(frozen=True)
class ProcessIdentity:
    """Identifies a process, also after a restart of ucp or of the machine."""

    pid: int
    executable: str
    started_at: float
    """Seconds since the epoch by the current clock; older versions recorded this."""
    start: str = ""
    """Boot and ticks (see `_start_of`); empty in records of older versions."""

    def same_start(self, now: ProcessIdentity) -> bool:
        """Whether `now`, which has its PID, started when this process did."""
        return is_start_of(self.start or f"{self.started_at:.2f}", now)


def is_start_of(start: str, found: ProcessIdentity) -> bool:
    """Whether a process started then. start: as `ProcessIdentity.start`, or a time of day."""
    if _TIME.fullmatch(start):
        return abs(found.started_at - float(start)) < _SAME_START
    return start == found.start


def _start_of(process: psutil.Process) -> str:
    """Boot and ticks since then; a time of day on systems without /proc."""
    try:
        boot = _BOOT.read_text("ascii").strip()
        words = Path(f"/proc/{process.pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return f"{process.create_time():.2f}"
    # The 22nd field; the name before it may contain anything.
    return f"{boot}:{words.rpartition(')')[2].split()[19]}"


def identify(pid: int) -> ProcessIdentity | None:
    """The process that has this PID now; None if there is none, or a zombie."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return ProcessIdentity(pid, process.exe(), process.create_time(), _start_of(process))
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None


def is_running(identity: ProcessIdentity) -> bool:
    """Whether this very process still runs."""
    now = identify(identity.pid)
    if now is None or not identity.same_start(now):
        return False
    return bool(identity.start) or _path(now.executable) == _path(identity.executable)


def _path(executable: str) -> str:
    return executable.removesuffix(" (deleted)")


def terminate(identity: ProcessIdentity, *, grace: float) -> None:
    """End this very process: SIGTERM, then SIGKILL after `grace` seconds. Others are left alone.

    Raises DeadlineExceeded if even SIGKILL does not end it within 5 s.
    """
    terminate_all([identity], grace=grace)


def terminate_all(identities: Iterable[ProcessIdentity], *, grace: float) -> None:
    """Like `terminate`, for several processes at once, with one grace period for all of them.

    Raises DeadlineExceeded.
    """
    left = [each for each in identities if _signal(each, signal.SIGTERM)]
    left = _still_running(left, grace)
    for each in left:
        _signal(each, signal.SIGKILL)
    for each in _still_running(left, 5):
        raise DeadlineExceeded(
            f"termination of process {each.pid} ({each.executable})", grace + 5, "still running"
        )


def _still_running(identities: Sequence[ProcessIdentity], seconds: float) -> list[ProcessIdentity]:
    until = time.monotonic() + seconds
    return [
        each for each in identities if not wait_exited(each, max(0.0, until - time.monotonic()))
    ]


def wait_exited(identity: ProcessIdentity, seconds: float) -> bool:
    """True once the process is gone, False if it still runs after `seconds`.

    Gone includes its ports and files, which outlive its first thread by moments.
    """
    until = time.monotonic() + seconds
    try:
        descriptor = os.pidfd_open(identity.pid)
    except (OSError, AttributeError):
        return _poll_exited(identity, until)
    try:
        if not _is_or_was(identity):
            return True
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        exited = bool(poll.poll(seconds * 1000))
    finally:
        os.close(descriptor)
    if exited:
        _reap(identity.pid)
    return exited


def _poll_exited(identity: ProcessIdentity, until: float) -> bool:
    """Like `wait_exited`, on systems without pidfd."""
    while is_running(identity):
        if time.monotonic() > until:
            return False
        _reap(identity.pid)
        time.sleep(0.02)
    return True


def _is_or_was(identity: ProcessIdentity) -> bool:
    """Whether this very process still has its PID, even if it is about to end."""
    try:
        process = psutil.Process(identity.pid)
        now = ProcessIdentity(identity.pid, "", process.create_time(), _start_of(process))
    except psutil.Error:
        return False
    return identity.same_start(now)


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError, OSError):
        os.waitpid(pid, os.WNOHANG)


def _signal(identity: ProcessIdentity, number: int) -> bool:
    if not is_running(identity):
        return False
    try:
        os.kill(identity.pid, number)
    except ProcessLookupError:
        return False
    return True
