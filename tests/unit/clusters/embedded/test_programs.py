"""Which programs a cluster runs, and the way back after they were exchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.clusters.embedded import programs
from k8s_ucp.clusters.embedded.folder import ClusterFolder, Record
from k8s_ucp.errors import UcpError

RECORD = Record("v1.34.4", {})


def paths(cache: Path, kubernetes: str, etcd: str) -> dict[str, Path]:
    """Programs in entries of these versions, by the toolbox' names."""
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
    programs.exchange(found, paths(tmp_path, "1.34.4", "3.6.1"))
    return found


def test_a_cluster_tells_what_it_runs(folder: ClusterFolder) -> None:
    assert programs.entries(folder) == {
        "etcd": "etcd-3.6.1-e",
        "kubernetes": "kubernetes-1.34.4-b",
        "kwok": "kwok-0.8.0-k",
    }
    assert programs.noted(folder) is None


def test_the_first_note_of_an_exchange_counts(folder: ClusterFolder, tmp_path: Path) -> None:
    programs.note_before(folder, RECORD)
    programs.exchange(folder, paths(tmp_path, "1.35.4", "3.6.1"))
    programs.note_before(folder, Record("v1.35.4", {}))  # A run that was cut off, again.
    noted = programs.noted(folder)
    assert noted is not None
    version, before = noted
    assert version == "v1.34.4"
    programs.exchange(folder, before)
    assert programs.entries(folder)["kubernetes"] == "kubernetes-1.34.4-b"
    programs.forget_before(folder)
    assert programs.noted(folder) is None


@pytest.mark.parametrize(("etcd", "copied"), [("3.6.2", False), ("3.7.0", True)])
def test_data_is_copied_where_the_old_etcd_may_not_read_it(
    folder: ClusterFolder, tmp_path: Path, etcd: str, copied: bool
) -> None:
    programs.copy_data(folder, paths(tmp_path, "1.35.4", etcd)["etcd"])
    (folder.data / "db").write_text("after")
    programs.put_data_back(folder)
    assert (folder.data / "db").read_text() == ("before" if copied else "after")
    assert not folder.data_copy.exists()


def test_a_note_that_is_torn_is_no_way_back(folder: ClusterFolder) -> None:
    folder.upgrade_note.write_text("{")
    with pytest.raises(UcpError, match="corrupt"):
        programs.noted(folder)
