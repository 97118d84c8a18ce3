"""Cores with a real guard: a workspace, supervisord, the watcher, and two writers.

The writers append to a file outside of both cores, the ledger: each line has the time, the epoch
and the writer. `reconciler` checks the fence before each line, as the real one does; `crossplane`
can't check it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from k8s_ucp.components.host.program import Program
from k8s_ucp.components.watcher import Watcher
from k8s_ucp.context import StartContext
from k8s_ucp.fence.files import PERIOD_VARIABLE
from k8s_ucp.preflight.fence import check_fence
from k8s_ucp.steps.shutdown.release_fence import release_fence
from k8s_ucp.steps.startup.fence import await_fence, take_fence
from k8s_ucp.topology import Environment
from k8s_ucp.topology.parts import Git
from k8s_ucp.workspace import Workspace
from tests.unit.gitops.topologies import demo

PERIOD = 5.0
"""Period of these tests: short, but long compared with the stalls of a loaded machine."""
ASKS, ASKS_NOT = "reconciler", "crossplane"
_WRITER = """
import os, sys, time
from pathlib import Path
from k8s_ucp.fence.files import FenceFiles, Gate
folder, ledger, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
files, gate = FenceFiles(folder), Gate(folder)
out = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
while True:
    time.sleep(0.1)
    epoch = files.settings().record.epoch
    if name == "crossplane" or gate.is_open():
        os.write(out, f"{time.time()} {epoch} {name}\\n".encode())
"""


@dataclass(frozen=True)
class Write:
    """A line of the ledger."""

    time: float
    epoch: int
    writer: str


def read_ledger(path: Path, writer: str = "") -> list[Write]:
    if not path.exists():
        return []
    lines = [each.split() for each in path.read_text().splitlines()]
    found = [Write(float(when), int(epoch), name) for when, epoch, name in lines]
    return [each for each in found if writer in ("", each.writer)]


def overlapping(writes: Sequence[Write]) -> list[Write]:
    """Writes with a lower epoch than an earlier write."""
    highest, found = 0, []
    for each in writes:
        if each.epoch < highest:
            found.append(each)
        highest = max(highest, each.epoch)
    return found


def make_bare(folder: Path) -> Path:
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    return folder


@dataclass
class GuardedCore:
    """folder: its workspace. remote: the core repository. elsewhere: others can write, too."""

    folder: Path
    remote: Path
    ledger: Path
    elsewhere: bool = True

    def context(self, *, takeover: bool = False) -> StartContext:
        url = self.remote.as_uri()
        cluster = {"provider": "existing", "context": "theirs"} if self.elsewhere else {}
        context = StartContext(
            Workspace.at(self.folder),
            demo(
                git=Git(provider="url", core=url, apps=url),
                environments=(Environment.model_validate({"name": "stage", "cluster": cluster}),),
            ),
            takeover=takeover,
        )
        context.state.make()
        context.workspace.settle_identity()
        return context

    def claim(self, *, takeover: bool = False) -> StartContext:
        """Claim the fence, as the first step of a start. Raises FenceHeld."""
        context = self.context(takeover=takeover)
        check_fence(context)
        take_fence.run(context, lambda _: None)
        return context

    def start(self, *, takeover: bool = False) -> None:
        context = self.claim(takeover=takeover)
        await_fence.run(context, lambda _: None)
        context.settle_runtime()
        context.placement.ensure_running()
        writers = [self._writer(context, name) for name in (ASKS, ASKS_NOT)]
        context.placement.start([*writers, *Watcher(context.placement).programs()])

    def _writer(self, context: StartContext, name: str) -> Program:
        argv = (sys.executable, "-c", _WRITER, str(context.state.fence), str(self.ledger), name)
        return Program(name, argv, context.state.root)

    def stop(self) -> None:
        context = self.context()
        context.placement.stop_all()
        release_fence.run(context, lambda _: None)

    def kill(self) -> None:
        """Kill all processes at the end of a test."""
        with contextlib.suppress(Exception):
            self.signal(signal.SIGCONT)
        self.context().placement.stop_all()

    def signal(self, number: int) -> None:
        """Send a signal to supervisord and to all processes that it runs."""
        supervisor = self.context().placement.supervisor()
        assert supervisor
        root = psutil.Process(supervisor.pid)
        # The parent first, because it would restart what ends.
        for each in (root, *root.children(recursive=True)):
            os.kill(each.pid, number)

    def runs(self, name: str) -> bool:
        state = self.context().placement.states().get(name)
        return state is not None and state.running

    def says(self) -> str:
        permit = self.context().fence.permit()
        return str(permit.verdict) if permit else ""


@contextlib.contextmanager
def guarded(*cores: GuardedCore) -> Iterator[None]:
    """Kill all processes of the cores at the end."""
    os.environ[PERIOD_VARIABLE] = str(PERIOD)
    try:
        yield
    finally:
        del os.environ[PERIOD_VARIABLE]
        for each in cores:
            each.kill()


def wait_for(what: str, met: Callable[[], object], seconds: float = 60.0) -> float:
    """Wait for a condition; return the time at which it was met, in seconds since 1970."""
    until = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < until, f"{what}: not within {seconds} s"
        time.sleep(0.05)
    return time.time()
