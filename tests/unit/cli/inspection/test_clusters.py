"""`ucp clusters forget` deregisters nothing before a person at the terminal agreed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from k8s_ucp.cli import main, questions
from k8s_ucp.cli.inspection import clusters
from k8s_ucp.errors import UsageError
from k8s_ucp.reconciler.registration import forced_deregistration


def test_a_cluster_is_not_deregistered_where_nobody_sees_the_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(questions, "can_ask", lambda: False)
    with pytest.raises(UsageError, match="needs a terminal") as refused:
        clusters._confirm("demo-stage")
    assert refused.value.next == "ucp clusters forget demo-stage --yes"


def test_a_cluster_is_not_deregistered_if_the_answer_is_no(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(questions, "can_ask", lambda: True)
    monkeypatch.setattr(questions, "confirm", lambda *_, default: default)
    with pytest.raises(UsageError, match="was not deregistered"):
        clusters._confirm("demo-stage")


def test_a_script_deregisters_no_cluster_without_the_flag(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clusters, "chosen_view", lambda _: SimpleNamespace(kube=None))
    known = {"demo-stage": SimpleNamespace(name="cluster-demo-stage")}
    monkeypatch.setattr(forced_deregistration, "registered", lambda _: known)
    assert main.run(["clusters", "forget", "demo-stage"]) == 2
    assert "ucp clusters forget demo-stage --yes" in capsys.readouterr().err


def test_nobody_is_asked_about_a_cluster_that_is_not_registered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clusters, "chosen_view", lambda _: SimpleNamespace(kube=None))
    monkeypatch.setattr(forced_deregistration, "registered", lambda _: {})
    assert main.run(["clusters", "forget", "demo-moon"]) == 2
    said = capsys.readouterr().err
    assert "cluster demo-moon is not registered by ucp; registered: none" in said
    assert "terminal" not in said
