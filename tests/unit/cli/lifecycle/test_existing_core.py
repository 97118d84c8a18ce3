"""Handling of a kind core cluster that already exists."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from k8s_ucp.cli import plan_runner, questions
from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.lifecycle import existing_core
from k8s_ucp.cli.lifecycle.existing_core import ExistingCoreChoice, decide
from k8s_ucp.topology import default
from k8s_ucp.topology.parts import CoreCluster


def context(provider: str, clusters: tuple[str, ...]) -> Any:
    topology = default(core=CoreCluster.model_validate({"provider": provider}))
    return SimpleNamespace(
        topology=topology, provider=SimpleNamespace(names=lambda: list(clusters))
    )


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the plans that were run."""
    run: list[str] = []
    monkeypatch.setattr(plan_runner, "run_plan", lambda plan, *_: run.append(plan.name))
    return run


@pytest.mark.parametrize("wanted", [None, *ExistingCoreChoice])
def test_a_missing_core_is_created(
    tmp_path: Path, stops: list[str], wanted: ExistingCoreChoice | None
) -> None:
    for found in (context("embedded", ("demo-core",)), context("kind", ("demo-stage",))):
        goes_on = decide(Invocation(tmp_path), found, wanted, ask=True)
        assert goes_on is (wanted is not ExistingCoreChoice.stop)
    assert stops == []


@pytest.mark.parametrize(
    ("answer", "goes_on", "stopped"),
    [("use", True, []), ("recreate", True, ["stop"]), ("stop", False, ["stop"])],
)
@pytest.mark.parametrize("by_flag", [True, False])
def test_an_existing_core_is_used_recreated_or_stopped_as_chosen(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stops: list[str],
    answer: str,
    goes_on: bool,
    stopped: list[str],
    by_flag: bool,
) -> None:
    monkeypatch.setattr(questions, "can_ask", lambda: True)
    monkeypatch.setattr(questions, "ask_existing", lambda _: answer)
    wanted = existing_core.ExistingCoreChoice(answer) if by_flag else None
    found = context("kind", ("demo-core",))
    assert decide(Invocation(tmp_path), found, wanted, ask=True) is goes_on
    assert stops == stopped


def test_an_existing_core_is_used_if_nobody_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stops: list[str]
) -> None:
    monkeypatch.setattr(questions, "can_ask", lambda: False)
    found = context("kind", ("demo-core",))
    assert decide(Invocation(tmp_path), found, None, ask=True)
    assert decide(Invocation(tmp_path), found, None, ask=False)
    assert stops == []
