"""Topology files that can't be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.topology import default, load, read_topology
from k8s_ucp.topology.file import LARGEST
from k8s_ucp.topology.text import topology_text
from k8s_ucp.topology.yaml_reader import read


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the topology file"):
        load(tmp_path / "ucp.yaml")


def test_a_folder_is_reported_as_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UcpError, match="failed to read"):
        load(tmp_path)


def test_a_file_that_is_not_utf8_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ucp.yaml").write_bytes(b"kind: Topology\ndomain: caf\xe9\n")
    with pytest.raises(UsageError, match=r"^ucp.yaml:2: not valid UTF-8"):
        load(tmp_path / "ucp.yaml")


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_without_read_permission_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ucp.yaml").touch(mode=0)
    with pytest.raises(UcpError, match="Permission denied"):
        load(tmp_path / "ucp.yaml")


def test_changing_parsed_content_does_not_affect_other_readers() -> None:
    """A text is parsed once and cached, so each reader must get its own copy."""
    text = "apps: [{name: web}]\n"
    read(text)["apps"].clear()
    assert read(text) == {"apps": [{"name": "web"}]}


def test_a_file_that_never_ends_is_not_read_into_memory(tmp_path: Path) -> None:
    """In a clone of others, ucp.yaml may be a link to /dev/zero."""
    path = tmp_path / "ucp.yaml"
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(UsageError, match="more than 4000000 bytes, so it is not a topology file"):
        load(path)


@pytest.mark.parametrize("reader", [load, read_topology])
def test_a_file_that_reading_would_wait_for_is_refused(
    tmp_path: Path, reader: Callable[[Path], object]
) -> None:
    path = tmp_path / "ucp.yaml"
    os.mkfifo(path)
    with pytest.raises(UsageError, match="is not a regular file") as refused:
        reader(path)
    assert refused.value.next == f"ls -lL {path}"


def test_line_ends_of_other_systems_are_read(tmp_path: Path) -> None:
    (tmp_path / "ucp.yaml").write_bytes(topology_text(default()).replace("\n", "\r\n").encode())
    assert load(tmp_path / "ucp.yaml") == default()
