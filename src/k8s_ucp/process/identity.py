"""Recognising a process, and ending that one and no other.

A PID alone proves nothing (it may have been given to a stranger since), so a process is known by
PID, executable and start time.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psutil

from k8s_ucp.errors import DeadlineExceeded


@dataclass(frozen=True)
class Identity:
    """A process that can be recognised after a restart of ours, or of the machine."""

    pid: int
    executable: str
    started_at: float
    """Seconds since the epoch, as the kernel tells it."""


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
