"""What an edit of ucp.yaml says after the same command was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.console import Console
from k8s_ucp.cli.editing.topology_edit import pointing_to_start
from k8s_ucp.cli.plan_runner import edit_journal
from k8s_ucp.errors import UsageError
from k8s_ucp.topology import default
from k8s_ucp.workspace import Workspace


@pytest.mark.parametrize("again", [True, False])
def test_a_killed_edit_is_published_by_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    state = Workspace.at(tmp_path).state("demo")
    monkeypatch.setattr("sys.argv", ["ucp", "env", "add", "eu"])
    journal = edit_journal(state, Console())
    journal.begin_part()
    journal.end("interrupted")
    monkeypatch.setattr("sys.argv", ["ucp", "env", "add", "eu" if again else "us"])
    with (
        pytest.raises(UsageError, match="already exists") as refused,
        pointing_to_start(Invocation(tmp_path), default()),
    ):
        raise UsageError("'eu' already exists", next="choose another name")
    assert ("`ucp env add eu` of" in refused.value.message) is again
    assert str(refused.value.next).startswith("ucp start") is again
