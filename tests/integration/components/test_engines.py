"""All components on a real core cluster: well, private, and back after any death."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from k8s_ucp import process
from k8s_ucp.components import argocd
from k8s_ucp.components.argocd import initial_credentials
from k8s_ucp.components.host.certificates import Certificates
from k8s_ucp.kube import SECRET
from k8s_ucp.tools.toolbox import Toolbox
from tests.control_planes import control_planes, eventually

from .stack import PROGRAMS, Stack, stack

pytestmark = pytest.mark.engines

BACK_SECONDS = 60.0
"""Generous: how fast it is on an idle machine is for the benchmarks to say."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, toolbox: Toolbox) -> Iterator[Stack]:
    root = tmp_path_factory.mktemp("stack")
    runtime = Path(f"/tmp/ucp-test-{os.getpid()}/stack")
    with control_planes(root, toolbox) as planes, stack(planes, runtime, toolbox) as found:
        yield found
    assert not runtime.exists()
    runtime.parent.rmdir()


def test_everything_runs_once(running: Stack) -> None:
    assert set(running.pids()) == set(PROGRAMS)
    assert sorted(each.pid for each in running.processes()) == sorted(running.pids().values())


def test_every_listener_is_on_loopback(running: Stack) -> None:
    for name, pid in running.pids().items():
        found = process.listeners(pid)
        assert all(address == "127.0.0.1" for address, _ in found), (name, found)
        if name not in ("watcher",):
            assert found, name


def test_ports_are_the_reserved_ones(running: Stack) -> None:
    ports = {port for pid in running.pids().values() for _, port in process.listeners(pid)}
    assert ports == set(running.host.ports.values())


def test_no_secret_in_any_argument_or_log(running: Stack) -> None:
    credentials = initial_credentials(running.kube)
    assert credentials.user == "admin"
    assert credentials.password
    secrets = [running.redis.password(), credentials.password]
    for each in psutil.process_iter():
        try:
            words = " ".join(each.cmdline())
        except psutil.Error:
            continue
        assert not any(secret in words for secret in secrets), each
    for log in running.host.state.logs.iterdir():
        text = log.read_text(errors="replace")
        assert not any(secret in text for secret in secrets), log


HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""How a client begins: HTTP/2's preface and its settings, of which there are none."""


def hello(stack: Stack, client: Certificates | None, *, secured: bool = True) -> bytes:
    """What the repo-server says to whoever connects; raises OSError where it hangs up."""
    context = ssl.create_default_context(cafile=str(stack.argocd.certificates.authority))
    context.set_alpn_protocols(["h2"])
    if client:
        context.load_cert_chain(*client.client)
    address = ("127.0.0.1", stack.host.ports[argocd.REPO_SERVER])
    with socket.create_connection(address, timeout=60) as plain:
        if not secured:
            plain.sendall(HELLO)
            return plain.recv(9)
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as found:
            found.sendall(HELLO)
            return found.recv(9)


def test_the_repo_server_turns_strangers_away(running: Stack, tmp_path: Path) -> None:
    """It runs any program for whoever gets in, and every user of the machine can connect."""
    settings = b"\0\0"
    answer = hello(running, running.argocd.certificates)
    assert answer.startswith(settings) and answer[3] == 4
    others = Certificates(tmp_path / "others")
    others.ensure()
    for client in (None, others):
        with pytest.raises(OSError):
            hello(running, client)
    with suppress(ConnectionError):
        # TLS's own alert, or nothing.
        assert hello(running, None, secured=False)[:1] in (b"", b"\x15")


def test_state_is_private(running: Stack) -> None:
    for path in running.host.state.components.rglob("*"):
        mode = path.lstat().st_mode & 0o777
        assert not mode & 0o077 or path.is_symlink(), (path, oct(mode))


def test_a_second_run_changes_nothing(running: Stack) -> None:
    before = running.pids()
    version = running.kube.get(SECRET, "argocd-secret", argocd.NAMESPACE)["metadata"]
    running.up()
    assert running.pids() == before
    after = running.kube.get(SECRET, "argocd-secret", argocd.NAMESPACE)["metadata"]
    assert after["resourceVersion"] == version["resourceVersion"]


def test_a_source_build_has_no_web_ui(running: Stack) -> None:
    assert argocd.ui_available(running.host.ports[argocd.SERVER]) is False


def test_an_application_is_synced(running: Stack, tmp_path: Path) -> None:
    """redis, repo-server with its wrappers and kustomize, and the controller, together."""
    repository = tmp_path / "a repo"
    repository.mkdir()
    (repository / "kustomization.yaml").write_text("resources: [it.yaml]\nnamePrefix: my-\n")
    (repository / "it.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: it}\ndata: {a: b}\n"
    )
    git = ("git", "-C", str(repository), "-c", "user.name=t", "-c", "user.email=t@localhost")
    for words in (("init", "-qb", "main"), ("add", "-A"), ("commit", "-qm", "it")):
        subprocess.run([*git, *words], check=True)
    running.kube.apply(
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": "it", "namespace": argocd.NAMESPACE},
            "spec": {
                "project": "default",
                "source": {
                    "repoURL": f"file://{repository}",
                    "path": ".",
                    "targetRevision": "main",
                },
                "destination": {"name": "in-cluster", "namespace": "default"},
                "syncPolicy": {"automated": {}},
            },
        }
    )
    kind = running.kube.kind_of("argoproj.io/v1alpha1", "Application")

    def state() -> tuple[object, object]:
        status = running.kube.get(kind, "it", argocd.NAMESPACE).get("status", {})
        conditions = status.get("conditions")
        return status.get("sync", {}).get("status"), conditions

    eventually(lambda: state()[0] == "Synced", state)
    maps = running.kube.kind_of("v1", "ConfigMap")
    assert running.kube.get(maps, "my-it", "default")["data"] == {"a": "b"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_killed_program_is_back(running: Stack, name: str) -> None:
    killed = running.pid(name)
    os.kill(killed, signal.SIGKILL)
    running.wait_for_new(name, killed, BACK_SECONDS)
    running.wait_well(BACK_SECONDS)


def test_a_killed_supervisord_is_back_with_everything_once(running: Stack) -> None:
    before = running.pids()
    supervisor = running.placement.supervisor()
    assert supervisor
    os.kill(supervisor.pid, signal.SIGKILL)
    for name, pid in before.items():
        running.wait_for_new(name, pid, BACK_SECONDS)
    running.wait_well(BACK_SECONDS)
    eventually(lambda: len(running.processes()) == len(PROGRAMS), running.processes)
    assert sorted(each.pid for each in running.processes()) == sorted(running.pids().values())
    # A dead process may stay listed where nobody collects orphans: identify knows.
    assert [process.identify(pid) for pid in before.values()] == [None] * len(before)


def test_a_removed_socket_is_mended(running: Stack) -> None:
    (running.placement.runtime / "supervisor.sock").unlink()
    eventually(running.placement.is_running, running.placement.states)
    running.wait_well(BACK_SECONDS)
    eventually(lambda: len(running.processes()) == len(PROGRAMS), running.processes)


def test_a_killed_api_server_is_back(running: Stack) -> None:
    folder = running.host.state.clusters
    [server] = [
        each
        for each in process.working_in(folder)
        if Path(each.executable).name == "kube-apiserver"
    ]
    os.kill(server.pid, signal.SIGKILL)
    eventually(lambda: running.kube.ready(), running.placement.states, BACK_SECONDS)
    running.wait_well(BACK_SECONDS)


def test_stop_is_quick_and_a_start_brings_the_same_back(running: Stack) -> None:
    password = running.redis.password()
    began = time.monotonic()
    running.placement.stop_all()
    assert time.monotonic() - began < 5
    assert not running.processes()
    assert not running.placement.runtime.exists()
    time.sleep(2)
    assert not running.processes(), "something brought it back"
    running.up()
    assert running.redis.password() == password
    assert set(running.pids()) == set(PROGRAMS)
