"""The watcher: restarts control-plane processes and supervisord. Runs under supervisor itself.

It restarts embedded control planes (started by kwokctl, not by supervisord), programs that
supervisord has given up, and supervisord itself: if that dies, the watcher terminates its orphans,
starts a new supervisord, which starts everything including a new watcher, and exits. While the
topology is being stopped it does nothing.

It runs as long as the topology does, so it imports little. It also checks the fence.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from k8s_ucp import __version__
from k8s_ucp.clusters.embedded.process_monitor import ProcessMonitor
from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.components.host.program import Program, log_line
from k8s_ucp.errors import UcpError
from k8s_ucp.fence.files import FenceFiles
from k8s_ucp.fence.guard import TICK_SECONDS as FENCE_SECONDS
from k8s_ucp.fence.guard import Guard
from k8s_ucp.workspace import StateFolder

if TYPE_CHECKING:
    from k8s_ucp.components.pods.writers import PodWriters

NAME = "watcher"
WRITERS = ("argocd-application-controller", "crossplane", "rollouts-*")
"""Programs that write to clouds and app clusters; the reconciler checks the fence itself."""
TICK_SECONDS = 1.0
ASK_SECONDS = 5.0
"""Interval of asking supervisord for its programs."""
SILENT_TIMES = 2
"""Consecutive times that supervisord must not respond before it is replaced."""
PAUSE_SECONDS = 5.0
"""After a failed replacement."""


class Next(Enum):
    """The watcher's next action."""

    NOTHING = "nothing"
    ASK = "ask supervisord for its programs"
    REPLACE = "replace supervisord"


@dataclass(frozen=True)
class WatchdogInput:
    """Input of a tick. Times are seconds of one clock."""

    stopping: bool
    orphaned: bool
    """The supervisord that started this watcher has exited."""
    silent: int
    """Consecutive times that supervisord did not respond."""
    since_asked: float
    since_failed: float = float("inf")
    """Since the last failed replacement."""


def decide(seen: WatchdogInput) -> Next:
    """Decide the next action. Pure."""
    if seen.stopping:
        return Next.NOTHING
    if seen.orphaned or seen.silent >= SILENT_TIMES:
        return Next.REPLACE if seen.since_failed >= PAUSE_SECONDS else Next.NOTHING
    return Next.ASK if seen.since_asked >= ASK_SECONDS else Next.NOTHING


@dataclass(frozen=True)
class Watcher:
    """The watcher as a component of a placement."""

    placement: HostPlacement

    def programs(self) -> list[Program]:
        argv = (
            *(sys.executable, "-P", "-m", "k8s_ucp.components.watcher"),
            *("--state", str(self.placement.state.root)),
            *("--runtime", str(self.placement.runtime)),
            # The reconciler stops without a guard, so a watcher of an older version must be
            # replaced.
            *("--fence", str(self.placement.state.fence)),
        )
        env = {"MALLOC_ARENA_MAX": "1", "UCP_VERSION": __version__}
        return [Program(NAME, argv, self.placement.state.root, env)]


class Watchdog:
    """Monitors one placement and its control planes."""

    def __init__(
        self,
        placement: HostPlacement,
        watch: ProcessMonitor,
        report: Callable[[str], None],
    ) -> None:
        self._placement = placement
        self._watch = watch
        self._report = report
        self._parent = os.getppid()
        self._silent = 0
        self._asked = time.monotonic()
        self._failed = float("-inf")

    def run(self) -> None:
        """Watch until there is a new supervisord, whose watcher takes over."""
        try:
            while not self.tick():
                pass
        finally:
            self._watch.close()

    def tick(self) -> bool:
        """One check, at most TICK_SECONDS long if all is well; True if this watcher must end."""
        now = time.monotonic()
        following = decide(
            WatchdogInput(
                stopping=self._placement.is_stopping(),
                orphaned=os.getppid() != self._parent,
                silent=self._silent,
                since_asked=now - self._asked,
                since_failed=now - self._failed,
            )
        )
        if following is Next.REPLACE and self._replace():
            return True
        if following is Next.ASK:
            self._check_supervisord()
        if self._placement.is_stopping():
            time.sleep(TICK_SECONDS)
        else:
            self._watch.tick(TICK_SECONDS)
        return False

    def _check_supervisord(self) -> None:
        self._asked = time.monotonic()
        try:
            if not self._placement.is_running():
                self._silent += 1
                # Ask again soon: a supervisord that has exited must be replaced within seconds.
                self._asked -= ASK_SECONDS
                return
            self._silent = 0
            for name in self._placement.restart_given_up():
                self._report(f"{name}: supervisord stopped retrying, restarting it")
        except UcpError as error:
            self._report(error.message)

    def _replace(self) -> bool:
        self._report("supervisord is not running, starting it")
        try:
            self._placement.revive(keep=[os.getpid()])
        except (UcpError, OSError) as error:
            self._report(f"failed to start supervisord: {error}")
            self._failed = time.monotonic()
            return False
        return True


class CoreWriters:
    """See Writers: processes of this machine, or pods of the core."""

    def __init__(self, placement: HostPlacement, files: FenceFiles) -> None:
        self._placement, self._files = placement, files
        self._pods: PodWriters | None = None

    def stop(self) -> list[str]:
        pods = self._in_pods()
        return [*self._placement.pause(WRITERS), *(pods.stop() if pods else ())]

    def resume(self) -> list[str]:
        pods = self._in_pods()
        return [*self._placement.resume(WRITERS), *(pods.resume() if pods else ())]

    def _in_pods(self) -> PodWriters | None:
        settings = self._files.settings()
        if settings is None or not Path(settings.kubeconfig or "-").is_file():
            return None  # No pods, or the core does not exist yet.
        if self._pods is None:
            # Imported only if needed, to keep the watcher small.
            from k8s_ucp.components.pods.writers import PodWriters
            from k8s_ucp.kube import Kube

            path = Path(settings.kubeconfig)
            self._pods = PodWriters(lambda: Kube.from_file(path), settings.adopted)
        return self._pods


def guard_fence(placement: HostPlacement, guard: Guard, report: Callable[[str], None]) -> None:
    """Run the guard forever, in its own thread, because a git remote may be slow."""
    reported = ""
    while True:
        try:
            # Stopping the topology ends all writers anyway.
            if not placement.is_stopping():
                guard.tick()
            reported = ""
        except Exception as error:  # noqa: BLE001 (if this thread ended, all writers would stop)
            known = isinstance(error, UcpError | OSError)
            message = str(error) if known else f"bug: {type(error).__name__}: {error}"
            if message != reported:
                report(f"the fence's guard: {message}")
            reported = message
        time.sleep(FENCE_SECONDS)


def main() -> None:
    """`python -m k8s_ucp.components.watcher --state FOLDER --runtime FOLDER --fence FOLDER`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="state folder of the topology")
    parser.add_argument(
        "--runtime", type=Path, required=True, help="folder of the topology's sockets"
    )
    parser.add_argument("--fence", type=Path, required=True, help="folder of FenceFiles")
    options = parser.parse_args()
    state = StateFolder(options.state)
    placement = HostPlacement(state, options.runtime)
    files = FenceFiles(options.fence)
    guard = Guard(files, CoreWriters(placement, files), log_line)
    guarding = Thread(
        target=guard_fence, args=(placement, guard, log_line), name="fence", daemon=True
    )
    guarding.start()
    Watchdog(placement, ProcessMonitor(state.clusters, log_line), log_line).run()


if __name__ == "__main__":
    main()
