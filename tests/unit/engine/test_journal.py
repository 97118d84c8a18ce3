"""The journal and the lock of a topology."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp import locks
from k8s_ucp.engine import journal
from k8s_ucp.engine.journal import Journal, UnreadableJournal, held
from k8s_ucp.engine.pipeline import RunInterrupted, StepEvent, StepRun, StepState
from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import StateFolder


def event(*states: StepState, message: str = "") -> StepEvent:
    steps = [
        StepRun(f"s{n}", f"Step {n}", state, message=message) for n, state in enumerate(states)
    ]
    return StepEvent(steps[0], steps)


def test_the_journal_records_the_progress_of_the_last_run(tmp_path: Path) -> None:
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


def test_the_journal_is_written_only_when_a_state_changes(tmp_path: Path) -> None:
    path = tmp_path / "journal.json"
    writing = Journal(path, "start")
    writing.note(event(StepState.RUNNING))
    before = path.stat().st_ino
    writing.note(event(StepState.RUNNING, message="half way"))
    assert path.stat().st_ino == before
    writing.note(event(StepState.DONE))
    assert path.stat().st_ino != before


@given(st.one_of(st.binary(max_size=50), st.just(b"{}"), st.just(b"[]"), st.just(b'{"plan": 1}')))
def test_a_corrupt_journal_is_reported(content: bytes) -> None:
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        with pytest.raises(UnreadableJournal, match="is corrupt"):
            journal.read(Path(file.name))


def test_a_journal_that_another_user_wrote_is_not_called_corrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as root, where this machine doesn't know the owner of the workspace."""

    def denied(*_: object) -> str:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "read_text", denied)
    path = tmp_path / "journal.json"
    with pytest.raises(UnreadableJournal) as caught:
        journal.read(path)
    assert caught.value.message == f"failed to read the journal {path}: Permission denied"


def test_a_truncated_journal_is_reported_and_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "journal.json"
    Journal(path, "start").note(event(StepState.RUNNING, StepState.WAITING))
    whole = path.read_bytes()
    for length in range(len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(UnreadableJournal):
            journal.read(path)
    assert "is kept as journal.json.unreadable" in journal.set_aside(path)
    assert not path.exists()
    assert path.with_name("journal.json.unreadable").read_bytes() == whole[: len(whole) - 2]
    assert journal.set_aside(path) == ""


def test_a_journal_of_a_newer_version_is_refused_and_of_an_older_one_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.json"
    Journal(path, "start").end("failed")
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"version": journal.VERSION + 1}))
    with pytest.raises(UnreadableJournal, match="a newer ucp"):
        journal.read(path)
    old = {name: content[name] for name in ("plan", "outcome", "began", "pid", "steps")}
    path.write_text(json.dumps(old))
    past = journal.read(path)
    assert past is not None
    assert (past.state, past.next) == ("failed", "ucp start")
    # A failed edit left nothing to resume, and any start publishes an interrupted one.
    path.write_text(json.dumps(old | {"plan": "publish"}))
    past = journal.read(path)
    assert past is not None
    assert past.outcome == "done"


def test_an_interrupted_wait_names_the_command_that_continues(tmp_path: Path) -> None:
    run = Journal(tmp_path / "journal.json", "environment stage", next="ucp recreate --env stage")
    with pytest.raises(RunInterrupted) as found, run.until_done(), run.step("Wait", "wait"):
        raise KeyboardInterrupt
    assert found.value.next == "ucp recreate --env stage (it continues)"
    past = journal.read(tmp_path / "journal.json")
    assert past is not None
    assert past.state == "interrupted"
    # Before the first step nothing was done that could be continued.
    with pytest.raises(KeyboardInterrupt), Journal(tmp_path / "other.json", "x").until_done():
        raise KeyboardInterrupt


def test_a_step_that_is_in_no_plan_is_shown_with_its_progress() -> None:
    seen = []

    def show(event: StepEvent) -> None:
        seen.append((event.step.title, event.step.state, event.step.message))

    with Journal(None, "app web").step("Delete", "delete", show) as report:
        report("web-stage")
    assert seen == [
        ("Delete", StepState.RUNNING, ""),
        ("Delete", StepState.RUNNING, "web-stage"),
        ("Delete", StepState.DONE, ""),
    ]


def test_a_run_whose_process_no_longer_exists_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "journal.json"
    Journal(path, "start").note(event(StepState.RUNNING))
    past = journal.read(path)
    assert past is not None
    assert past.state == "running"
    content = json.loads(path.read_text())
    for changed in ({"start": "another boot:1"}, {"pid": 2**22 + 1}):
        path.write_text(json.dumps(content | changed))
        past = journal.read(path)
        assert past is not None
        assert past.state == "killed"
        assert "was killed (0 of 1 steps done, in: Step 0)" in str(past)


def test_a_run_that_ends_while_its_journal_is_read_was_not_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StateFolder(tmp_path)
    writing = Journal(state.journal, "start")
    writing.note(event(StepState.RUNNING))

    def ended(pid: int) -> None:
        writing.end("done")

    monkeypatch.setattr("k8s_ucp.process.identify", ended)
    assert journal.unfinished(state) == ([], [])

    writing.end("running")
    monkeypatch.undo()
    ((running,), _) = journal.unfinished(state)
    assert running.state == "running"
    monkeypatch.setattr("k8s_ucp.process.identify", ended)
    assert "is running" in str(running)


def test_a_command_of_several_parts_is_unfinished_until_all_succeed(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    path = state.unfinished / "app-web.json"

    def begun() -> Journal:
        return Journal(path, "app web", "ucp app remove web")

    def remove(writing: Journal, *, fails: bool) -> None:
        with writing.until_done():
            writing.keep(kinds=["widgets.example.org"])
            writing.begin_part()
            writing.note(event(StepState.DONE))
            with writing.step("Delete the Applications", "delete"):
                if fails:
                    raise UcpError("one stays")

    with pytest.raises(UcpError):
        remove(begun(), fails=True)
    ((left,), problems) = journal.unfinished(state)
    assert problems == []
    assert (left.next, left.state) == ("ucp app remove web", "failed")
    assert left.unfinished == ["Delete the Applications"]
    assert [each["id"] for each in left.steps] == ["s0", "delete"]
    again = begun()
    assert again.resumed == left
    assert again.data == {"kinds": ["widgets.example.org"]}
    remove(again, fails=False)
    assert journal.unfinished(state) == ([], [])


def test_a_command_that_changed_nothing_leaves_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "unfinished" / "app-web.json"
    refused = Journal(path, "app web")
    with pytest.raises(UcpError), refused.until_done():
        raise UcpError("no such app")
    taken_back = Journal(path, "app web")
    with pytest.raises(UcpError), taken_back.until_done():
        taken_back.begin_part()
        taken_back.note(event(StepState.FAILED))
        taken_back.drop_part()
        raise UcpError("the push was refused")
    assert not path.exists()
    Journal(None, "app web").end("failed")


def test_a_journal_that_cannot_be_written_does_not_fail_the_command(tmp_path: Path) -> None:
    folder = tmp_path / "a file"
    folder.write_text("", "utf-8")
    writing = Journal(folder / "journal.json", "start")
    writing.note(event(StepState.RUNNING))
    writing.end("done")
    assert folder.is_file()


HOLDER = """
import sys, pathlib
from k8s_ucp.engine.journal import held
with held(pathlib.Path(sys.argv[1]), "demo", "ucp start --yes"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_only_one_command_can_hold_the_lock_of_a_topology(tmp_path: Path) -> None:
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
        # Killed instead of terminated: the kernel releases the lock.
        other.kill()
        other.wait()
        with held(lock, "demo", "ucp stop"):
            assert lock.read_text().endswith(" ucp stop\n")
    assert lock.stat().st_mode & 0o777 == 0o600


def test_a_holder_that_has_not_written_its_command_yet_is_named_by_its_process(
    tmp_path: Path,
) -> None:
    lock = tmp_path / "lock"
    for words in ("", "1 ucp destroy\n"):
        lock.write_text(words)
        with lock.open() as stream:
            assert locks.take(stream.fileno())
            with (
                pytest.raises(UcpError, match=rf"`ucp` \(PID {os.getpid()}\)"),
                held(lock, "demo", "ucp stop"),
            ):
                raise AssertionError("two held it")


FULL = """
import resource, sys, pathlib
from k8s_ucp.engine.journal import held
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
with held(pathlib.Path(sys.argv[1]), "demo", "ucp stop"):
    print("held", flush=True)
"""


def test_the_lock_of_a_topology_can_be_held_on_a_full_disk(tmp_path: Path) -> None:
    """Otherwise `ucp stop` could not end what fills it."""
    lock = tmp_path / "lock"
    lock.write_text("123 ucp start\n")
    run = subprocess.run(
        [sys.executable, "-c", FULL, lock], stdout=subprocess.PIPE, text=True, check=True
    )
    assert run.stdout == "held\n"


def test_the_journal_is_json(tmp_path: Path) -> None:
    path = tmp_path / "journal.json"
    Journal(path, "stop").end("done")
    assert json.loads(path.read_text())["outcome"] == "done"
