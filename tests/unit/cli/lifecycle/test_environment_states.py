"""Losing an environment's data requires an explicit confirmation."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.cli import questions
from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.lifecycle.environment_states import confirm_loss, in_words
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import UsageError
from k8s_ucp.topology import default

LOST = PlannedChange("delete", "cluster demo-stage", "it is stopped", "everything on demo-stage")
KEPT = PlannedChange("keep", "Postgres quotes-stage", "its data stay")


def test_without_a_terminal_a_loss_requires_the_flag_yes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(questions, "can_ask", lambda: False)
    with pytest.raises(UsageError, match="needs a terminal") as refused:
        confirm_loss(Invocation(tmp_path), [KEPT, LOST], "Stop stage?", yes=False)
    assert "--yes" in str(refused.value.next)
    assert "lost for good: everything on demo-stage" in capsys.readouterr().err
    confirm_loss(Invocation(tmp_path), [KEPT], "Stop stage?", yes=False)
    confirm_loss(Invocation(tmp_path), [KEPT, LOST], "Stop stage?", yes=True)


def test_nothing_is_stopped_without_a_confirmation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "can_ask", lambda: True)
    monkeypatch.setattr(questions, "confirm", lambda *_, default: default)
    with pytest.raises(UsageError, match="nothing was changed"):
        confirm_loss(Invocation(tmp_path), [LOST], "Stop stage?", yes=False)


def test_several_environments_are_named_in_the_plural() -> None:
    environments = default().spec.environments
    assert in_words(environments) == "environments stage, prod"
    assert in_words(environments[:1]) == "environment stage"
