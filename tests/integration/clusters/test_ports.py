"""Port reservations across processes, workspaces and time."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from k8s_ucp.clusters import ports as ports_module
from k8s_ucp.clusters.ports import RECORD, Ports, can_listen, record, recorded
from k8s_ucp.errors import DeadlineExceeded, UcpError
from k8s_ucp.locks import locked

NAMES = ["one", "two", "three"]

RESERVE = """
import json, sys
from pathlib import Path
from k8s_ucp.clusters.ports import Ports
ports = Ports(Path(sys.argv[1]))
for owner in sys.argv[2:]:
    print(json.dumps(ports.reserve(owner, ["a", "b", "c", "d"])), flush=True)
"""


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "ports.json"


def owner(tmp_path: Path, name: str) -> str:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    return str(folder)


def test_same_owner_gets_the_same_ports(tmp_path: Path, registry: Path) -> None:
    first = Ports(registry).reserve(owner(tmp_path, "a"), NAMES)
    assert Ports(registry).reserve(owner(tmp_path, "a"), NAMES) == first
    more = Ports(registry).reserve(owner(tmp_path, "a"), [*NAMES, "four"])
    assert {name: more[name] for name in NAMES} == first
    assert registry.stat().st_mode & 0o777 == 0o600


def test_recorded_ports_are_found_without_the_registry(tmp_path: Path, registry: Path) -> None:
    """As in a cron job with another HOME, or after the cache was deleted."""
    first, folder = owner(tmp_path, "a"), tmp_path / "a"
    given = Ports(registry).reserve(first, NAMES)
    assert recorded(folder) == {}
    record(folder, given)
    elsewhere = Ports(tmp_path / "elsewhere" / "ports.json")
    assert elsewhere.reserve(first, NAMES, known=recorded(folder)) == given
    (folder / RECORD).write_text("{")
    assert recorded(folder) == {}
    assert elsewhere.reserve(first, NAMES) == given, "noted in the other registry, too"


def test_copied_record_takes_no_port_from_its_owner(tmp_path: Path, registry: Path) -> None:
    ports = Ports(registry)
    given = ports.reserve(owner(tmp_path, "a"), NAMES)
    copy = ports.reserve(owner(tmp_path, "b"), NAMES, known=given)
    assert not set(given.values()) & set(copy.values())


def test_two_owners_never_share_a_port(tmp_path: Path, registry: Path) -> None:
    ports = Ports(registry)
    first = ports.reserve(owner(tmp_path, "a"), NAMES)
    second = ports.reserve(owner(tmp_path, "b"), NAMES)
    assert not set(first.values()) & set(second.values())


def test_port_with_a_listener_is_not_assigned(tmp_path: Path, registry: Path) -> None:
    probe = Ports(tmp_path / "probe.json")
    (wanted,) = Ports(registry).reserve(owner(tmp_path, "a"), ["x"]).values()
    Ports(registry).release(owner(tmp_path, "a"))
    for address, family in (
        ("127.0.0.1", socket.AF_INET),
        ("0.0.0.0", socket.AF_INET),
        ("::", socket.AF_INET6),
    ):
        with socket.socket(family) as other:
            other.bind((address, wanted))
            other.listen()
            assert not can_listen(wanted)
            assert wanted not in Ports(registry).reserve(owner(tmp_path, "b"), NAMES).values()
        Ports(registry).release(owner(tmp_path, "b"))
    assert can_listen(wanted)
    assert probe.owners() == []


def test_ports_of_released_and_deleted_owners_are_free(
    tmp_path: Path, registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = Ports(registry)
    kept = ports.reserve(owner(tmp_path, "kept"), NAMES)
    ports.reserve(owner(tmp_path, "released"), NAMES)
    ports.reserve(owner(tmp_path, "vanished"), NAMES)
    ports.release(owner(tmp_path, "released"))
    Path(owner(tmp_path, "vanished")).rmdir()
    ports.reserve(owner(tmp_path, "new"), NAMES)
    assert ports.owners() == sorted([owner(tmp_path, "kept"), owner(tmp_path, "new")])
    assert ports.reserve(owner(tmp_path, "kept"), NAMES) == kept


def test_ports_of_a_workspace_on_an_unmounted_disk_are_kept(
    tmp_path: Path, registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise another topology could get them, and this one could never start again."""
    ports = Ports(registry)
    disk = tmp_path / "disk"
    (disk / "clusters").mkdir(parents=True)
    away = owner(disk / "clusters", "demo-core")
    given = ports.reserve(away, NAMES)
    disk.rename(tmp_path / "unplugged")
    others = ports.reserve(owner(tmp_path, "new"), NAMES)
    assert not set(given.values()) & set(others.values())
    (tmp_path / "unplugged").rename(disk)
    ports.claim(away, given)
    # Not forever: most missing folders never reappear.
    disk.rename(tmp_path / "unplugged")
    monkeypatch.setattr(ports_module, "MOST_AWAY", 1)
    ports.reserve(str(tmp_path / "second" / "demo-core"), NAMES)
    ports.reserve(owner(tmp_path, "new"), NAMES)
    assert away not in ports.owners()


def test_ports_of_an_inaccessible_workspace_are_kept(
    tmp_path: Path, registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one of another user who shares the cache folder."""
    ports = Ports(registry)
    theirs = Path(owner(tmp_path, "theirs"))
    given = ports.reserve(str(theirs / "demo-core"), NAMES)
    stat = Path.stat

    def denied(path: Path, **more: bool) -> os.stat_result:
        # Not by the folder's mode, since root may access every folder.
        if path.is_relative_to(theirs):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, **more)

    monkeypatch.setattr(Path, "stat", denied)
    others = ports.reserve(owner(tmp_path, "new"), NAMES)
    assert not set(given.values()) & set(others.values())
    assert str(theirs / "demo-core") in ports.owners()


def test_concurrent_processes_get_different_ports(tmp_path: Path, registry: Path) -> None:
    runs = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                RESERVE,
                str(registry),
                *(owner(tmp_path, f"{run}-{n}") for n in range(8)),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for run in range(4)
    ]
    given = []
    for run in runs:
        out, _ = run.communicate(timeout=60)
        assert run.returncode == 0
        given += [port for line in out.splitlines() for port in json.loads(line).values()]
    assert len(given) == 4 * 8 * 4
    assert len(set(given)) == len(given)


def test_ports_can_be_claimed_after_the_registry_was_lost(tmp_path: Path, registry: Path) -> None:
    mine = Ports(registry).reserve(owner(tmp_path, "a"), NAMES)
    registry.unlink()
    Ports(registry).claim(owner(tmp_path, "a"), mine)
    Ports(registry).claim(owner(tmp_path, "a"), mine)
    assert Ports(registry).reserve(owner(tmp_path, "a"), NAMES) == mine
    with pytest.raises(UcpError, match="was reassigned to") as refused:
        Ports(registry).claim(owner(tmp_path, "b"), mine)
    assert f"delete its entry from {registry}" in str(refused.value.next)


def test_damaged_registry_is_reported(tmp_path: Path, registry: Path) -> None:
    registry.parent.mkdir()
    for text in ("{", "[]", '{"a": 1}', '{"a": {"b": "c"}}'):
        registry.write_text(text)
        with pytest.raises(UcpError, match="damaged"):
            Ports(registry).reserve(owner(tmp_path, "a"), NAMES)


def test_locked_registry_is_awaited_until_the_deadline(
    tmp_path: Path, registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports_module, "LOCK_SECONDS", 0.2)
    registry.parent.mkdir()
    with (
        locked(registry.with_name("ports.json.lock"), "the lock", timeout=1),
        pytest.raises(DeadlineExceeded, match="port registry"),
    ):
        Ports(registry).reserve(owner(tmp_path, "a"), NAMES)
