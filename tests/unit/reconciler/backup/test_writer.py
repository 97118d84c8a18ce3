"""The backup controller: its first run, failures, and a core that does not respond."""

from __future__ import annotations

import io
import json
import resource
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from k8s_ucp.kube import KubeError
from k8s_ucp.reconciler.backup.controller import BackupController
from k8s_ucp.reconciler.backup.core_state import CoreState
from k8s_ucp.reconciler.backup.writer import BackupWriter, failure, forget_failure, note_failure
from k8s_ucp.reconciler.backup_content import Backup
from k8s_ucp.reconciler.controller import Runtime
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.settings import BackupSettings, Settings


@dataclass
class Core:
    """A core cluster. holds: its state; None: it does not respond."""

    holds: Backup | None = field(default_factory=lambda: Backup({"ns/a": {"password": "eA=="}}))
    is_restored: bool = True

    def restored(self) -> frozenset[str]:
        return frozenset({"passwords"} if self.is_restored else ())

    def collect(self) -> Backup:
        if self.holds is None:
            raise KubeError("no answer")
        return self.holds


def settings(folder: Path) -> Settings:
    """Of a workspace without its backup key, so a changed backup can't be written."""
    where = BackupSettings(
        folder / "backup", folder / "creds/backup.key", folder / "core", "file:///none", "main"
    )
    return Settings(kubeconfig=folder / "none.yaml", machine="here", topology="demo", backup=where)


@dataclass
class Made:
    folder: Path
    core: Core = field(default_factory=Core)
    logs: io.StringIO = field(default_factory=io.StringIO)

    def __post_init__(self) -> None:
        self.writer = BackupWriter(
            settings(self.folder), Log(self.logs), open_core=lambda _: cast(CoreState, self.core)
        )

    def write(self) -> str:
        """Run the writer once; returns the recorded failure."""
        self.writer.write()
        return failure(self.folder / "backup")

    def said(self) -> list[str]:
        return [json.loads(line)["error"] for line in self.logs.getvalue().splitlines()]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def test_a_failure_is_recorded_and_logged_once(made: Made) -> None:
    missing = f"the backup key {made.folder}/creds/backup.key is missing"
    assert [made.write(), made.write()] == [missing, missing]
    assert made.said() == [missing]
    made.core.holds = Backup()
    assert made.write() == ""
    made.core.holds = Backup({"ns/b": {"password": "eA=="}})
    assert made.write() == missing
    assert made.said() == [missing, missing]


def test_a_recorded_failure_is_kept_while_the_core_does_not_respond(made: Made) -> None:
    # A stop that removes the core reads this record if the core does not respond.
    noted = made.write()
    made.core.holds = None
    assert made.write() == noted
    made.core = Core(is_restored=False)
    assert made.write() == noted


def test_a_core_that_is_not_restored_yet_is_not_backed_up(made: Made) -> None:
    made.core.is_restored = False
    assert made.write() == ""
    assert made.said() == []


@dataclass
class Shared:
    """The part of a Runtime that this controller uses."""

    settings: Settings
    log: Log


def test_the_first_backup_and_every_later_one_run_after_a_delay(tmp_path: Path) -> None:
    shared = Shared(settings(tmp_path), Log(io.StringIO()))
    controller = BackupController(cast(Runtime, shared))
    for _ in range(2):
        (tmp_path / "backup" / "failed").unlink(missing_ok=True)
        controller.take_over()
        key = controller.queue.take(0)
        assert key
        assert controller.reconcile(key) == 15
        assert failure(tmp_path / "backup") == ""
        assert controller.reconcile(key) == 15
        assert "none.yaml" in failure(tmp_path / "backup")
        controller.queue.done(key)


def test_a_failure_is_noted_even_where_no_content_can_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        note_failure(folder, "git fetch failed")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert failure(folder) == "the disk was full"
    note_failure(folder, "git fetch failed")
    assert failure(folder) == "git fetch failed"
    forget_failure(folder)
    assert [*folder.iterdir()] == []
