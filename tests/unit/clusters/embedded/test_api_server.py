"""What is said if a program of a control plane exits."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from k8s_ucp.clusters.embedded.api_server import is_damage, wait_serving
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.errors import UcpError
from k8s_ucp.loopback import ADDRESS


@pytest.mark.parametrize(
    ("error", "damaged"),
    [("walpb: crc mismatch", True), ("bind: address already in use", False)],
)
def test_damaged_data_of_etcd_is_reported_with_the_commands_that_replace_it(
    tmp_path: Path, error: str, damaged: bool
) -> None:
    folder = ClusterFolder(tmp_path, "one")
    log = folder.log("etcd")
    log.parent.mkdir(parents=True)
    line = {"level": "fatal", "msg": "discovery failed", "error": error, "stacktrace": "main.go"}
    log.write_text(json.dumps(line, separators=(",", ":")) + "\n")
    config = {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
        "clusters": [{"name": "one", "cluster": {"server": f"https://{ADDRESS}:1"}}],
        "users": [{"name": "one", "user": {"token": "none"}}],
    }
    with pytest.raises(UcpError) as caught:
        wait_serving(folder, config, until=time.monotonic() + 10)
    assert caught.value.message == f"etcd of cluster one exited: discovery failed: {error}"
    assert ("ucp recreate" in (caught.value.next or "")) is damaged


@pytest.mark.parametrize(
    ("words", "damaged"),
    [
        ("panic: runtime error: invalid memory address or nil pointer dereference", True),
        ("Opening bbolt db (/a/db) failed: invalid database\npanic: failed to open database", True),
        ("failed to create WAL: no space left on device\npanic: failed to save", False),
        ("bind: address already in use", False),
    ],
)
def test_a_panic_of_etcd_is_damaged_data_unless_the_disk_is_the_cause(
    words: str, damaged: bool
) -> None:
    assert is_damage(words) is damaged
