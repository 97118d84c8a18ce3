"""The door to file locks: between processes, and gone with their holder.

`locked` waits with a deadline. Its file may be removed by a holder who removes what it guards;
who waited on the removed file notices and starts over on a new one, so two holders never meet.
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
"""Longer than anybody holds a folder's lock while something is put into it."""


@contextlib.contextmanager
def locked(path: Path, what: str, *, timeout: float) -> Iterator[None]:
    """Hold the lock; its folder exists. what: for the error, such as "the lock of cluster x".

    Raises DeadlineExceeded when somebody else holds it for `timeout` seconds.
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
    """Hold the lock if it is free; tells whether it was."""
    descriptor = _try(path)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextlib.contextmanager
def folder_locked(folder: Path, *, timeout: float = FOLDER_SECONDS) -> Iterator[None]:
    """Hold the lock of a folder; where a file system knows no locks, without.

    Raises DeadlineExceeded when somebody else holds it for `timeout` seconds.
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
    """Wait for the lock of a folder: None once it is held, or whose it still is after so long.

    The number is that of the process, 0 where it is unknown. report: called once, with it or None,
    where there is something to wait for.
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
                report(_holder(descriptor))
            waits = True
            if time.monotonic() >= until:
                return _holder(descriptor) or 0
            time.sleep(PAUSE)
    except OSError:
        pass  # The file system knows no locks.
    return None


def _holder(descriptor: int) -> int | None:
    """The process that has the lock of an open file or folder; None where that can't be told."""
    about = os.fstat(descriptor)
    place = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
    with contextlib.suppress(OSError):
        for line in Path("/proc/locks").read_text("ascii", "replace").splitlines():
            words = line.split()
            # Those who wait follow with an arrow; 0 is a process of another container.
            if words[1:2] == ["FLOCK"] and words[5:6] == [place] and words[4] != "0":
                return int(words[4])
    return None


def wait(descriptor: int) -> None:
    """Hold the lock of an open file or folder, however long another process has it."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def take(descriptor: int) -> bool:
    """The same, if it is free; tells whether it was."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def share(descriptor: int) -> None:
    """Hold it beside others who share it; waits for one who has it alone."""
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
