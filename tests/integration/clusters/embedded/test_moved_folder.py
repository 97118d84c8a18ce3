"""Which processes and ports belong to a cluster whose folder was moved."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from k8s_ucp.clusters.embedded.control_plane import ControlPlaneLifecycle
from k8s_ucp.clusters.embedded.folder import PORTS, ClusterFolder, Record
from k8s_ucp.clusters.embedded.processes import FOLDER_VARIABLE, end_all, find_own
from k8s_ucp.clusters.ports import Ports
from k8s_ucp.process import ProcessIdentity, is_running, spawn, terminate


@pytest.fixture
def etcd(tmp_path: Path) -> Path:
    """A stand-in: a component is known by the name of its program."""
    program = tmp_path / "programs" / "etcd"
    program.parent.mkdir()
    shutil.copy2(str(shutil.which("sleep")), program)
    return program


@contextmanager
def started(etcd: Path, folder: ClusterFolder) -> Iterator[ProcessIdentity]:
    folder.home.mkdir(parents=True)
    environment = {FOLDER_VARIABLE: str(folder.root)}
    found = spawn([etcd, "300"], env=environment, cwd=folder.home, log=folder.root / "log")
    try:
        yield found
    finally:
        terminate(found, grace=0)


def test_processes_belong_to_the_folder_that_was_moved_not_to_the_next_in_its_place(
    etcd: Path, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    now = ClusterFolder(there, "core")
    following = ClusterFolder(here, "core")
    with ExitStack() as stack:
        moved = stack.enter_context(started(etcd, following))
        here.rename(there)
        assert find_own(now) == [moved]
        assert find_own(following) == []
        other = stack.enter_context(started(etcd, following))
        assert (find_own(now), find_own(following)) == ([moved], [other])
        end_all(now, grace=0)
        assert (is_running(moved), is_running(other)) == (False, True)
        assert find_own(now) == []


def test_processes_of_a_removed_folder_belong_to_the_next_in_its_place(
    etcd: Path, tmp_path: Path
) -> None:
    folder = ClusterFolder(tmp_path / "clusters", "core")
    with started(etcd, folder) as found:
        folder.remove()
        assert find_own(folder) == [found]
        folder.home.mkdir(parents=True)
        assert find_own(folder) == [found]
        end_all(folder, grace=0)
        assert not is_running(found)


def test_processes_of_a_folder_that_was_removed_after_it_was_moved_are_found(
    etcd: Path, tmp_path: Path
) -> None:
    here, there = (ClusterFolder(tmp_path / each, "core") for each in ("here", "there"))
    with started(etcd, here) as found:
        (tmp_path / "here").rename(tmp_path / "there")
        shutil.rmtree(tmp_path / "there")
        assert find_own(there) == [found]
        end_all(there, grace=0)
        assert not is_running(found)


def test_processes_of_the_original_do_not_belong_to_a_copy(etcd: Path, tmp_path: Path) -> None:
    original, copy = (ClusterFolder(tmp_path / each, "core") for each in ("one", "two"))
    with started(etcd, original) as found:
        shutil.copytree(original.clusters, copy.clusters)
        end_all(copy, grace=0)
        assert find_own(copy) == []
        assert find_own(original) == [found]


def test_a_moved_cluster_gets_other_ports_than_the_next_one_in_its_former_place(
    tmp_path: Path,
) -> None:
    ports = Ports(tmp_path / "cache" / "ports.json")
    here, there = tmp_path / "here", tmp_path / "there"
    moved, following = ClusterFolder(there, "core"), ClusterFolder(here, "core")
    moved.home.mkdir(parents=True)
    before = ports.reserve(str(following.root), PORTS)
    following.root.mkdir(parents=True)
    (moved.home / "kwok.yaml").write_text(
        "".join(f"- --secure-port={port}\n" for port in before.values())
    )
    lifecycle = ControlPlaneLifecycle(None, None, ports)

    record = lifecycle.with_own_ports(moved, Record("v1.35.4", before))

    assert not set(record.ports.values()) & set(before.values())
    assert record == moved.record()
    text = (moved.home / "kwok.yaml").read_text()
    assert text == "".join(f"- --secure-port={port}\n" for port in record.ports.values())
    assert lifecycle.with_own_ports(moved, record) == record
