"""Refusals before a kind cluster is created: one message with the next step.

The container engines are stand-ins that answer as the real ones do in these states.
"""

from __future__ import annotations

import json
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.cluster_provider import ClusterRequest
from k8s_ucp.clusters.container_engine import CHOICE, MARKS, ContainerEngine
from k8s_ucp.clusters.kind import checks as kind_checks
from k8s_ucp.clusters.kind.provider import KindProvider
from k8s_ucp.clusters.ports import Ports
from k8s_ucp.errors import ProgramMissing, UcpError, UsageError

INFO = {"MemTotal": 16 * 10**9, "CgroupVersion": "2", "SecurityOptions": []}
STOPPED = {
    "docker": "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. "
    "Is the docker daemon running?",
    "podman": "Cannot connect to Podman. Please verify your connection to the Linux system "
    "using `podman system connection list`",
    "nerdctl": 'cannot access containerd socket "/run/containerd/containerd.sock": no such file '
    "or directory",
}
CLOSED = (
    "permission denied while trying to connect to the Docker daemon socket at "
    "unix:///var/run/docker.sock: dial unix /var/run/docker.sock: connect: permission denied"
)


class Machine:
    """A PATH that contains only what the test adds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.calls = folder / "calls"
        for each in ("sh", "cat"):
            (self.bin / each).symlink_to(f"/bin/{each}")

    def engine(self, name: str, *, error: str = "", nodes: Any = (), **info: Any) -> None:
        """Add a stand-in for docker, podman or nerdctl."""
        (self.folder / "info").write_text(json.dumps({**INFO, **info}))
        (self.folder / "nodes").write_text(json.dumps(nodes))
        (self.folder / "ids").write_text("\n".join(each["Id"] for each in nodes))
        program = self.bin / name
        program.write_text(
            "#!/bin/sh\n"
            f'echo "$*" >> "{self.calls}"\n'
            + (f"cat >&2 <<'END'\n{error}\nEND\nexit 1\n" if error else "")
            + f'case "$1" in info) cat "{self.folder}/info" ;; ps) cat "{self.folder}/ids" ;;\n'
            f'inspect) cat "{self.folder}/nodes" ;; *) exit 9 ;; esac\n'
        )
        program.chmod(stat.S_IRWXU)

    def provider(self, **settings: Any) -> KindProvider:
        return KindProvider(
            self.folder / "state",
            None,
            owner="me",
            ports=Ports(self.folder / "ports.json"),
            **settings,
        )

    def refusal(self, request: ClusterRequest, **settings: Any) -> UcpError:
        """Return the refusal of the preflight, which must not have changed anything."""
        with pytest.raises(UcpError) as caught:
            self.provider(**settings).preflight(request)
        asked = self.calls.read_text().splitlines() if self.calls.exists() else []
        assert {each.split()[0] for each in asked} <= {"info", "ps", "inspect"}
        assert not (self.folder / "state").exists()
        assert caught.value.next
        return caught.value


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine(tmp_path)
    monkeypatch.setenv("PATH", str(found.bin))
    monkeypatch.delenv(CHOICE, raising=False)
    return found


REQUEST = ClusterRequest("demo-stage")


def test_missing_container_engine_is_reported(machine: Machine) -> None:
    refusal = machine.refusal(REQUEST)
    assert isinstance(refusal, ProgramMissing)
    assert "docker.io" in str(refusal.next)
    # Without an engine no cluster can exist, so this is no error.
    assert machine.provider().names() == []
    machine.provider().delete("demo-stage")


@pytest.mark.parametrize("name", STOPPED)
def test_stopped_engine_is_reported(machine: Machine, name: str) -> None:
    machine.engine(name, error=STOPPED[name])
    refusal = machine.refusal(REQUEST)
    assert "is not running" in refusal.message
    state = machine.provider().state("demo-stage")
    assert (state.exists, state.ready) == (True, False)
    assert "is not running" in state.message


def test_missing_permission_for_the_engine_is_reported(machine: Machine) -> None:
    machine.engine("docker", error=CLOSED)
    refusal = machine.refusal(REQUEST)
    assert "permission denied" in refusal.message
    assert "usermod -aG docker" in str(refusal.next)


def test_engine_with_too_little_memory_is_refused(machine: Machine) -> None:
    machine.engine("docker", MemTotal=10**9)
    refusal = machine.refusal(REQUEST)
    assert "1000 MB" in refusal.message
    assert "Memory" in str(refusal.next)


def test_rootless_engine_on_cgroup_v1_is_refused(machine: Machine) -> None:
    machine.engine("docker", CgroupVersion="1", SecurityOptions=["name=rootless"])
    assert "cgroup v1" in machine.refusal(REQUEST).message


@pytest.mark.parametrize("owner", ["", "another-workspace"])
def test_foreign_cluster_of_the_same_name_is_refused_and_left_alone(
    machine: Machine, owner: str
) -> None:
    mounts = [{"Source": "/a", "Destination": MARKS + owner}] if owner else []
    node = {
        "Id": "abc",
        "Name": "/demo-stage-control-plane",
        "Config": {"Labels": {"io.x-k8s.kind.cluster": "demo-stage"}},
        "State": {"Running": True},
        "Mounts": mounts,
    }
    machine.engine("docker", nodes=[node])
    refusal = machine.refusal(REQUEST)
    assert "was not created by this workspace" in refusal.message
    assert "demo-stage-control-plane" in refusal.message
    # The other calls don't change it either.
    provider = machine.provider()
    provider.stop("demo-stage")
    provider.delete("demo-stage")
    assert provider.names() == []
    calls = {each.split()[0] for each in machine.calls.read_text().splitlines()}
    assert calls <= {"info", "ps", "inspect"}


def test_taken_port_is_refused(machine: Machine) -> None:
    machine.engine("docker")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refusal = machine.refusal(ClusterRequest("demo-core", ports={80: port}))
    assert f"port {port}" in refusal.message
    assert "spec.core.ports" in str(refusal.next)


def test_changed_port_of_an_existing_cluster_is_refused(machine: Machine) -> None:
    bound = {
        f"{inner}/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(outer)}]
        for inner, outer in ((80, 8080), (443, 8443))
    }
    node = {
        "Id": "abc",
        "Name": "/demo-core-control-plane",
        "Config": {"Labels": {"io.x-k8s.kind.cluster": "demo-core"}},
        "State": {"Running": True},
        "Mounts": [{"Source": "/a", "Destination": f"{MARKS}me"}],
        "HostConfig": {"PortBindings": bound},
    }
    machine.engine("docker", nodes=[node])
    refusal = machine.refusal(ClusterRequest("demo-core", ports={80: 9080, 443: 8443}))
    assert "port 8080 of this machine" in refusal.message
    assert "{http: 8080, https: 8443}" in str(refusal.next)
    machine.provider().preflight(ClusterRequest("demo-core", ports={80: 8080, 443: 8443}))
    # App clusters request no ports: theirs are assigned.
    machine.provider().preflight(ClusterRequest("demo-core"))


def test_privileged_port_on_a_rootless_engine_is_refused(machine: Machine) -> None:
    machine.engine("docker", SecurityOptions=["name=rootless"])
    info = ContainerEngine("docker").info()
    lowest = kind_checks.first_open_port()
    if lowest <= 80:
        pytest.skip("this machine lets everybody listen on port 80")
    with pytest.raises(UcpError, match=r"rootless|taken"):
        kind_checks.check_ports("demo-core", {80: 80}, info)


def test_kubernetes_version_without_a_node_image_is_refused(machine: Machine) -> None:
    machine.engine("docker")
    refusal = machine.refusal(ClusterRequest("demo-stage", version="1.20.0"))
    assert isinstance(refusal, UsageError)
    assert "images.nodeImage" in str(refusal.next)
    provider = machine.provider(node_image="node:v1.35.4")
    for version in ("1.35.4", "v1.35.4", "1.35"):
        provider.preflight(ClusterRequest("demo-stage", version=version))


def test_missing_image_archive_is_refused(machine: Machine) -> None:
    machine.engine("docker")
    refusal = machine.refusal(REQUEST, archives=[Path("/nowhere/images.tar")])
    assert "/nowhere/images.tar" in refusal.message


def test_folder_that_no_engine_can_mount_is_refused(machine: Machine) -> None:
    machine.engine("docker")
    request = ClusterRequest("demo-core", mounts={"/srv/git": Path("/home/me:you/git")})
    assert "/home/me:you/git" in machine.refusal(request).message


@pytest.mark.parametrize("name", ["max_user_watches", "max_user_instances"])
def test_low_inotify_limits_are_refused(tmp_path: Path, name: str) -> None:
    for each, value in (("max_user_watches", 10**6), ("max_user_instances", 1024)):
        (tmp_path / each).write_text(f"{value}\n")
    kind_checks.check_limits(tmp_path)
    (tmp_path / name).write_text("100\n")
    with pytest.raises(UcpError, match=name) as caught:
        kind_checks.check_limits(tmp_path, clusters=4)
    assert "sudo sysctl" in str(caught.value.next)


def test_engine_chosen_by_the_user_is_used(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.engine("docker")
    machine.engine("podman")
    assert ContainerEngine().name == "docker"
    monkeypatch.setenv(CHOICE, "podman")
    assert ContainerEngine().name == "podman"
    monkeypatch.setenv(CHOICE, "nerdctl")
    with pytest.raises(ProgramMissing, match="nerdctl"):
        _ = ContainerEngine().name
    monkeypatch.setenv(CHOICE, "rkt")
    with pytest.raises(UcpError, match="rkt"):
        _ = ContainerEngine().name
    assert os.environ["PATH"] == str(machine.bin)
