"""Runs of plans: the log that they leave for people."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_ucp.cli.console import Console
from k8s_ucp.cli.plan_runner import alone, end_like_ctrl_c, run_plan
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Plan, Report, RunInterrupted, Step, Task
from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import Workspace
from tests.e2e.world import until
from tests.unit.gitops.topologies import demo


def render(_: StartContext, __: Report) -> None:
    token = "https://ci:s3cret@git.example.org/apps.git"
    raise UcpError(f"failed to push\nto {token}\nit is full", next="ucp start")


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """Restore the handlers of the termination signals, which a run replaces."""
    taken = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in taken.items():
        signal.signal(number, handler)


def test_signal_that_nohup_ignores_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    end_like_ctrl_c()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        signal.raise_signal(signal.SIGTERM)


def test_log_has_every_line_of_a_failure(tmp_path: Path) -> None:
    context = StartContext(Workspace.at(tmp_path), demo())
    with pytest.raises(UcpError):
        run_plan(
            Plan("start", (Task(Step("render", "Render the repositories", render)),)),
            context,
            Console(quiet=True),
        )
    log = (context.state.logs / "ucp.log").read_text()
    assert "start render: failed failed to push (" in log
    said = log[log.index("start failed: Render the repositories: failed to push") :]
    assert "it is full" in said
    assert "next: ucp start" in said
    assert "s3cret" not in log


def test_another_command_that_is_running_is_named_before_a_check_fails(tmp_path: Path) -> None:
    """Such as a destruction beside a start, whose core does not respond yet."""

    def check(context: StartContext) -> None:
        raise UcpError("the core is not responding", next="ucp destroy --abandon demo-core")

    context = StartContext(Workspace.at(tmp_path), demo())
    plan = Plan("destroy", (), checks=(check,))
    with alone(context.workspace, "demo"), pytest.raises(UcpError, match="another command"):
        run_plan(plan, context, Console())
    with pytest.raises(UcpError, match="the core is not responding"):
        run_plan(plan, context, Console())


INTERRUPTED_BY_THE_TERMINAL = """
import os, sys
from pathlib import Path
from k8s_ucp.cli.console import Console
from k8s_ucp.cli.plan_runner import run_plan
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Plan, RunInterrupted, Step, Task
from k8s_ucp.workspace import Workspace
from tests.e2e.world import until
from tests.unit.gitops.topologies import demo

os.open(os.ttyname(0), os.O_RDWR)  # It becomes the terminal of this session.

def wait(context, report):
    Path("waits").touch()
    context.cancel.pause(60)

try:
    plan = Plan("start", (Task(Step("wait", "Wait", wait)),))
    run_plan(plan, StartContext(Workspace.at(Path.cwd()), demo()), Console())
except RunInterrupted as error:
    sys.exit(error.exit_code)
"""


@pytest.mark.parametrize("terminal", ["xterm", "dumb"])
def test_a_closed_terminal_interrupts_a_plan_like_ctrl_c(tmp_path: Path, terminal: str) -> None:
    """Writing to the terminal fails from then on, before the steps have ended."""
    ours, theirs = os.openpty()
    running = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED_BY_THE_TERMINAL],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": terminal, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        until("the step waits", lambda: (tmp_path / "waits").exists())
    finally:
        os.close(ours)
    assert running.wait(60) == RunInterrupted.exit_code
    journal = (tmp_path / ".ucp/demo/journal.json").read_text()
    assert json.loads(journal)["outcome"] == "interrupted"


def test_a_plan_runs_on_a_terminal_of_another_session() -> None:
    """Such as under `su -c` and `setsid`: the terminal has no foreground group to ask for."""
    ours, theirs = os.openpty()
    steps = "from k8s_ucp.cli.console import Console\nwith Console().steps(): pass\n"
    try:
        ended = subprocess.run(
            [sys.executable, "-c", steps],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm"},
            start_new_session=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 0
    finally:
        os.close(ours)
        os.close(theirs)
