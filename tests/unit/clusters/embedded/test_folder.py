"""A cluster's folder, and what an interrupted removal leaves of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from k8s_ucp.clusters.embedded.folder import PORTS, ClusterFolder, Record


def test_an_interrupted_removal_leaves_no_cluster_that_would_start_with_partial_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ClusterFolder(tmp_path, "demo-stage")
    folder.data.mkdir(parents=True)
    folder.write_record(Record("v1.35.4", dict.fromkeys(PORTS, 20000)))
    assert folder.record()

    def cut_off(path: Path) -> None:
        raise KeyboardInterrupt(str(path))

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", cut_off)
        with pytest.raises(KeyboardInterrupt):
            folder.remove()
    assert folder.data.is_dir()
    assert folder.record() is None, "what is left would be started as if it were whole"
    folder.remove()
    assert not folder.root.exists()
    folder.remove()
