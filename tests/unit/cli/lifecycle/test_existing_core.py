"""A kind core that is there already: what is done with it."""

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
    """Plans that were run."""
    run: list[str] = []
    monkeypatch.setattr(plan_runner, "run_plan", lambda plan, *_: run.append(plan.name))
    return run


@pytest.mark.parametrize("wanted", [None, *ExistingCoreChoice])
def test_what_is_not_there_is_made(
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
def test_a_core_that_is_there(
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


def test_nobody_to_ask_means_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stops: list[str]
) -> None:
    monkeypatch.setattr(questions, "can_ask", lambda: False)
    found = context("kind", ("demo-core",))
    assert decide(Invocation(tmp_path), found, None, ask=True)
    assert decide(Invocation(tmp_path), found, None, ask=False)
    assert stops == []
