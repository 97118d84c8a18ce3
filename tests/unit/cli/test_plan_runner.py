"""Commands that continue a run, or must not because it is still running."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from k8s_ucp import process
from k8s_ucp.cli.console import Console
from k8s_ucp.cli.plan_runner import _log, open_journal
from k8s_ucp.engine.journal import Journal
from k8s_ucp.errors import UcpError

CONSOLE = Console(quiet=False, verbose=False, color=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The journal of `ucp recreate --env stage`, which is waiting."""
    path = tmp_path / "environment-stage.json"
    with Journal(path, "environment stage", "ucp recreate --env stage").step("Wait", "wait"):
        written = path.read_text("utf-8")
    path.write_text(written)
    return path


def written_by(path: Path, pid: int) -> None:
    found = process.identify(pid)
    content = json.loads(path.read_text("utf-8"))
    content.update(pid=pid, start=found.start if found else "")
    path.write_text(json.dumps(content))


def test_what_another_process_is_doing_is_not_continued(path: Path) -> None:
    """Both would write the same journal, and the second one would announce a continuation."""
    written_by(path, os.getppid())
    before = path.read_text("utf-8")
    with pytest.raises(UcpError, match="another command is running: `ucp recreate --env stage`"):
        open_journal(path, "environment stage", "ucp env remove stage", CONSOLE)
    assert path.read_text("utf-8") == before


def test_what_a_killed_process_did_is_continued(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written_by(path, 2**22 + 7)
    open_journal(path, "environment stage", "ucp env remove stage", CONSOLE)
    assert "was killed" in (said := capsys.readouterr().err)
    assert "continuing from there" in said


def test_a_log_on_a_full_disk_does_not_hide_the_outcome() -> None:
    full = Path("/dev/full")
    with _log(full, "stop"):
        pass
    with pytest.raises(UcpError, match="the backup failed"), _log(full, "stop"):
        raise UcpError("the backup failed")
