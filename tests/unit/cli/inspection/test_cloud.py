"""`ucp cloud`: refused arguments, and calls that reach the simulated cloud."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from k8s_ucp.cli import main
from k8s_ucp.cli.inspection.cloud import refuse_reset
from k8s_ucp.cloud.admin import CloudAdmin
from k8s_ucp.cloud.faults import CloudFault
from k8s_ucp.cloud.ledger import CloudLedgerEntry
from k8s_ucp.errors import UcpError
from k8s_ucp.topology import default
from k8s_ucp.topology.parts import Clouds
from k8s_ucp.topology.text import topology_text

MADE = CloudLedgerEntry(
    7, 0.0, "eu-west-3", "ec2", "CreateVpc", "ucp/demo", 200, "vpc", "vpc-1", True
)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a started simulated cloud whose ledger has one entry."""
    monkeypatch.setenv("UCP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(CloudAdmin, "ledger", lambda _, since=0: [MADE] if since < 7 else [])
    simulated = Clouds.model_validate({"aws": {"simulated": True}})
    write(tmp_path / "workspace", topology_text(default(clouds=simulated)))
    return tmp_path / "workspace"


def write(workspace: Path, text: str) -> None:
    state = workspace / ".ucp" / "demo"
    (state / "components").mkdir(parents=True)
    (state / "ucp.yaml").write_text(text)


def run(workspace: Path, *words: str) -> int:
    return main.run(["--workspace", str(workspace), "cloud", *words])


def test_the_ledger_is_printed_as_a_table_or_as_json(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(workspace, "ledger") == 0
    shown = capsys.readouterr().out
    assert "ec2:CreateVpc" in shown and "vpc vpc-1" in shown and "made" in shown
    assert "1970-01-01T00:00:00Z" in shown, "in UTC, as in ucp events and ucp history"
    assert run(workspace, "ledger", "-o", "json", "--since", "6") == 0
    assert json.loads(capsys.readouterr().out)[0]["id"] == "vpc-1"
    assert run(workspace, "ledger", "-o", "json", "--since", "7") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_fault_is_added_as_specified(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[CloudFault] = []
    monkeypatch.setattr(CloudAdmin, "add_fault", lambda _, fault: added.append(fault))
    words = ["lost", "--service", "ec2", "--operation", "Create*", "--times", "2"]
    assert run(workspace, "fault", "add", *words) == 0
    assert added == [CloudFault("lost", "ec2", "Create*", times=2)]
    assert run(workspace, "fault", "add", "broken") == 2
    assert run(workspace, "fault", "add", "slow") == 2
    assert len(added) == 1


def test_a_reset_requires_force_while_resources_exist(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reset: list[str] = []
    monkeypatch.setattr(CloudAdmin, "reset", lambda _: reset.append("done"))
    assert run(workspace, "reset", "--yes") == 1
    said = capsys.readouterr().err
    assert "vpc vpc-1" in said and "ucp cloud reset" in said and "--force demo" in said
    assert run(workspace, "reset", "--yes", "--force", "other") == 2
    assert not reset
    assert run(workspace, "reset", "--yes", "--force", "demo") == 0
    assert reset == ["done"]


def test_a_refused_reset_names_five_resources_and_counts_the_rest() -> None:
    entries = [
        CloudLedgerEntry(n, 0.0, "r", "s3", "CreateBucket", "", 200, "bucket", f"b{n}", True)
        for n in range(7)
    ]
    with pytest.raises(UcpError, match="bucket b4 and 2 more"):
        refuse_reset(entries, "demo", forced=False)
    refuse_reset(entries, "demo", forced=True)
    refuse_reset([], "demo", forced=False)


def test_the_ledger_requires_a_simulated_cloud(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, topology_text(default()))
    assert run(tmp_path, "ledger") == 2
    assert "demo has no simulated cloud" in capsys.readouterr().err
