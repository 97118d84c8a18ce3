"""What the backup controller does when: its first look, failures, a core that is silent."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from k8s_ucp.backup import Backup
from k8s_ucp.kube import KubeError
from k8s_ucp.reconciler.backup.controller import BackupController
from k8s_ucp.reconciler.backup.core_state import CoreState
from k8s_ucp.reconciler.backup.writer import BackupWriter, failure
from k8s_ucp.reconciler.controller import Runtime
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.settings import BackupSettings, Settings


@dataclass
class Core:
    """What it holds; None: it is silent."""

    holds: Backup | None = field(default_factory=lambda: Backup({"ns/a": {"password": "eA=="}}))
    is_restored: bool = True

    def restored(self) -> frozenset[str]:
        return frozenset({"passwords"} if self.is_restored else ())

    def collect(self) -> Backup:
        if self.holds is None:
            raise KubeError("no answer")
        return self.holds


def settings(folder: Path) -> Settings:
    """Of a workspace that lost its key, so that what is new can't be written."""
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
        """One look; what is noted after it."""
        self.writer.write()
        return failure(self.folder / "backup")

    def said(self) -> list[str]:
        return [json.loads(line)["error"] for line in self.logs.getvalue().splitlines()]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def test_a_failure_is_noted_and_told_once(made: Made) -> None:
    missing = f"the backup key {made.folder}/creds/backup.key is missing"
    assert [made.write(), made.write()] == [missing, missing]
    assert made.said() == [missing]
    made.core.holds = Backup()
    assert made.write() == ""
    made.core.holds = Backup({"ns/b": {"password": "eA=="}})
    assert made.write() == missing
    assert made.said() == [missing, missing]


def test_what_is_not_backed_up_stays_noted_while_the_core_is_silent(made: Made) -> None:
    # A stop that removes the core asks this note when it can't ask the core.
    noted = made.write()
    made.core.holds = None
    assert made.write() == noted
    made.core = Core(is_restored=False)
    assert made.write() == noted


def test_a_core_that_was_given_nothing_back_yet_is_not_looked_at(made: Made) -> None:
    made.core.is_restored = False
    assert made.write() == ""
    assert made.said() == []


@dataclass
class Shared:
    """Of a Runtime, what this controller takes."""

    settings: Settings
    log: Log


def test_the_first_look_comes_after_a_pause_and_so_does_every_next_one(tmp_path: Path) -> None:
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
