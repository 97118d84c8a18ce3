"""Keeps the embedded control planes alive: restarts processes that exited and should run.

The decision is pure (`plan`), the effect thin. One poll over pidfds notices exits at once, so an
idle monitor costs next to nothing. Imports no client and no YAML.

A cluster should run from the end of `create` or `start` to the beginning of `stop` or `delete`;
while one of these works, the cluster's lock keeps the monitor away.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from k8s_ucp.clusters.embedded import kwokctl
from k8s_ucp.clusters.embedded.folder import COMPONENTS, ClusterFolder, clusters_in
from k8s_ucp.clusters.embedded.processes import find_component, find_down
from k8s_ucp.clusters.embedded.program_upgrade import repair
from k8s_ucp.errors import UcpError
from k8s_ucp.locks import locked_now

LOOK_SECONDS = 1.0
"""Interval of looking for clusters that were created, deleted or started."""
START_SECONDS = 30.0
WINDOW = 120.0
"""Older restarts don't count."""
FREE_RESTARTS = 3
LONGEST_PAUSE = 30.0
LOGS_SECONDS = 30.0
"""Interval of checking the disk space of logs."""
LOG_BYTES = 8 * 1024 * 1024
LOG_KEPT = 1024 * 1024
"""Of a log that uses more than LOG_BYTES, this many bytes at the end are kept."""

Process = tuple[str, str]
"""Cluster and component."""


def pause_before_restart(restarts: Sequence[float], now: float) -> float:
    """Seconds to wait before the next restart: none at first, then 1, 2, 4 … up to LONGEST_PAUSE.

    restarts: ascending times of earlier restarts; now: on the same clock.
    """
    recent = [at for at in restarts if now - at < WINDOW]
    if len(recent) < FREE_RESTARTS:
        return 0.0
    pause = min(LONGEST_PAUSE, 2.0 ** (len(recent) - FREE_RESTARTS))
    return max(0.0, recent[-1] + pause - now)


def plan(
    down: Mapping[str, Sequence[str]], history: Mapping[Process, Sequence[float]], now: float
) -> list[str]:
    """Which clusters to start now: those with a dead component whose restart need not wait.

    down: dead components of each cluster that should run; history: restarts of each component.
    """
    return [
        name
        for name, dead in sorted(down.items())
        if any(pause_before_restart(history.get((name, each), ()), now) == 0 for each in dead)
    ]


@dataclass
class ProcessMonitor:
    """Watches the clusters in one folder. Not thread-safe, except for `stop` of `run`."""

    folder: Path
    report: Callable[[str], None]
    """Called with one line about each exit, restart and failure."""
    clock: Callable[[], float] = time.monotonic
    _alive: dict[Process, tuple[int, int]] = field(default_factory=dict)
    """PID and pidfd of processes that were proven to be ours."""
    _history: dict[Process, list[float]] = field(default_factory=dict)
    _logs_seen: float = float("-inf")

    def run(self, stop: threading.Event) -> None:
        """Watch until `stop` is set; reacts to it within LOOK_SECONDS."""
        try:
            while not stop.is_set():
                self.tick(LOOK_SECONDS)
        finally:
            self.close()

    def tick(self, timeout: float = LOOK_SECONDS) -> list[str]:
        """Start what exited and may be started now, then wait up to `timeout` for an exit.

        Returns the names of the clusters that were started.
        """
        down = {name: self._down(name) for name in self._wanted()}
        self._drop_unwanted(down)
        self._bound_logs(down)
        started = [
            name
            for name in plan(down, self._history, self.clock())
            if self._restart(name, down[name])
        ]
        self._wait(timeout)
        return started

    def close(self) -> None:
        """Close the descriptors."""
        for key in list(self._alive):
            self._forget(key)

    def _wanted(self) -> list[str]:
        return [name for name in clusters_in(self.folder) if self._of(name).should_run()]

    def _down(self, name: str) -> list[str]:
        return [component for component in COMPONENTS if not self._is_alive(name, component)]

    def _is_alive(self, name: str, component: str) -> bool:
        key = (name, component)
        folder = self._of(name)
        pid = folder.read_pid(component)
        if key in self._alive:
            known, descriptor = self._alive[key]
            if known == pid and not _ended([descriptor]):
                return True
            self._forget(key)
        if pid is None:
            return False
        opened = _open(pid)
        if opened is None:
            return False
        # Verified while the pidfd is open, so the PID can't have been reused.
        if find_component(folder, component) is None or _ended([opened]):
            os.close(opened)
            return False
        self._alive[key] = (pid, opened)
        return True

    def _restart(self, name: str, dead: Sequence[str]) -> bool:
        folder = self._of(name)
        with locked_now(folder.lock) as free:
            # Whoever holds the lock starts, stops or deletes the cluster, or may have just done so.
            if not free or not folder.should_run() or not find_down(folder):
                return False
            for component in dead:
                times = self._history.setdefault((name, component), [])
                times.append(self.clock())
                del times[:-32]
            self.report(f"{name}: {', '.join(dead)} exited, restarting")
            try:
                repair(folder)
                kwokctl.start(folder, timeout=START_SECONDS)
            except (UcpError, OSError) as error:
                self.report(f"{name}: failed to restart: {error}")
                return False
        return True

    def _drop_unwanted(self, wanted: Iterable[str]) -> None:
        names = set(wanted)
        for key in [each for each in self._alive if each[0] not in names]:
            self._forget(key)
        for key in [each for each in self._history if each[0] not in names]:
            del self._history[key]

    def _bound_logs(self, names: Iterable[str]) -> None:
        if self.clock() - self._logs_seen < LOGS_SECONDS:
            return
        self._logs_seen = self.clock()
        for name in names:
            for component in COMPONENTS:
                free_old_lines(self._of(name).log(component))

    def _forget(self, key: Process) -> None:
        _, descriptor = self._alive.pop(key)
        os.close(descriptor)

    def _wait(self, timeout: float) -> None:
        _ended([descriptor for _, descriptor in self._alive.values()], timeout)

    def _of(self, name: str) -> ClusterFolder:
        return ClusterFolder(self.folder, name)


def free_old_lines(log: Path) -> None:
    """Free the disk space at the beginning of a log that has grown large.

    The process that writes the log can't be told to reopen it and continues at its offset, so
    truncation would only create a sparse file of the same length. Therefore a hole is punched and
    the length stays. Does nothing on file systems without this feature.
    """
    try:
        found = log.stat()
        end = (found.st_size - LOG_KEPT) // found.st_blksize * found.st_blksize
        if found.st_blocks * 512 <= LOG_BYTES or end <= 0:
            return
        with log.open("r+b") as stream:
            _punch_hole(stream.fileno(), end)
    except OSError:
        return


def _punch_hole(descriptor: int, end: int) -> None:
    """Punch a hole from the beginning of a file; Python has no function for it."""
    import ctypes

    keep_size, punch = 1, 2
    try:
        call = ctypes.CDLL(None, use_errno=True).fallocate64
    except AttributeError:
        return
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    call(descriptor, punch | keep_size, 0, end)


def _open(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _ended(descriptors: Sequence[int], timeout: float = 0.0) -> bool:
    """Whether one of the processes behind these pidfds exits within `timeout` seconds."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    with contextlib.suppress(InterruptedError):
        return bool(poll.poll(timeout * 1000))
    return False
