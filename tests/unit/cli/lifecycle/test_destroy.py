"""Reports about a destroyed topology, and completion of an interrupted `ucp destroy`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from k8s_ucp.cli import main
from k8s_ucp.cli.lifecycle.destroy import _verified, was_destroyed
from k8s_ucp.cli.topology_selection import remember
from k8s_ucp.context import StartContext
from k8s_ucp.engine.journal import Journal
from k8s_ucp.engine.pipeline import StepEvent, StepRun, StepState
from k8s_ucp.inspect.teardown.abandoned import AbandonedRecord, AbandonedResource
from k8s_ucp.inspect.teardown.destruction import Destruction, note_destruction
from k8s_ucp.topology import default
from k8s_ucp.topology.text import topology_text
from k8s_ucp.workspace import Workspace

AT = "2026-01-01T00:00:00Z"
ENDED = Destruction(AT)
SEEN_EMPTY = Destruction(AT, ended=False, told={"read_back": 7, "snapshots": ["db-final"]})


@pytest.fixture
def context(tmp_path: Path) -> StartContext:
    workspace = Workspace.at(tmp_path)
    remember(workspace, "demo", topology_text(default("demo", ["stage"])))
    return StartContext(workspace=workspace, topology=default("demo", ["stage"]))


def run(context: StartContext, *words: str) -> int:
    return main.run(["--workspace", str(context.workspace.root), *words])


def note(context: StartContext, found: Destruction) -> None:
    note_destruction(context.state.destroyed, found)


def test_a_rerun_reports_the_destruction_and_changes_nothing(
    context: StartContext, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(context, "destroy", "--yes") == 1
    assert "not responding" in capsys.readouterr().err
    note(context, ENDED)
    given_up = AbandonedResource("VPC vpc-1 in us-east-1", "no route", AT)
    AbandonedRecord(context.state.abandoned).add([given_up])
    for words in (("--yes",), ("--yes", "--delete-data", "--abandon", "vpc-1"), ("--plan",)):
        assert run(context, "destroy", *words) == 0
        said = capsys.readouterr().err
        start = f"ucp start --workspace {context.workspace.root}"
        assert f"demo was destroyed at {AT}. `{start}` creates it again." in said
        assert "abandoned; may still exist and be billed" in said
    assert not context.state.journal.exists()


def test_kept_resources_are_reported_and_deleting_their_data_requires_the_core(
    context: StartContext, capsys: pytest.CaptureFixture[str]
) -> None:
    note(context, Destruction(AT, ["Postgres quotes-stage"]))
    assert run(context, "destroy", "--yes") == 0
    assert "what its core cluster manages: Postgres quotes-stage" in capsys.readouterr().err
    assert run(context, "destroy", "--yes", "--delete-data") == 1
    said = capsys.readouterr().err
    assert "next: ucp start" in said
    assert "then: ucp destroy" in said
    assert "--delete-data" in said


def test_status_reports_the_destruction_instead_of_an_unresponsive_core(
    context: StartContext, capsys: pytest.CaptureFixture[str]
) -> None:
    note(context, ENDED)
    assert run(context, "status") == 0
    shown = capsys.readouterr().out
    assert f"topology demo was destroyed at {AT}; next: ucp start" in shown
    assert "NOT READY" not in shown
    assert run(context, "status", "-o", "json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["topology"] == "demo"
    assert (data["destroyed"]["at"], data["destroyed"]["ended"]) == (AT, True)
    assert data["core"]["ready"] is False


def test_a_destroy_interrupted_after_the_clouds_were_verified_empty_is_completed(
    context: StartContext,
) -> None:
    assert not _verified(context)
    note(context, SEEN_EMPTY)
    assert was_destroyed(context) is None
    assert _verified(context)
    assert (context.teardown.read_back, context.teardown.snapshots) == (7, ["db-final"])
    # A stop in between writes its own journal.
    Journal(context.state.journal, "stop").end("done")
    assert _verified(context)


@pytest.mark.parametrize(
    ("state", "finishes"), [(StepState.WAITING, False), (StepState.RUNNING, True)]
)
def test_a_core_that_outlives_its_components_is_not_queried_again(
    context: StartContext, monkeypatch: pytest.MonkeyPatch, state: StepState, finishes: bool
) -> None:
    """An existing core survives, but the CRDs that the verification queried are deleted."""
    monkeypatch.setattr(StartContext, "core_responds", lambda _: True)
    note(context, SEEN_EMPTY)
    steps = [
        StepRun("verify-clouds-empty", "", StepState.DONE),
        StepRun("stop-components", "", state),
    ]
    journal = Journal(context.state.journal, "destroy")
    journal.note(StepEvent(steps[0], steps))
    journal.end("failed")
    assert _verified(context) is finishes


def test_a_destroy_interrupted_at_its_very_end_is_completed(context: StartContext) -> None:
    Journal(context.state.journal, "destroy").end("interrupted")
    note(context, ENDED)
    assert was_destroyed(context) is None
    assert _verified(context)
    Journal(context.state.journal, "destroy").end("done")
    assert was_destroyed(context) == ENDED


def test_a_damaged_destruction_record_is_ignored(context: StartContext) -> None:
    for text in ("", "[]", "{", '{"at": 1}', '{"at": 1, "kept": 2, "ended": 3, "told": 4}'):
        context.state.destroyed.write_text(text)
        assert was_destroyed(context) is None
        assert not _verified(context)
