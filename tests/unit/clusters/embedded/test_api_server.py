"""What is said if a program of a control plane exits, and what waits for a busy API server."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.clusters.embedded import api_server
from k8s_ucp.clusters.embedded.api_server import add_nodes, is_damage, wait_serving
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import Kind, Unreachable
from k8s_ucp.loopback import ADDRESS


def _death_of_etcd(folder: Path, log: str) -> UcpError:
    """The error for a cluster whose etcd wrote this log and exited."""
    cluster = ClusterFolder(folder, "one")
    cluster.log("etcd").parent.mkdir(parents=True)
    cluster.log("etcd").write_text(log)
    config = {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
        "clusters": [{"name": "one", "cluster": {"server": f"https://{ADDRESS}:1"}}],
        "users": [{"name": "one", "user": {"token": "none"}}],
    }
    with pytest.raises(UcpError) as caught:
        wait_serving(cluster, config, until=time.monotonic() + 10)
    return caught.value


@pytest.mark.parametrize(
    ("error", "damaged"),
    [("walpb: crc mismatch", True), ("bind: address already in use", False)],
)
def test_damaged_data_of_etcd_is_reported_with_the_commands_that_replace_it(
    tmp_path: Path, error: str, damaged: bool
) -> None:
    line = {"level": "fatal", "msg": "discovery failed", "error": error, "stacktrace": "main.go"}
    found = _death_of_etcd(tmp_path, json.dumps(line, separators=(",", ":")) + "\n")
    assert found.message == f"etcd of cluster one exited: discovery failed: {error}"
    assert ("ucp recreate" in (found.next or "")) is damaged


def test_a_fault_of_etcd_is_reported_without_its_stack_trace(tmp_path: Path) -> None:
    """As after its database was truncated while it ran."""
    found = _death_of_etcd(
        tmp_path,
        "unexpected fault address 0x7f0630bc6000\nfatal error: fault\n"
        "[signal SIGBUS: bus error code=0x2 addr=0x7f0630bc6000 pc=0xa70dd7]\n\n"
        "goroutine 1 [running]:\nruntime.throw({0x1, 0x5})\n\truntime/panic.go:1229 +0x48\n",
    )
    assert found.message == "etcd of cluster one exited: fatal error: fault"
    assert "ucp recreate" in (found.next or "")


@pytest.mark.parametrize(
    ("words", "damaged"),
    [
        ("panic: runtime error: invalid memory address or nil pointer dereference", True),
        ("Opening bbolt db (/a/db) failed: invalid database\npanic: failed to open database", True),
        ("failed to create WAL: no space left on device\npanic: failed to save", False),
        ("bind: address already in use", False),
        ("fatal error: newosproc", False),
    ],
)
def test_a_panic_of_etcd_is_damaged_data_unless_the_disk_is_the_cause(
    words: str, damaged: bool
) -> None:
    assert is_damage(words) is damaged


class _Busy:
    """An API server some of whose responses are lost. lost: numbers of these requests."""

    def __init__(self, lost: set[int]) -> None:
        self.nodes: list[dict[str, Any]] = []
        self._lost, self._requests = lost, 0

    def list_all(self, kind: Kind) -> list[dict[str, Any]]:
        self._respond()
        return list(self.nodes)

    def create(self, node: dict[str, Any]) -> None:
        self.nodes.append(node)
        self._respond()

    def _respond(self) -> None:
        self._requests += 1
        if self._requests in self._lost:
            raise Unreachable("no response within 10 s")

    def close(self) -> None: ...


def test_nodes_are_added_to_a_busy_api_server_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    server = _Busy(lost={1, 3})
    monkeypatch.setattr(api_server, "Kube", lambda config: server)
    add_nodes({}, 3, until=time.monotonic() + 10)
    assert [each["metadata"]["name"] for each in server.nodes] == ["node-0", "node-1", "node-2"]


def test_a_silent_api_server_is_asked_for_its_nodes_until_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(api_server, "Kube", lambda config: _Busy(lost={*range(1000)}))
    with pytest.raises(Unreachable):
        add_nodes({}, 1, until=time.monotonic())
