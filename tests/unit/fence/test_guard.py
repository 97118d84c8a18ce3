"""The guard, tick by tick, with a fake clock."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.fence.files import (
    LATE_SECONDS,
    FenceFiles,
    FencePermit,
    FenceSettings,
    Gate,
    boot_clock,
    boot_id,
)
from k8s_ucp.fence.guard import Guard, Reader
from k8s_ucp.fence.record import FENCE, FenceHolder, FenceRecord
from k8s_ucp.fence.rules import FenceVerdict

T = 30.0
HERE = FenceHolder("1", "desk", "/here", "embedded")
THERE = replace(HERE, id="2", workspace="/there")
OURS, THEIRS = FenceRecord(1, HERE, 0.0), FenceRecord(2, THERE, 0.0)


@dataclass
class Desk:
    """A guard with a fake remote and fake writers."""

    files: FenceFiles
    now: float = 1000.0
    remote: FenceRecord | None = OURS
    silent: bool = False
    works: bool = True
    fails: bool = False
    looks: int = 0
    said: list[str] = field(default_factory=list)

    def guard(self) -> Guard:
        return Guard(self.files, self, self.said.append, look=self._look, clock=self.clock)

    def clock(self) -> float:
        return self.now

    def _look(self, _: FenceSettings, seconds: float) -> tuple[str, FenceRecord] | None:
        assert seconds == T / 3
        self.looks += 1
        if self.silent:
            raise UcpError("no route to host")
        return ("commit", self.remote) if self.remote else None

    def stop(self) -> list[str]:
        self._may_fail()
        stopped, self.works = self.works, False
        return ["crossplane"] if stopped else []

    def resume(self) -> list[str]:
        self._may_fail()
        started, self.works = not self.works, True
        return ["crossplane"] if started else []

    def _may_fail(self) -> None:
        if self.fails:
            raise UcpError("supervisord is not responding")

    @property
    def gate(self) -> bool:
        return Gate(self.files.folder, self.clock).is_open()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    files = FenceFiles(tmp_path / "fence")
    files.write_settings(FenceSettings("1", "https://git", T, True, "commit", OURS, boot_id()))
    return Desk(files)


def test_without_settings_the_guard_does_nothing_and_the_gate_is_open(tmp_path: Path) -> None:
    desk = Desk(FenceFiles(tmp_path))
    assert desk.guard().tick() is None
    assert desk.gate
    assert desk.looks == 0


def test_the_guard_reads_the_fence_and_writes_the_permit_three_times_a_period(desk: Desk) -> None:
    guard = desk.guard()
    versions = set()
    for _ in range(61):
        assert guard.tick() is FenceVerdict.HELD
        assert desk.gate
        versions.add(desk.files.permit())
        desk.now += 1.0
    assert desk.looks == 7
    assert len(versions) == 7


def test_a_gate_without_a_guard_closes_when_the_permit_expires(desk: Desk) -> None:
    desk.guard().tick()
    desk.now += T - 0.1
    assert desk.gate
    desk.now += 0.1
    assert not desk.gate


def test_an_unreachable_remote_stops_the_writers_until_it_responds(desk: Desk) -> None:
    guard = desk.guard()
    guard.tick()
    desk.silent = True
    for _ in range(29):
        desk.now += 1.0
        guard.tick()
    assert desk.works
    desk.now += 1.0
    assert guard.tick() is FenceVerdict.SILENT
    assert (desk.works, desk.gate) == (False, False)
    permit = desk.files.permit()
    assert permit
    assert "no route to host" in permit.why_stopped()
    desk.silent = False
    desk.now += 10.0
    assert guard.tick() is FenceVerdict.HELD
    assert (desk.works, desk.gate) == (True, True)


def test_a_takeover_stops_the_writers_at_the_next_read(desk: Desk) -> None:
    guard = desk.guard()
    guard.tick()
    desk.remote = THEIRS
    desk.now += 10.0
    assert guard.tick() is FenceVerdict.LOST
    assert (desk.works, desk.gate) == (False, False)
    # The new holder releases the fence: no core acts until a person runs a command.
    desk.remote = FenceRecord(2, None, 0.0)
    desk.now += 10.0
    assert guard.tick() is FenceVerdict.LOST
    permit = desk.files.permit()
    assert permit
    assert "no holder since" in permit.why_stopped()


def test_after_a_takeover_the_guard_waits_for_the_given_time(desk: Desk) -> None:
    taken = replace(OURS, epoch=3, taken=True, since=time.time())
    settings = desk.files.settings()
    assert settings
    desk.remote, desk.works = taken, False
    guard = desk.guard()
    # The takeover was pushed, and the start has not written the settings yet.
    assert guard.tick() is FenceVerdict.WAITING
    desk.files.write_settings(replace(settings, record=taken, not_before=desk.now + 2 * T))
    desk.now += 2 * T - 1
    assert guard.tick() is FenceVerdict.WAITING
    assert not desk.gate
    desk.now += 1
    assert guard.tick() is FenceVerdict.HELD
    assert (desk.works, desk.gate) == (True, True)


def test_a_restarted_guard_continues_with_the_permit_of_the_previous_one(desk: Desk) -> None:
    desk.guard().tick()
    desk.silent = True
    desk.now += T - 1
    guard = desk.guard()
    assert guard.tick() is FenceVerdict.HELD
    desk.now += 1
    assert guard.tick() is FenceVerdict.SILENT


def test_a_remote_that_was_never_reachable_does_not_stop_the_writers(desk: Desk) -> None:
    desk.silent = True
    guard = desk.guard()
    for _ in range(100):
        assert guard.tick() is FenceVerdict.HELD
        desk.now += 1.0
    assert desk.works


def test_a_permit_from_before_a_reboot_is_invalid(desk: Desk) -> None:
    permit = FencePermit(FenceVerdict.HELD, desk.now + T, "another", OURS, confirmed=True)
    desk.files.write_permit(permit)
    assert not desk.gate


def test_the_gate_is_closed_for_processes_of_another_epoch(desk: Desk) -> None:
    desk.guard().tick()
    assert Gate(desk.files.folder, desk.clock, epoch=1).is_open()
    assert not Gate(desk.files.folder, desk.clock, epoch=3).is_open()


def test_the_gate_closes_at_once_if_the_folder_is_moved_and_opens_if_it_returns(desk: Desk) -> None:
    guard, gate = desk.guard(), Gate(desk.files.folder, desk.clock, epoch=1)
    guard.tick()
    assert gate.is_open()
    moved = desk.files.folder.rename(desk.files.folder.with_name("moved"))
    assert guard.tick() is None
    assert guard.tick() is None
    assert not gate.is_open()
    assert not desk.files.folder.exists()
    assert desk.said[1:] == [f"stopped working: {desk.files.folder} was moved or deleted"]
    moved.rename(desk.files.folder)
    assert guard.tick() is FenceVerdict.HELD
    assert gate.is_open()


def test_stopping_and_resuming_writers_is_retried(desk: Desk) -> None:
    guard = desk.guard()
    guard.tick()
    desk.remote, desk.fails = THEIRS, True
    desk.now += 10.0
    with pytest.raises(UcpError):
        guard.tick()
    assert not desk.gate
    desk.fails = False
    guard.tick()
    assert not desk.works
    desk.remote, desk.fails = OURS, True
    desk.now += 10.0
    with pytest.raises(UcpError):
        guard.tick()
    desk.fails = False
    guard.tick()
    assert desk.works


def test_settings_of_older_versions_are_read(desk: Desk) -> None:
    path = desk.files.folder / "settings.json"
    content = json.loads(path.read_text())
    del content["adopted"], content["credential"]
    path.write_text(json.dumps(content))
    assert desk.files.settings()


def test_a_ref_on_this_machine_is_read_without_git(desk: Desk, tmp_path: Path) -> None:
    bare = tmp_path / "core.git"
    (bare / "refs/ucp").mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    (bare / FENCE).write_text("commit\n")
    settings = desk.files.settings()
    assert settings
    reader = Reader(desk.files)
    assert reader.look(replace(settings, url=bare.as_uri()), 1.0) == ("commit", OURS)
    (bare / FENCE).unlink()
    (bare / "packed-refs").write_text(f"# pack-refs\nabc refs/heads/main\ncommit {FENCE}\n")
    assert reader.look(replace(settings, url=bare.as_uri()), 1.0) == ("commit", OURS)


def test_forgetting_the_fence_deletes_all_files(desk: Desk) -> None:
    (desk.files.clone / ".git" / "objects").mkdir(parents=True)
    desk.files.forget()
    assert list(desk.files.folder.iterdir()) == []


def test_a_permit_that_a_running_guard_has_not_renewed_is_shown_as_expired(desk: Desk) -> None:
    late = LATE_SECONDS + 1
    for until, verdict in ((boot_clock() - 1, "held"), (boot_clock() - late, "expired")):
        permit = FencePermit(FenceVerdict.HELD, until, boot_id(), OURS, confirmed=True)
        desk.files.write_permit(permit)
        seen = desk.files.seen(guarded=True)
        assert seen is not None
        assert seen.verdict == verdict
    assert "watcher" in seen.why_stopped()
    # Without a guard it can't be renewed: the topology is stopped, or was not started since a boot.
    assert desk.files.seen(guarded=False) == permit
