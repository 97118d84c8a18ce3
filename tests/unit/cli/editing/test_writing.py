"""Writing ucp.yaml for an edit, and putting it back."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from k8s_ucp.cli.editing import topology_edit
from k8s_ucp.errors import UcpError


def test_what_a_full_disk_has_left_as_it_was_needs_no_room_to_be_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of putting it back would hide why the edit failed."""
    path = tmp_path / "ucp.yaml"
    path.write_text("before")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(topology_edit, "replace_file", full)
    with pytest.raises(UcpError, match="No space left on device") as caught:
        topology_edit._write(path, "after")
    assert caught.value.next == "free disk space (df -h)"
    topology_edit._write(path, "before")
