"""The configuration that kwokctl gets, and its output."""

from __future__ import annotations

import json
from pathlib import Path

from ruamel.yaml import YAML

from k8s_ucp.clusters.embedded.folder import PORTS, ClusterFolder
from k8s_ucp.clusters.embedded.kwokctl import explain, settings, update, updated
from k8s_ucp.clusters.embedded.programs import RUN

PROGRAM_PATHS = {each: Path("/tools") / each for each in (*RUN, "true")}

OLDER = """components:
- args:
  - --etcd-prefix=/registry
  - --etcd-servers=unix://client.sock
  name: kube-apiserver
- args:
  - --node-monitor-grace-period=87600h0m0s
  name: kube-controller-manager
- args:
  - --config=/my files/one/.kwok/clusters/one/kwok.yaml
  name: kwok-controller
---
kind: KwokctlResource
"""
"""A definition that an older version wrote."""


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


def test_a_cluster_of_an_older_ucp_gets_the_current_arguments_and_stages() -> None:
    folder = ClusterFolder(Path("/my files"), "one")
    text = updated(OLDER, folder)
    definition = next(iter(YAML(typ="safe").load_all(text)))
    arguments = {each["name"]: each["args"] for each in definition["components"]}
    assert "--advertise-address=127.0.0.1" in arguments["kube-apiserver"]
    assert "--etcd-servers=unix://client.sock" in arguments["kube-apiserver"]
    off = arguments["kube-controller-manager"][1]
    assert off.startswith("--controllers=*,-horizontal-pod-autoscaler-controller,")
    assert arguments["kwok-controller"] == ["--config=/my files/one/stages.yaml"]
    assert updated(text, folder) == text


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


def test_components_changed_by_an_update_are_restarted(tmp_path: Path) -> None:
    """A changed argument of the API server, too: otherwise it would come with some later start."""
    folder = ClusterFolder(tmp_path, "one")
    folder.home.mkdir(parents=True)
    definition = folder.home / "kwok.yaml"
    older = OLDER.replace("/my files", str(tmp_path))
    definition.write_text(older)
    assert update(folder, None) == ["kube-apiserver", "kube-controller-manager", "kwok-controller"]
    assert update(folder, None) == []
    definition.write_text(
        updated(older, folder).replace("  - '--advertise-address=127.0.0.1'\n", "")
    )
    assert update(folder, None) == ["kube-apiserver"]
