"""Decisions and refusals of `ucp stop --env` and `ucp recreate`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from k8s_ucp import names
from k8s_ucp.cli.editing.deletion import refuse_protected
from k8s_ucp.cli.lifecycle import recreate
from k8s_ucp.cli.lifecycle.environment_states import chosen_environments
from k8s_ucp.cli.lifecycle.recreate import Remaining, failed_environments, next_of
from k8s_ucp.cli.main import run
from k8s_ucp.errors import UsageError
from k8s_ucp.fence.files import FenceFiles, FencePermit
from k8s_ucp.fence.record import FenceHolder, FenceRecord
from k8s_ucp.fence.rules import FenceVerdict
from k8s_ucp.kube import Object
from k8s_ucp.topology import default
from k8s_ucp.topology.text import topology_text
from k8s_ucp.workspace import Workspace


@pytest.mark.parametrize(
    ("state", "coming_back", "wanted"),
    [
        ("running", False, Remaining.tear_down),
        ("stopped", False, Remaining.bring_back),
        # Interrupted between the record and the commit.
        ("stopped", True, Remaining.bring_back),
        ("running", True, Remaining.wait),
    ],
)
def test_a_rerun_continues_where_the_last_run_was_interrupted(
    state: str, coming_back: bool, wanted: Remaining
) -> None:
    assert next_of(state, coming_back=coming_back) is wanted


def test_environments_are_selected_once_and_in_topology_order() -> None:
    chosen = chosen_environments(default(), ["prod", "stage", "prod"])
    assert [each.name for each in chosen] == ["stage", "prod"]


def test_a_protected_environment_is_refused() -> None:
    (stage, *_) = default().spec.environments
    protected = stage.model_copy(update={"deletion_protection": True})
    with pytest.raises(UsageError, match="stage is protected from deletion"):
        refuse_protected([stage, protected], Path("ucp.yaml"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["stop", "--env", "moon", "--yes"], "unknown environment 'moon'; available: stage"),
        (
            ["recreate", "--env", "moon", "--yes"],
            "unknown environment 'moon'; available: stage",
        ),
        (["stop", "--env", "stage", "--abandon", "demo-core"], "mutually exclusive"),
        (["recreate", "--env", "stage", "--yes"], "is not responding; nothing was changed"),
        (["recreate"], "to recreate demo-core from does not exist"),
    ],
)
def test_invalid_requests_are_refused_before_the_first_change(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ucp.yaml"
    file.write_text(topology_text(default()))
    assert run(["--workspace", str(tmp_path), *words]) in (1, 2)
    assert said in " ".join(capsys.readouterr().err.split())
    assert file.read_text() == topology_text(default())
    assert [each.name for each in tmp_path.iterdir()] == ["ucp.yaml"]


@pytest.mark.parametrize(
    "words",
    [
        ["stop", "--env", "stage"],
        ["recreate", "--env", "stage"],
        ["env", "remove", "stage"],
        ["app", "remove", "echo"],
        ["team", "remove", "shop"],
    ],
)
def test_a_core_that_lost_the_fence_tears_nothing_down(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ucp.yaml"
    text = topology_text(default("demo", ["stage"])) + "  teams: [{name: shop}]\n"
    file.write_text(text)
    Workspace.at(tmp_path).gitops("demo").core.mkdir(parents=True)
    there = FenceHolder("2", "laptop", "/their place", "embedded")
    record = FenceRecord(4, there, 0.0)
    state = Workspace.at(tmp_path).state("demo")
    state.make()
    FenceFiles(state.fence).write_permit(
        FencePermit(FenceVerdict.LOST, 0.0, "boot", record, confirmed=True)
    )
    assert run(["--workspace", str(tmp_path), *words]) == 1, "and nobody is asked"
    said = capsys.readouterr().err
    assert "another core acts for this topology" in said
    assert "nothing was changed" in said
    assert f"on machine laptop: ucp {' '.join(words)} --workspace '/their place'; here" in said
    assert f"`ucp stop --workspace {tmp_path}` stops what is running" in said
    assert file.read_text() == text


@pytest.mark.parametrize(
    "words", [["env", "remove", "stage"], ["app", "remove", "echo"], ["team", "remove", "shop"]]
)
def test_removing_anything_that_was_started_requires_a_confirmation(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ucp.yaml"
    text = topology_text(default("demo", ["stage"])) + "  teams: [{name: shop}]\n"
    file.write_text(text)
    Workspace.at(tmp_path).gitops("demo").core.mkdir(parents=True)
    at = ["--workspace", str(tmp_path)]
    assert run([*at, *words]) == 2
    said = capsys.readouterr().err
    assert "the confirmation needs a terminal" in said
    assert "add --plan to see what is removed and lost for good; then --yes" in said
    assert file.read_text() == text
    assert not Workspace.at(tmp_path).state("demo").root.exists(), "no run that was interrupted"
    assert run([*at, words[0], "remove", "moon"]) in (1, 2)
    assert "confirmation" not in capsys.readouterr().err, "it does not exist"


def test_an_unresponsive_core_is_not_mistaken_for_one_without_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise the environment would be reported as recreated with its old cluster."""
    file = tmp_path / "ucp.yaml"
    file.write_text(topology_text(default("demo", ["stage"])))
    monkeypatch.setattr(recreate, "open_core", lambda *_: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(recreate, "preview_stop", lambda *_: [])
    monkeypatch.setattr(recreate, "deletions_of", lambda *_: {})
    assert run(["--workspace", str(tmp_path), "recreate", "--env", "stage", "--yes"]) == 1
    said = capsys.readouterr().err
    assert "the core cluster demo-core is not responding; nothing was changed" in said
    assert f"ucp start --workspace {tmp_path}" in said
    assert file.read_text() == topology_text(default("demo", ["stage"]))


def test_a_cluster_that_fails_to_start_is_not_waited_for() -> None:
    def cluster(environment: str, status: str, reason: str) -> Object:
        condition = {"type": names.READY, "status": status, "reason": reason, "message": "x"}
        labels = {names.ENVIRONMENT: environment}
        return {"metadata": {"labels": labels}, "status": {"conditions": [condition]}}

    found = [
        cluster("stage", "False", "CreateFailed"),
        cluster("qa", "False", "Creating"),
        cluster("prod", "True", "Running"),
        {"metadata": {"labels": {names.ENVIRONMENT: "new"}}},
    ]
    assert failed_environments(found) == {"stage"}
