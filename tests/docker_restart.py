"""Restarts Docker for tests that share it with other workers, once all of these wait for it."""

from __future__ import annotations

import fcntl
import os
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMMAND = "UCP_TEST_RESTART_DOCKER"
"""Environment variable: command that restarts Docker, for machines that only these tests use."""
SECONDS = 1500


class DockerRestart:
    """The workers of one run. A restart waits until each has requested one or has finished.

    folder: shared by all workers, and used by this run only.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._me = os.environ.get("PYTEST_XDIST_WORKER", "alone")
        self._workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        folder.mkdir(exist_ok=True)

    def restart(self) -> None:
        """Request a restart and wait for it; it stops everything that runs in containers."""
        asking = self._folder / f"{self._me}.asking"
        asking.touch()
        deadline = time.monotonic() + SECONDS
        while asking.exists():
            with self._lock():
                if asking.exists() and self._all_wait():
                    self._restart()
            if time.monotonic() > deadline:
                asking.unlink(missing_ok=True)
                there = sorted(each.name for each in self._folder.iterdir())
                raise AssertionError(f"the other tests did not come to rest: {there}")
            time.sleep(0.5)

    def end(self) -> None:
        """Record that this worker runs no more tests."""
        (self._folder / f"{self._me}.ended").touch()

    def _all_wait(self) -> bool:
        marks = [each for each in self._folder.iterdir() if each.suffix in (".asking", ".ended")]
        return len({each.stem for each in marks}) == self._workers

    def _restart(self) -> None:
        subprocess.run(shlex.split(os.environ[COMMAND]), check=True, timeout=300)
        for each in self._folder.glob("*.asking"):
            each.unlink()

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with (self._folder / "lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield
