"""What is read of the checked repositories as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.gitops.check.repositories import transports_in
from k8s_ucp.topology import default
from k8s_ucp.topology.text import topology_text


def test_the_push_hook_reads_no_endless_file_for_transports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ucp.yaml").write_text(topology_text(default()))
    assert "file" in transports_in(tmp_path)

    monkeypatch.setattr("k8s_ucp.topology.file.LARGEST", 10)

    assert transports_in(tmp_path) == set()
    assert transports_in(tmp_path / "none") == set()
