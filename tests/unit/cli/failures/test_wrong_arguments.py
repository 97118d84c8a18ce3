"""Advice on missing and superfluous arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.cli import main
from tests.unit.gitops.topologies import demo


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = demo().model_dump_json(by_alias=True, exclude_unset=True)
    (tmp_path / "ucp.yaml").write_text(text)
    (tmp_path / ".ucp" / "demo").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("promote echo prod --from stage", "ucp promote echo --env prod --from stage"),
        ("promote echo 0.9.3 --env stage", "ucp promote echo --tag 0.9.3 --env stage"),
        ("promote echo stage 0.9.3", "ucp promote echo --env stage --tag 0.9.3"),
        ("promote echo 0.9.3 stage", "ucp promote echo --tag 0.9.3 --env stage"),
        ("promote echo stage prod", "ucp promote --help"),
        ("rollback stage stage", "ucp rollback stage --env stage"),
        ("promote echo stage latest", "ucp promote echo --env stage --tag latest"),
        ("promote echo --env=stage latest", "ucp promote echo --env=stage --tag latest"),
        ("promote echo env=stage tag=0.9.3", "ucp promote echo --env stage --tag 0.9.3"),
        ("promote echo stage=0.9.3", "ucp promote echo --env stage --tag 0.9.3"),
        ("promote echo --env prod env=stage", "ucp promote --help"),
        ("promote echo pr=yes", "ucp promote --help"),
        ("promote echo prod=stage", "ucp promote --help"),
        ("promote stage echo --tag 1", "ucp promote --env stage echo --tag 1"),
        ("promote --env stage echo shop", "ucp promote --help"),
        ("rollback echo 0.9.3", "ucp rollback echo --to 0.9.3"),
        ("rollback echo stage 0.9.3", "ucp rollback echo --env stage --to 0.9.3"),
        ("stop stage prod", "ucp stop --env stage --env prod"),
        ("events echo", "ucp events --app echo"),
        ("start kind", "ucp start --core kind"),
        ("env add dev kind", "ucp env add dev --cluster kind"),
        ("promote echo --env stage prod", "ucp promote --help"),
        ("promote echo nowhere", "ucp promote --help"),
        ("stop env stage", "ucp stop --env stage"),
        ("recreate environment eu --yes", "ucp recreate --env eu --yes"),
        ("destroy env eu", "ucp env remove eu"),
        ("destroy demo", "ucp destroy --topology demo"),
        ("destroy nowhere", "ucp destroy --help"),
        ("history", "ucp history echo"),
        ("env remove", "ucp env remove NAME (known: stage, prod)"),
        ("claim new", "ucp claim new database (or: compute)"),
        ("upgrade now", "ucp upgrade core"),
        ("team add", "ucp team add --help"),
        ("api render", "ucp api render --help"),
        ("app", "ucp app list"),
        ("get", "ucp get secrets"),
        ("tools", "ucp tools list"),
        ("cloud", "ucp cloud --help"),
        ("status --app echo", "ucp status echo"),
        ("status --env=prod -o json", "ucp status prod -o json"),
        ("promote --app echo --env stage", "ucp promote echo --env stage"),
        ("kubeconfig --cluster stage", "ucp kubeconfig stage"),
        ("team add --name shop", "ucp team add shop"),
        ("app add --env prod web nginx:1", "ucp app add --help"),
        ("status --app", "ucp status --help"),
    ],
)
def test_the_advice_is_the_complete_command_where_that_is_evident(
    line: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(line.split()) == 2
    assert capsys.readouterr().err.endswith(f"\n  next: {advice}\n")


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("app --workspace {0}", "ucp app list --workspace {0}"),
        ("history --workspace {0}", "ucp history --workspace {0} echo"),
        ("promote echo qa 1.4 --repo {0}/x", "ucp promote echo --env qa --tag 1.4 --repo {0}/x"),
        ("promote echo 1.4 1.5 --repo {0}/x", "ucp promote --help"),
        ("promote echo prod --workspace {0}", "ucp promote echo --env prod --workspace {0}"),
        ("--workspace {0}/none promote echo prod", "ucp promote --help"),
    ],
)
def test_advice_works_from_another_folder(
    line: str,
    advice: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir("/")
    assert main.run(line.format(tmp_path).split()) == 2
    assert capsys.readouterr().err.endswith(f"\n  next: {advice.format(tmp_path)}\n")


def test_a_number_with_limits_is_called_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["promote", "echo", "--env", "stage", "--tag", "1", "--sequence", "abc"]) == 2
    assert "'--sequence': 'abc' is not a valid number.\n" in capsys.readouterr().err


def test_without_a_topology_the_advice_is_the_help(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ucp.yaml").unlink()
    assert main.run(["history"]) == 2
    assert capsys.readouterr().err.endswith("next: ucp history --help\n")
