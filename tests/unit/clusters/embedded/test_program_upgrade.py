"""The programs that a cluster runs, and the rollback after an upgrade replaced them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from k8s_ucp.clusters.embedded import program_upgrade, programs
from k8s_ucp.clusters.embedded.folder import ClusterFolder, Record
from k8s_ucp.clusters.embedded.program_upgrade import UpgradePhase, repair
from k8s_ucp.errors import UcpError

RECORD = Record("v1.34.4", {})


def paths(cache: Path, kubernetes: str, etcd: str) -> dict[str, Path]:
    """Paths of programs in cache entries of these versions, by their names in the toolbox."""
    entries = {"etcd": f"etcd-{etcd}-e", "kwok": "kwok-0.8.0-k", "kwokctl": "kwok-0.8.0-k"}
    names = [*programs.RUN, "kwokctl"]
    found = {each: entries.get(each, f"kubernetes-{kubernetes}-b") for each in names}
    return {each: cache / entry / "bin" / each for each, entry in found.items()}


@pytest.fixture
def folder(tmp_path: Path) -> ClusterFolder:
    found = ClusterFolder(tmp_path / "clusters", "demo-stage")
    (found.home / "bin").mkdir(parents=True)
    found.data.mkdir()
    (found.data / "db").write_text("before")
    programs.link(found, paths(tmp_path, "1.34.4", "3.6.1"))
    return found


def test_the_cache_entries_of_running_programs_are_listed(folder: ClusterFolder) -> None:
    assert programs.entries(folder) == {
        "etcd": "etcd-3.6.1-e",
        "kubernetes": "kubernetes-1.34.4-b",
        "kwok": "kwok-0.8.0-k",
    }
    assert program_upgrade.read_record(folder) is None


def test_the_first_upgrade_record_wins_when_an_interrupted_upgrade_is_rerun(
    folder: ClusterFolder, tmp_path: Path
) -> None:
    program_upgrade.begin_record(folder, RECORD, "v1.35.4")
    programs.link(folder, paths(tmp_path, "1.35.4", "3.6.1"))
    # Interrupted, and run again.
    program_upgrade.begin_record(folder, Record("v1.35.4", {}), "v1.36.0")
    record = program_upgrade.read_record(folder)
    assert record is not None
    assert (record.version, record.newer, record.phase) == (
        "v1.34.4",
        "v1.35.4",
        UpgradePhase.BEGUN,
    )
    assert record.entries["kubernetes"] == "kubernetes-1.34.4-b"
    program_upgrade.set_phase(folder, UpgradePhase.REPLACED)
    record = program_upgrade.read_record(folder)
    assert record is not None and record.phase is UpgradePhase.REPLACED
    programs.link(folder, record.paths)
    assert programs.entries(folder)["kubernetes"] == "kubernetes-1.34.4-b"
    program_upgrade.delete_record(folder)
    assert program_upgrade.read_record(folder) is None


@pytest.mark.parametrize("etcd", ["3.6.2", "3.7.0"])
def test_the_data_copy_of_an_earlier_upgrade_is_not_put_back(
    folder: ClusterFolder, tmp_path: Path, etcd: str
) -> None:
    """The earlier upgrade was killed after it had deleted its note, before its copy."""
    folder.data_copy.mkdir()
    (folder.data_copy / "db").write_text("of last year")
    folder.write_record(RECORD)
    (folder.home / "kwok.yaml").write_text("kubeVersion: v1.35.4\n")
    newer = paths(tmp_path, "1.35.4", etcd)
    program_upgrade.begin_record(folder, RECORD, "v1.35.4")
    program_upgrade.copy_data(folder, newer["etcd"])
    programs.link(folder, newer)
    program_upgrade.set_phase(folder, UpgradePhase.ROLLING_BACK)
    repair(folder)
    assert (folder.data / "db").read_text() == "before"


@pytest.mark.parametrize("cut", range(8))
@pytest.mark.parametrize("phase", [UpgradePhase.BEGUN, UpgradePhase.ROLLING_BACK])
def test_an_upgrade_interrupted_at_any_point_is_rolled_back(
    folder: ClusterFolder, tmp_path: Path, phase: UpgradePhase, cut: int
) -> None:
    """No control plane starts with programs of two versions, and no etcd with another's data."""
    before = programs.entries(folder)
    newer = paths(tmp_path, "1.35.4", "3.7.0")
    folder.write_record(RECORD)
    (folder.home / "kwok.yaml").write_text("kubeVersion: v1.35.4\n")
    program_upgrade.begin_record(folder, RECORD, "v1.35.4")
    program_upgrade.copy_data(folder, newer["etcd"])
    programs.link(folder, dict(list(newer.items())[:cut]))
    if phase is UpgradePhase.ROLLING_BACK:
        program_upgrade.set_phase(folder, phase)
        (folder.data / "db").write_text("after")
        if cut % 2:
            folder.data.rename(folder.data_copy.with_name("etcd-after"))
    repair(folder)
    assert programs.entries(folder) == before
    assert (folder.data / "db").read_text() == "before"
    assert program_upgrade.read_record(folder) is None
    assert (folder.home / "kwok.yaml").read_text() == "kubeVersion: v1.34.4\n"
    assert sorted(each.name for each in folder.root.iterdir() if "etcd" in each.name) == []


def test_programs_that_may_have_run_are_not_rolled_back_before_the_next_upgrade(
    folder: ClusterFolder, tmp_path: Path
) -> None:
    program_upgrade.begin_record(folder, RECORD, "v1.35.4")
    programs.link(folder, paths(tmp_path, "1.35.4", "3.6.1"))
    program_upgrade.set_phase(folder, UpgradePhase.REPLACED)
    repair(folder)
    assert programs.entries(folder)["kubernetes"] == "kubernetes-1.35.4-b"
    assert program_upgrade.read_record(folder) is not None


def test_the_copy_of_the_data_is_on_the_disk_before_it_has_its_name(
    folder: ClusterFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power failure, a rollback would put back a copy with empty files."""
    synced: dict[int, bool] = {}

    def note(descriptor: int, sync: Callable[[int], None] = os.fsync) -> None:
        sync(descriptor)
        synced.setdefault(os.fstat(descriptor).st_ino, folder.data_copy.exists())

    monkeypatch.setattr(os, "fsync", note)
    program_upgrade.copy_data(folder, paths(tmp_path, "1.35.4", "3.7.0")["etcd"])
    copied = [folder.data_copy, folder.data_copy / "db"]
    assert [synced[each.stat().st_ino] for each in copied] == [False, False]


@pytest.mark.parametrize(("etcd", "copied"), [("3.6.2", False), ("3.7.0", True)])
def test_data_is_copied_only_if_the_old_etcd_may_not_read_it_after_the_upgrade(
    folder: ClusterFolder, tmp_path: Path, etcd: str, copied: bool
) -> None:
    program_upgrade.copy_data(folder, paths(tmp_path, "1.35.4", etcd)["etcd"])
    (folder.data / "db").write_text("after")
    program_upgrade.restore_data(folder)
    assert (folder.data / "db").read_text() == ("before" if copied else "after")
    assert not folder.data_copy.exists()


def test_a_truncated_upgrade_record_is_reported_as_corrupt(folder: ClusterFolder) -> None:
    folder.upgrade_record.write_text("{")
    with pytest.raises(UcpError, match="corrupt"):
        program_upgrade.read_record(folder)
