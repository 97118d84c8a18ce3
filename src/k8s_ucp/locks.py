"""The door to file locks: between processes, and gone with their holder.

`locked` waits with a deadline. Its file may be removed by a holder who removes what it guards;
who waited on the removed file notices and starts over on a new one, so two holders never meet.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from k8s_ucp.errors import DeadlineExceeded

PAUSE = 0.02


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
def folder_locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, however long another process has it.

    Where a file system knows no locks, without.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            wait(descriptor)
        yield
    finally:
        os.close(descriptor)


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
