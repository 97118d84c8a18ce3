"""The journal and the lock of a topology."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp.engine import journal
from k8s_ucp.engine.journal import Journal, held
from k8s_ucp.engine.pipeline import StepEvent, StepRun, StepState
from k8s_ucp.errors import UcpError


def event(*states: StepState, message: str = "") -> StepEvent:
    steps = [
        StepRun(f"s{n}", f"Step {n}", state, message=message) for n, state in enumerate(states)
    ]
    return StepEvent(steps[0], steps)


def test_it_tells_how_far_the_last_run_came(tmp_path: Path) -> None:
    path = tmp_path / "journal.json"
    assert journal.read(path) is None
    writing = Journal(path, "start")
    writing.note(event(StepState.RUNNING, StepState.WAITING))
    past = journal.read(path)
    assert past is not None
    assert (past.plan, past.outcome, past.unfinished) == ("start", "running", ["Step 0"])
    writing.note(event(StepState.DONE, StepState.FAILED))
    writing.end("failed")
    past = journal.read(path)
    assert past is not None
    assert (past.outcome, past.unfinished) == ("failed", ["Step 1"])
    assert path.stat().st_mode & 0o777 == 0o600


def test_it_is_written_for_changes_of_state_only(tmp_path: Path) -> None:
    path = tmp_path / "journal.json"
    writing = Journal(path, "start")
    writing.note(event(StepState.RUNNING))
    before = path.stat().st_ino
    writing.note(event(StepState.RUNNING, message="half way"))
    assert path.stat().st_ino == before
    writing.note(event(StepState.DONE))
    assert path.stat().st_ino != before


@given(st.one_of(st.binary(max_size=50), st.just(b"{}"), st.just(b"[]"), st.just(b'{"plan": 1}')))
def test_a_damaged_journal_is_no_journal(content: bytes) -> None:
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        assert journal.read(Path(file.name)) is None


def test_a_journal_that_can_not_be_written_stops_nobody(tmp_path: Path) -> None:
    writing = Journal(tmp_path / "absent" / "journal.json", "start")
    writing.note(event(StepState.RUNNING))
    writing.end("done")


HOLDER = """
import sys, pathlib
from k8s_ucp.engine.journal import held
with held(pathlib.Path(sys.argv[1]), "demo", "ucp start --yes"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_command_at_a_time(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with (
            pytest.raises(UcpError, match=rf"`ucp start --yes` \(PID {other.pid}\)"),
            held(lock, "demo", "ucp stop"),
        ):
            raise AssertionError("two held it")
        # Killed, not asked: the kernel gives the lock back.
        other.kill()
        other.wait()
        with held(lock, "demo", "ucp stop"):
            assert lock.read_text().endswith(" ucp stop\n")
    assert lock.stat().st_mode & 0o777 == 0o600


def test_the_journal_is_json(tmp_path: Path) -> None:
    path = tmp_path / "journal.json"
    Journal(path, "stop").end("done")
    assert json.loads(path.read_text())["outcome"] == "done"
