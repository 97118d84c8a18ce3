"""Writing ucp.yaml for an edit, and restoring it after a failure."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from k8s_ucp.cli.editing import topology_edit
from k8s_ucp.errors import UcpError


def test_restoring_an_unchanged_ucp_yaml_succeeds_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed restore would hide the error of the edit."""
    path = tmp_path / "ucp.yaml"
    path.write_text("before")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(topology_edit, "replace_file", full)
    with pytest.raises(UcpError, match="No space left on device") as caught:
        topology_edit._write(path, "after", over="before")
    assert caught.value.next == "free disk space (df -h)"
    topology_edit._write(path, "before", over="after")
