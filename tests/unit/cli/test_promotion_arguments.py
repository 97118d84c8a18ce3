"""What `ucp promote` answers if its app, environment or version is missing."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from k8s_ucp.cli import main
from k8s_ucp.gitops.promotion.batch import read_batch
from k8s_ucp.gitops.promotion.decision import Intent
from k8s_ucp.topology import App
from tests.unit.gitops.topologies import demo

BATCH = "[{app: echo, env: prod, from: stage}, {app: quote, env: prod, from: stage}]"


@pytest.fixture
def workspace(tmp_path: Path) -> str:
    apps = tuple(App(name=each, image=f"example.org/{each}", tag="1") for each in ("echo", "quote"))
    text = demo(apps=apps).model_dump_json(by_alias=True, exclude_unset=True)
    (tmp_path / "ucp.yaml").write_text(text)
    return str(tmp_path)


def advice(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main.run(["promote", *words]) == 2
    return capsys.readouterr().err.rpartition("  next: ")[2].strip()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("echo", "ucp promote echo --env stage --tag TAG"),
        ("echo --tag 1.4.0", "ucp promote echo --env stage --tag 1.4.0"),
        ("echo --from stage", "ucp promote echo --env prod --from stage"),
        ("echo --env prod", "ucp promote echo --env prod --from stage"),
        ("--env prod --tag 1.4.0", "ucp promote echo --env prod --tag 1.4.0"),
        ("echo:1.4.0 --env prod", "ucp promote echo --env prod --tag 1.4.0"),
        ("echo --tag 1 --pr --semver", "ucp promote echo --env stage --tag 1 --semver --pr"),
        ("echo --env prod --sequence 7", "ucp promote echo --env prod --from stage --sequence 7"),
    ],
)
def test_an_incomplete_promotion_is_completed(
    typed: str,
    meant: str,
    workspace: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(workspace)
    assert advice(capsys, *typed.split()) == meant


@pytest.mark.parametrize(
    "typed",
    [
        "--env prod --from stage",
        "--env prod",
        "prod --from stage",
        "--all --env prod",
        "* --env prod",
    ],
)
def test_all_apps_of_an_environment_are_a_batch_that_can_be_pasted(
    typed: str, workspace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    meant = advice(capsys, *typed.split(), "--workspace", workspace)
    echo, items, *command = shlex.split(meant)
    assert (echo, items) == ("echo", BATCH)
    assert command == ["|", "ucp", "promote", "--batch", "-", "--workspace", workspace]
    intents = read_batch(items, "-", Intent("", ""))
    assert [(each.app, each.env, each.source) for each in intents] == [
        ("echo", "prod", "stage"),
        ("quote", "prod", "stage"),
    ]


def test_of_another_repository_no_apps_are_known(
    workspace: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(workspace)
    found = advice(capsys, "--env", "prod", "--from", "stage", "--repo", "../apps.git")
    assert found == (
        "echo '[{app: APP, env: prod, from: stage}]' | ucp promote --repo ../apps.git --batch -"
    )


def test_a_rollback_without_environment_lists_them_and_proposes_none(
    workspace: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(workspace)
    assert main.run(["rollback", "echo", "--release-hold"]) == 2
    error = capsys.readouterr().err
    assert "environments: stage, prod" in error
    assert "next: ucp rollback echo --env ENV --release-hold" in error


def test_a_batch_repeats_what_it_can_be_combined_with(
    workspace: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(workspace)
    assert advice(capsys, "--env", "prod", "--pr", "--semver").endswith("--batch - --semver")
