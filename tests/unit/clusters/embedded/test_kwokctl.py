"""The configuration that kwokctl gets, and its output."""

from __future__ import annotations

import json
from pathlib import Path

from k8s_ucp.clusters.embedded.folder import PORTS, ClusterFolder
from k8s_ucp.clusters.embedded.kwokctl import explain, settings
from k8s_ucp.clusters.embedded.programs import RUN

PROGRAM_PATHS = {each: Path("/tools") / each for each in (*RUN, "true")}


def told() -> dict[str, object]:
    ports = {name: 20000 + number for number, name in enumerate(PORTS)}
    folder = ClusterFolder(Path("/clusters"), "one")
    return settings(folder, ports, PROGRAM_PATHS, "token", version="v1.35.4", gogc=150)


def test_every_port_is_set_and_servers_bind_to_loopback() -> None:
    options = told()["options"]
    assert isinstance(options, dict)
    assert options["bindAddress"] == "127.0.0.1"
    given = {key: value for key, value in options.items() if key.endswith("Port")}
    assert sorted(given.values()) == [1, 1, *(20000 + number for number in range(len(PORTS)))]


def test_every_program_has_a_local_path_so_nothing_is_downloaded() -> None:
    options = told()["options"]
    assert isinstance(options, dict)
    assert sorted(value for key, value in options.items() if key.endswith("Binary")) == sorted(
        str(path) for path in PROGRAM_PATHS.values()
    )


def test_etcd_listens_on_unix_sockets_only() -> None:
    text = json.dumps(told())
    assert "http" not in text
    assert text.count("unix://client.sock") == 3
    assert text.count("unix://peer.sock") == 3


def test_errors_are_extracted_from_the_log() -> None:
    lines = [
        {"level": "INFO", "msg": "Cluster is creating"},
        {"level": "ERROR", "msg": "Failed to setup config", "err": "no space left on device"},
    ]
    output = "\n".join(json.dumps(line) for line in lines)
    assert explain(output) == "Failed to setup config: no space left on device"
    assert explain("panic: oh\n") == "panic: oh"
    assert explain("") == "no output"


def test_etcd_keeps_few_entries_for_members_to_catch_up() -> None:
    patches = told()["componentsPatches"]
    assert isinstance(patches, list)
    given = [each for patch in patches if patch["name"] == "etcd" for each in patch["extraArgs"]]
    assert {"key": "snapshot-catchup-entries", "value": "100"} in given


def test_etcd_elects_itself_within_a_quarter_of_a_second() -> None:
    """etcd rejects an election timeout of less than five heartbeats."""
    given = {
        each["key"]: int(each["value"])
        for patch in told()["componentsPatches"]
        if patch["name"] == "etcd"
        for each in patch["extraArgs"]
        if each["key"] in ("election-timeout", "heartbeat-interval")
    }
    assert 5 * given["heartbeat-interval"] <= given["election-timeout"] <= 250
