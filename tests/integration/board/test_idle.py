"""`ucp board` without a connected browser: a process that uses no CPU and loses no session."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from k8s_ucp.board.idle import WAITING
from tests.integration.board.sources import Client

IMPATIENT = """
from k8s_ucp.cli import board, main
board.IDLE_SECONDS = 0.5
main.main()
"""
"""`ucp` whose board rests soon."""
SECONDS = 60.0
"""Timeout for a process to start on a machine that may be busy."""
LARGEST = 40 * 1024
"""In KiB."""
LOOK = 3.0
"""Seconds for which no processor time may be used."""


@dataclass
class RunningBoard:
    process: subprocess.Popen[str]

    @property
    def files(self) -> Path:
        return Path(f"/proc/{self.process.pid}")

    def url(self) -> str:
        """The next URL that it prints."""
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], SECONDS)[0]
        return self.process.stdout.readline().strip()

    def rests(self) -> bool:
        return str(WAITING) in (self.files / "cmdline").read_text().split("\0")

    def until_it_rests(self) -> None:
        end = time.monotonic() + SECONDS
        while not self.rests():
            assert self.process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)

    def until_it_sleeps(self) -> None:
        """Wait until the waiting process has started and sleeps."""
        self.until_it_rests()
        before = -1
        while before != (before := self.ticks()) or self.state() != "S":
            time.sleep(0.3)

    def memory(self) -> int:
        """KiB, with shared pages divided among their processes."""
        rows = (self.files / "smaps_rollup").read_text().splitlines()[1:]
        return next(int(row.split()[1]) for row in rows if row.startswith("Pss:"))

    def ticks(self) -> int:
        """Processor time used so far."""
        return sum(int(each) for each in self._stat()[11:13])

    def state(self) -> str:
        return self._stat()[0]

    def _stat(self) -> list[str]:
        return (self.files / "stat").read_text().rpartition(")")[2].split()


@contextlib.contextmanager
def running(folder: Path, *options: str) -> Iterator[RunningBoard]:
    """Run the board of a topology that was started once, and doesn't run now."""
    (folder / "gitops" / "demo" / "core").mkdir(parents=True, exist_ok=True)
    (folder / "home").mkdir(exist_ok=True)
    command = [sys.executable, "-c", IMPATIENT, "board", "--no-browser", *options]
    env = {**os.environ, "HOME": str(folder / "home")}
    with subprocess.Popen(
        command, cwd=folder, env=env, text=True, bufsize=1, stdout=subprocess.PIPE
    ) as process:
        try:
            yield RunningBoard(process)
        finally:
            process.kill()


def test_idle_board_uses_no_cpu_and_little_memory(tmp_path: Path) -> None:
    with running(tmp_path) as board:
        token = urlsplit(board.url()).query.removeprefix("token=")
        board.until_it_sleeps()
        assert board.memory() <= LARGEST
        before = board.ticks()
        time.sleep(LOOK)
        assert board.ticks() == before
        for name in ("cmdline", "environ"):
            assert token not in (board.files / name).read_text()


def test_board_keeps_its_sessions_through_a_rest(tmp_path: Path) -> None:
    with running(tmp_path, "--write") as board:
        url = board.url()
        client = Client(urlsplit(url).port or 0)
        board.until_it_rests()
        assert client.enter(url).code == 200
        following = board.url()
        with client.stream() as events:
            assert next(events)[0] == "snapshot"
            assert not board.rests()
        board.until_it_rests()
        # The page that sends the change was loaded before the rest.
        assert b"the kind of the request" in client.change({"kind": "delete"}).body
        assert Client(client.port).ask(f"{client.base}/").code == 403
        other = Client(client.port)
        board.until_it_rests()
        assert other.ask(f"/?{urlsplit(url).query}").code == 403
        assert other.enter(following).code == 200


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM)])
def test_resting_board_ends_on_a_signal_as_a_running_one_does(
    tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    with running(tmp_path) as board:
        board.url()
        board.until_it_sleeps()
        board.process.send_signal(sent)
        assert board.process.wait(SECONDS) == code


def test_board_exits_with_an_error_if_its_topology_was_deleted(tmp_path: Path) -> None:
    with running(tmp_path) as board:
        url = urlsplit(board.url())
        board.until_it_rests()
        (tmp_path / "gitops" / "demo" / "core").rmdir()
        with contextlib.suppress(OSError):
            Client(url.port or 0).ask("/")
        assert board.process.wait(SECONDS) == 1
