"""Writing ucp.yaml for an edit, and restoring it after a failure."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.editing import topology_edit
from k8s_ucp.errors import UcpError
from k8s_ucp.topology import default, load, read_topology
from k8s_ucp.topology.text import topology_text


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
    assert caught.value.next == "free disk space (df -h), or inodes (df -i)"
    topology_edit._write(path, "before", over="after")


def test_a_file_that_changed_during_the_checks_of_an_upgrade_is_not_published(
    tmp_path: Path,
) -> None:
    """The render would take the concurrent edit out of the repositories again."""
    call, path = Invocation(tmp_path), tmp_path / "ucp.yaml"
    text = topology_text(default())
    path.write_bytes(text.replace("\n", "\r\n").encode())
    context = topology_edit.context_of(call, load(path), read_topology(path))
    topology_edit.refuse_changed(context, path)
    path.write_text(topology_text(default(environments=("stage", "prod", "eu"))))
    with pytest.raises(UcpError, match="was changed while this command checked it"):
        topology_edit.refuse_changed(context, path)
