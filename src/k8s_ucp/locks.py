"""File locks between processes, which the kernel releases when their holder exits.

`locked` waits with a timeout. A holder may delete the lock file together with what it protects; a
process that waited for the deleted file notices and retries with a new one, so there are never two
holders.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from k8s_ucp.errors import DeadlineExceeded

PAUSE = 0.02
FOLDER_SECONDS = 60.0
"""Longer than any process holds a folder's lock while it writes to the folder."""


@contextlib.contextmanager
def locked(path: Path, what: str, *, timeout: float) -> Iterator[None]:
    """Hold the lock; its folder must exist. what: for the error, such as "the lock of cluster x".

    Raises DeadlineExceeded if another process holds it for `timeout` seconds.
    """
    until = time.monotonic() + timeout
    while (descriptor := _try(path)) is None:
        if time.monotonic() >= until:
            raise DeadlineExceeded(
                what,
                timeout,
                "held by another process",
                next="wait for the other command to finish, then run the command again",
            )
        time.sleep(PAUSE)
    try:
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked_now(path: Path) -> Iterator[bool]:
    """Hold the lock if it is free; yields whether it was."""
    descriptor = _try(path)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextlib.contextmanager
def folder_locked(folder: Path, *, timeout: float = FOLDER_SECONDS) -> Iterator[None]:
    """Hold the lock of a folder; without a lock on file systems that don't support them.

    Raises DeadlineExceeded if another process holds it for `timeout` seconds.
    """
    with folder_locked_within(folder, timeout) as holder:
        if holder is not None:
            who = f"process {holder}" if holder else "another process"
            raise DeadlineExceeded(
                f"the lock of {folder}",
                timeout,
                f"held by {who}",
                next="wait for the other command to finish, then run the command again",
            )
        yield


@contextlib.contextmanager
def folder_locked_within(
    folder: Path, seconds: float, report: Callable[[int | None], None] = lambda _: None
) -> Iterator[int | None]:
    """Wait for the lock of a folder; yields None if it is held, or the PID of the other holder.

    The PID is 0 if unknown. report: called once, with the PID or None, if the lock is not free.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield _taken_within(descriptor, seconds, report)
    finally:
        os.close(descriptor)


def _taken_within(
    descriptor: int, seconds: float, report: Callable[[int | None], None]
) -> int | None:
    until, waits = time.monotonic() + seconds, False
    try:
        while not take(descriptor):
            if not waits:
                report(holder(descriptor))
            waits = True
            if time.monotonic() >= until:
                return holder(descriptor) or 0
            time.sleep(PAUSE)
    except OSError:
        pass  # The file system does not support locks.
    return None


def holder(descriptor: int) -> int | None:
    """PID of the process that holds the lock of an open file or folder; None if unknown."""
    about = os.fstat(descriptor)
    inode = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
    with contextlib.suppress(OSError):
        for line in Path("/proc/locks").read_text("ascii", "replace").splitlines():
            words = line.split()
            # Waiting processes are listed with an arrow; PID 0 is a process of another container.
            if words[1:2] == ["FLOCK"] and words[5:6] == [inode] and words[4] != "0":
                return int(words[4])
    return None


def named(process: int | None) -> str:
    """The holder of a lock, for people."""
    return f"process {process}" if process else "another command"


def wait(descriptor: int) -> None:
    """Lock an open file or folder; waits without a timeout."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def take(descriptor: int) -> bool:
    """Lock it if it is free; returns whether it was."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def share(descriptor: int) -> None:
    """Lock it in shared mode; waits for an exclusive holder."""
    fcntl.flock(descriptor, fcntl.LOCK_SH)


def _try(path: Path) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if take(descriptor) and os.fstat(descriptor).st_ino == path.stat().st_ino:
            return descriptor
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None
