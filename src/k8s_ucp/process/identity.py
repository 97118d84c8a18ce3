"""Recognising a process, and ending that one and no other.

A PID alone proves nothing (it may have been given to a stranger since), so a process is known by
PID, executable and start: which boot of the machine, and how many ticks after it. As a time of day
the start of the same process is another one after each step of the clock.
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
    """A process that can be recognised after a restart of ours, or of the machine."""

    pid: int
    executable: str
    started_at: float
    """Seconds since the epoch, as the clock says now; what older versions wrote down."""
    start: str = ""
    """As `start_of` tells it; empty in what older versions wrote down."""

    def same_start(self, now: ProcessIdentity) -> bool:
        """Of what has its PID now: it began when this one did."""
        return is_start_of(self.start or f"{self.started_at:.2f}", now)


def is_start_of(start: str, found: ProcessIdentity) -> bool:
    """Whether a process began then, by `ProcessIdentity.start` or by the time of day."""
    if _TIME.fullmatch(start):
        return abs(found.started_at - float(start)) < _SAME_START
    return start == found.start


def _start_of(process: psutil.Process) -> str:
    """Boot and ticks since then; a time of day where the system tells no such thing."""
    try:
        boot = _BOOT.read_text("ascii").strip()
        words = Path(f"/proc/{process.pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return f"{process.create_time():.2f}"
    # After the name, which may hold anything: the 22nd field of all.
    return f"{boot}:{words.rpartition(')')[2].split()[19]}"


def identify(pid: int) -> ProcessIdentity | None:
    """Who has this PID now; None where nobody has (a zombie counts as nobody)."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return ProcessIdentity(pid, process.exe(), process.create_time(), _start_of(process))
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None


def is_running(identity: ProcessIdentity) -> bool:
    """That very process still runs."""
    now = identify(identity.pid)
    return (
        now is not None
        and now.executable.removesuffix(" (deleted)")
        == identity.executable.removesuffix(" (deleted)")
        and identity.same_start(now)
    )


def terminate(identity: ProcessIdentity, *, grace: float) -> None:
    """End that very process: SIGTERM, and SIGKILL after `grace` seconds. A stranger is left alone.

    Raises DeadlineExceeded when even SIGKILL does not end it within 5 s.
    """
    terminate_all([identity], grace=grace)


def terminate_all(identities: Iterable[ProcessIdentity], *, grace: float) -> None:
    """End several processes at once, like `terminate`; the grace runs for all of them together."""
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
    return [each for each in identities if not wait_gone(each, max(0.0, until - time.monotonic()))]


def wait_gone(identity: ProcessIdentity, seconds: float) -> bool:
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


def _poll_gone(identity: ProcessIdentity, until: float) -> bool:
    """For systems without pidfd."""
    while is_running(identity):
        if time.monotonic() > until:
            return False
        _reap(identity.pid)
        time.sleep(0.02)
    return True


def _is_or_was(identity: ProcessIdentity) -> bool:
    """That very process still has its PID, be it that it is just ending."""
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
