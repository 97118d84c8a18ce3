"""The configuration that kind gets, and what is read from a node's container."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.clusters.container_engine import MARKS, ContainerNode, read_info, read_node
from k8s_ucp.clusters.kind.config import KindSettings, config_text, image_version, kubeconfig
from k8s_ucp.clusters.kind.nodes import addresses
from k8s_ucp.errors import UcpError


def config(**settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(config_text(KindSettings("demo-core", 24000, **settings)))
    return found


def test_the_node_publishes_ports_on_loopback_only_and_is_labeled_for_ingress() -> None:
    found = config(ports={80: 8080, 443: 8443})
    assert found["networking"] == {"apiServerAddress": "127.0.0.1", "apiServerPort": 24000}
    (node,) = found["nodes"]
    assert node["labels"] == {"ingress-ready": "true"}
    mapped = {(each["containerPort"], each["hostPort"]) for each in node["extraPortMappings"]}
    assert mapped == {(80, 8080), (443, 8443)}
    assert {each["listenAddress"] for each in node["extraPortMappings"]} == {"127.0.0.1"}


def test_folders_are_mounted_read_only() -> None:
    (node,) = config(mounts={"/srv/git": Path("/home/me/my files")})["nodes"]
    assert node["extraMounts"] == [
        {"hostPath": "/home/me/my files", "containerPath": "/srv/git", "readOnly": True}
    ]


@pytest.mark.parametrize(("cgroup", "patched"), [(1, True), (2, False)])
def test_the_kubelet_accepts_cgroup_v1_only_on_machines_that_use_it(
    cgroup: int, patched: bool
) -> None:
    patches = config(cgroup=cgroup).get("kubeadmConfigPatches", [])
    assert any("failCgroupV1: false" in each for each in patches) is patched


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("kindest/node:v1.37.0@sha256:" + "a" * 64, "v1.37.0"),
        ("registry.local:5000/node:v1.35.4", "v1.35.4"),
        ("registry.local:5000/node", None),
        ("node:latest", None),
        ("node@sha256:" + "a" * 64, None),
    ],
)
def test_the_kubernetes_version_is_read_from_the_node_image_tag(
    image: str, version: str | None
) -> None:
    assert image_version(image) == version


def test_the_kubeconfig_has_one_context_named_after_the_cluster() -> None:
    admin = {
        "clusters": [{"name": "kubernetes", "cluster": {"certificate-authority-data": "Y2E="}}],
        "users": [
            {"name": "a", "user": {"client-certificate-data": "Yw==", "client-key-data": "aw=="}}
        ],
    }
    found = kubeconfig("demo-stage", admin, "https://demo-stage-control-plane:6443")
    assert found["current-context"] == "demo-stage"
    assert [each["name"] for each in found["contexts"]] == ["demo-stage"]
    assert found["clusters"][0]["cluster"] == {
        "server": "https://demo-stage-control-plane:6443",
        "certificate-authority-data": "Y2E=",
    }


def inspected(**changes: Any) -> dict[str, Any]:
    """As `docker inspect` shows a node."""
    return {
        "Id": "abc",
        "Name": "/demo-stage-control-plane",
        "Config": {"Labels": {"io.x-k8s.kind.cluster": "demo-stage"}},
        "State": {"Running": True},
        "Mounts": [
            {"Source": "/cache/kind-mark", "Destination": MARKS + "0123"},
            {"Source": "/lib/modules", "Destination": "/lib/modules"},
        ],
        "HostConfig": {
            "PortBindings": {
                "6443/tcp": [{"HostIp": "127.0.0.1", "HostPort": "24000"}],
                "80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "24001"}],
            }
        },
        **changes,
    }


def test_owner_and_ports_are_read_from_a_node() -> None:
    node = read_node(inspected())
    assert (node.name, node.cluster, node.owner) == (
        "demo-stage-control-plane",
        "demo-stage",
        "0123",
    )
    assert node.running
    assert node.ports == {6443: ("127.0.0.1", 24000), 80: ("127.0.0.1", 24001)}
    assert addresses(node) == {"http": "127.0.0.1:24001"}


def test_the_inspect_formats_of_podman_and_nerdctl_are_read() -> None:
    assert read_node(inspected(Name="plain")).name == "plain"
    ports = {"443/tcp": [{"HostIp": "", "HostPort": "24002"}], "80/tcp": None}
    node = read_node(inspected(HostConfig={}, NetworkSettings={"Ports": ports}))
    assert node.ports == {443: ("127.0.0.1", 24002)}


@pytest.mark.parametrize(
    "mounts",
    [
        None,
        [],
        [{"Source": "/a", "Destination": "/b"}],
        # With two marks, the owner is ambiguous.
        [
            {"Source": "/a", "Destination": MARKS + "a"},
            {"Source": "/a", "Destination": MARKS + "b"},
        ],
    ],
)
def test_a_node_without_exactly_one_mark_has_no_owner(mounts: Any) -> None:
    assert read_node(inspected(Mounts=mounts)).owner == ""


def test_a_node_with_only_id_and_name_is_read() -> None:
    assert read_node({"Id": "a", "Name": "b"}) == ContainerNode("a", "b", "", False, "")


def test_memory_cgroup_and_rootless_mode_are_read_from_each_engine() -> None:
    docker = {"MemTotal": 8 * 10**9, "CgroupVersion": "1", "SecurityOptions": ["name=seccomp"]}
    assert (read_info(docker).memory, read_info(docker).cgroup) == (8 * 10**9, 1)
    assert not read_info(docker).rootless
    assert read_info({"SecurityOptions": ["name=rootless"], "CgroupVersion": "2"}).rootless
    podman = {"host": {"memTotal": 5, "cgroupVersion": "v1", "security": {"rootless": True}}}
    found = read_info(podman)
    assert (found.memory, found.cgroup, found.rootless) == (5, 1, True)
    with pytest.raises(UcpError, match="is not running"):
        read_info({"ServerErrors": ["Cannot connect"]})
