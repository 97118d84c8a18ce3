"""A cluster's folder, and what an interrupted removal leaves of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from k8s_ucp.clusters.embedded.folder import PORTS, ClusterFolder, Record
from k8s_ucp.errors import UcpError

DEFINITION = """\
kind: KwokctlConfiguration
options:
  kubeVersion: v1.35.4
  kubeApiserverPort: 20001
  kubeControllerManagerPort: 20002
  kubeSchedulerPort: 20003
  kwokControllerPort: 20004
"""


def test_an_interrupted_removal_leaves_no_cluster_that_would_start_with_partial_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _with_data(tmp_path)
    folder.complete(Record("v1.35.4", dict.fromkeys(PORTS, 20000)))
    assert folder.record()

    def cut_off(path: Path, *, ignore_errors: bool) -> None:
        raise KeyboardInterrupt(f"{path} {ignore_errors}")

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", cut_off)
        with pytest.raises(KeyboardInterrupt):
            folder.remove()
    assert folder.data.is_dir()
    assert folder.record() is None, "what is left would be started as if it were whole"
    folder.remove()
    assert not folder.root.exists()
    folder.remove()


@pytest.mark.parametrize("is_corrupt", [False, True])
def test_a_stopped_cluster_without_a_record_keeps_its_data(
    tmp_path: Path, *, is_corrupt: bool
) -> None:
    folder = _with_data(tmp_path)
    if is_corrupt:
        folder.record_file.write_text("{")
    with pytest.raises(UcpError, match="kwokctl's definition") as raised:
        folder.record()
    assert str(folder.root) in raised.value.next
    folder.definition.write_text(DEFINITION)
    assert folder.record() == Record("v1.35.4", dict(zip(PORTS, range(20001, 20005), strict=True)))


def test_remains_of_a_creation_are_no_cluster(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path, "demo-stage")
    folder.home.mkdir(parents=True)
    assert folder.record() is None, "without data, nothing is lost"
    folder = _with_data(tmp_path)
    folder.mark_incomplete()
    assert folder.record() is None
    folder.complete(Record("v1.35.4", dict.fromkeys(PORTS, 20000)))
    folder.record_file.unlink()
    with pytest.raises(UcpError):
        folder.record()


def _with_data(tmp_path: Path) -> ClusterFolder:
    folder = ClusterFolder(tmp_path, "demo-stage")
    (folder.data / "member").mkdir(parents=True)
    return folder
