"""Properties of embedded control planes only: processes, PID files, ports and file modes."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from k8s_ucp import process
from k8s_ucp.cluster_provider import ClusterRequest
from k8s_ucp.clusters.embedded import kwokctl, program_health, programs
from k8s_ucp.clusters.embedded.folder import COMPONENTS, ClusterFolder
from k8s_ucp.clusters.embedded.processes import find_component, find_down, find_own
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.errors import DeadlineExceeded, ProgramMissing, UcpError
from k8s_ucp.kube import NAMESPACE, Kube
from k8s_ucp.process import ProcessIdentity, is_running
from k8s_ucp.tools.toolbox import Toolbox
from tests.changing_files import modes_below
from tests.control_planes import (
    ControlPlanes,
    control_planes,
    eventually,
    made,
    namespace,
    quiet,
)

pytestmark = pytest.mark.engines


def kill(identities: list[ProcessIdentity]) -> None:
    for identity in identities:
        os.kill(identity.pid, signal.SIGKILL)
    for identity in identities:
        assert process.wait_exited(identity, 10)


@pytest.fixture(scope="module")
def standing(toolbox: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlanes]:
    with control_planes(tmp_path_factory.mktemp("standing"), toolbox) as found:
        yield found


@pytest.fixture
def planes(
    request: pytest.FixtureRequest, tmp_path: Path, toolbox: Toolbox
) -> Iterator[ControlPlanes]:
    """Control planes of the test's own, or shared ones where an earlier cluster doesn't matter."""
    if hasattr(request, "param"):
        yield request.getfixturevalue(request.param)
        return
    with control_planes(tmp_path, toolbox) as found:
        yield found


on_a_standing_one = pytest.mark.parametrize("planes", ["standing"], indirect=True)


@on_a_standing_one
def test_cluster_is_private_to_this_machine_and_user(
    provider: EmbeddedProvider, folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first test on the standing one: this environment creates it.
    assert provider.names() == []
    monkeypatch.setenv("CANARY_TOKEN", "canary-secret")
    made(provider, "one")
    record = folder.record()
    assert record is not None

    # The listeners are exactly the reserved ports on the loopback interface.
    def listeners() -> set[tuple[str, int]]:
        return {each for own in find_own(folder) for each in process.listeners(own.pid)}

    wanted = {("127.0.0.1", port) for port in record.ports.values()}
    eventually(lambda: listeners() == wanted, listeners)

    # The user's environment is not passed to the processes.
    for own in find_own(folder):
        assert "CANARY_TOKEN" not in psutil.Process(own.pid).environ()

    modes = modes_below(folder.root) | {folder.lock: stat.S_IMODE(folder.lock.stat().st_mode)}
    assert {path: mode for path, mode in modes.items() if mode & 0o077} == {}


@on_a_standing_one
def test_reboot_keeps_the_data_and_foreign_processes_are_spared(
    provider: EmbeddedProvider, folder: ClusterFolder, stranger: ProcessIdentity
) -> None:
    def said() -> list[tuple[str, bool]]:
        return [(each.message, bool(each.run)) for each in provider.programs("one").values()]

    made(provider, "one").apply(namespace("precious"))
    # Wait for each program: a cluster can answer while some of them have exited.
    eventually(lambda: set(said()) == {("", True)}, lambda: str(provider.programs("one")))
    kill(find_own(folder))
    assert set(said()) == {("not running", False)}
    for component in COMPONENTS:
        folder.pid_file(component).write_text(str(stranger.pid))
    state = provider.state("one")
    assert (state.exists, state.running, state.ready) == (True, False, False)
    assert "etcd" in state.message
    provider.start("one")
    assert Kube(provider.kubeconfig("one")).find(NAMESPACE, "precious")
    assert find_down(folder) == []
    assert is_running(stranger)


@on_a_standing_one
@pytest.mark.parametrize("verb", ["stop", "delete"])
def test_pid_file_of_a_foreign_process_spares_it_and_ends_our_process(
    provider: EmbeddedProvider, folder: ClusterFolder, stranger: ProcessIdentity, verb: str
) -> None:
    made(provider, "one")
    own = find_own(folder)
    assert len(own) == len(COMPONENTS)
    for component in COMPONENTS:
        folder.pid_file(component).write_text(str(stranger.pid))
    getattr(provider, verb)("one")
    assert is_running(stranger)
    assert not [each for each in own if is_running(each)]


@on_a_standing_one
def test_processes_without_a_pid_file_are_replaced(
    provider: EmbeddedProvider, folder: ClusterFolder
) -> None:
    made(provider, "one").apply(namespace("precious"))
    lost = find_component(folder, "etcd")
    assert lost is not None
    folder.pid_file("etcd").unlink()
    provider.start("one")
    assert not is_running(lost)
    assert len(find_own(folder)) == len(COMPONENTS)
    assert Kube(provider.kubeconfig("one")).find(NAMESPACE, "precious")


@on_a_standing_one
def test_programs_that_hang_are_replaced_by_a_start(
    provider: EmbeddedProvider, folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_health, "SETTLED_SECONDS", 0.0)
    monkeypatch.setattr(program_health, "HUNG_SECONDS", 2.0)
    made(provider, "one").apply(namespace("precious"))
    hung = [find_component(folder, each) for each in ("etcd", "kube-scheduler")]
    for each in hung:
        assert each is not None
        os.kill(each.pid, signal.SIGSTOP)
    try:
        provider.start("one")
        assert not [each for each in hung if each and is_running(each)]
        assert len(find_own(folder)) == len(COMPONENTS)
        assert Kube(provider.kubeconfig("one")).find(NAMESPACE, "precious")
    finally:
        for each in hung:
            if each and is_running(each):
                os.kill(each.pid, signal.SIGCONT)


@on_a_standing_one
def test_a_scheduler_that_hangs_is_told_from_one_that_runs(
    provider: EmbeddedProvider, folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_health, "SECONDS", 0.5)
    monkeypatch.setattr(program_health, "QUICK_SECONDS", 0.1)
    monkeypatch.setattr(program_health, "SETTLED_SECONDS", 0.0)
    made(provider, "one")
    hung = find_component(folder, "kube-scheduler")
    assert hung is not None
    os.kill(hung.pid, signal.SIGSTOP)
    try:
        state = provider.programs("one")["kube-scheduler"]
        cluster = provider.state("one")
    finally:
        os.kill(hung.pid, signal.SIGCONT)
    assert state.run.startswith(str(hung.pid))
    assert "timed out" in state.message
    # The reconciler starts a cluster that is not ready for a while, which replaces the program.
    assert (cluster.running, cluster.ready) == (True, False)
    assert "kube-scheduler" in cluster.message
    eventually(lambda: not provider.programs("one")["kube-scheduler"].message)


@on_a_standing_one
def test_deleted_folder_does_not_block_a_new_cluster(
    provider: EmbeddedProvider, folder: ClusterFolder
) -> None:
    made(provider, "one")
    old = find_own(folder)
    shutil.rmtree(folder.root)
    made(provider, "one")
    assert not [each for each in old if is_running(each)]
    assert len(find_own(folder)) == len(COMPONENTS)


@on_a_standing_one
def test_interrupted_creation_is_started_anew(
    provider: EmbeddedProvider, folder: ClusterFolder
) -> None:
    made(provider, "one")
    old = find_own(folder)
    # What a creation leaves before its last step.
    folder.record_file.replace(folder.incomplete_mark)
    folder.mark_stopped()
    state = provider.state("one")
    assert (state.exists, state.ready) == (True, False)
    assert "interrupted" in state.message
    with pytest.raises(UcpError, match="still being created") as caught:
        provider.kubeconfig("one")
    assert str(caught.value.next).startswith("ucp status")
    assert provider.names() == ["one"]
    made(provider, "one")
    assert not [each for each in old if is_running(each)]


@on_a_standing_one
@pytest.mark.parametrize(("left", "stopped"), [("", False), (None, True)])
def test_a_lost_or_truncated_record_does_not_cost_a_cluster_its_data(
    provider: EmbeddedProvider, folder: ClusterFolder, left: str | None, *, stopped: bool
) -> None:
    made(provider, "one").apply(namespace("precious"))
    record = folder.record()
    if stopped:
        provider.stop("one")
    if left is None:
        folder.record_file.unlink()
    else:
        folder.record_file.write_text(left)
    assert folder.record() == record
    assert provider.state("one").ready is not stopped
    assert made(provider, "one").find(NAMESPACE, "precious")
    assert folder.record_file.read_text()


@on_a_standing_one
def test_lost_keys_are_replaced_by_a_start(
    provider: EmbeddedProvider, folder: ClusterFolder
) -> None:
    """As after a power failure, which can leave files of zeros."""
    made(provider, "one").apply(namespace("precious"))
    store = find_component(folder, "etcd")
    folder.certificate("admin.key").write_bytes(b"\0" * 227)
    state = provider.state("one")
    assert (state.running, state.ready) == (True, False)
    assert made(provider, "one").find(NAMESPACE, "precious")
    assert find_down(folder) == []
    assert find_component(folder, "etcd") == store


CREATE = """
import sys
from pathlib import Path
from k8s_ucp.cluster_provider import ClusterRequest
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.tools.toolbox import Toolbox
programs = {name: Path(path) for name, path in (each.split("=", 1) for each in sys.argv[2:])}
provider = EmbeddedProvider(Path(sys.argv[1]), Toolbox(programs, {}))
print("begun", flush=True)
provider.create(ClusterRequest("one"), lambda line: None)
"""


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(0.5, marks=pytest.mark.slow),
        *(pytest.param(each, marks=pytest.mark.soak) for each in (0.1, 0.3, 1.0)),
    ],
)
def test_killed_creation_is_recovered_by_the_next_one(
    planes: ControlPlanes, provider: EmbeddedProvider, folder: ClusterFolder, seconds: float
) -> None:
    programs = [f"{name}={path}" for name, path in planes.toolbox.programs.items()]
    with subprocess.Popen(
        [sys.executable, "-c", CREATE, str(planes.folder()), *programs], stdout=subprocess.PIPE
    ) as creation:
        assert creation.stdout is not None
        assert creation.stdout.readline() == b"begun\n"
        time.sleep(seconds)
        creation.kill()
    made(provider, "one").apply(namespace("precious"))
    assert sorted(Path(own.executable).name for own in planes.processes()) == sorted(
        folder.program(component).resolve().name for component in COMPONENTS
    )


def test_full_disk_is_reported_and_leaves_nothing_behind(
    planes: ControlPlanes, provider: EmbeddedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object, **settings: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(kwokctl, "write_settings", full)
    with pytest.raises(UcpError, match="No space left on device"):
        provider.create(ClusterRequest("one"), quiet)
    assert list(planes.folder().iterdir()) == []


@on_a_standing_one
def test_taken_port_is_reported_and_start_works_after_its_release(
    provider: EmbeddedProvider, folder: ClusterFolder
) -> None:
    made(provider, "one").apply(namespace("precious"))
    provider.stop("one")
    record = folder.record()
    assert record is not None
    port = record.ports["kube-apiserver"]
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        with pytest.raises(UcpError, match=f"port {port} of kube-apiserver"):
            provider.start("one")
    provider.start("one")
    assert Kube(provider.kubeconfig("one")).find(NAMESPACE, "precious")


def test_cluster_that_other_machines_could_reach_is_refused(
    planes: ControlPlanes, provider: EmbeddedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = kwokctl.settings

    def exposed(*arguments: object, **given: object) -> dict[str, object]:
        settings = real(*arguments, **given)  # type: ignore[arg-type]
        settings["options"]["bindAddress"] = "0.0.0.0"
        return settings

    monkeypatch.setattr(kwokctl, "settings", exposed)
    with pytest.raises(UcpError, match="kube-apiserver listens on"):
        provider.create(ClusterRequest("one"), quiet)
    assert planes.processes() == []
    assert provider.names() == []


def test_port_that_is_taken_at_the_last_moment_is_reported(
    planes: ControlPlanes,
    provider: EmbeddedProvider,
    folder: ClusterFolder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = kwokctl.create
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def late(folder: ClusterFolder, *, defined: bool, timeout: float) -> None:
            names = ["kube-apiserver"]
            other.bind(("127.0.0.1", planes.ports.reserve(str(folder.root), names)[names[0]]))
            other.listen()
            real(folder, defined=defined, timeout=timeout)

        monkeypatch.setattr(kwokctl, "create", late)
        with pytest.raises(
            UcpError, match=r"kube-apiserver of cluster one exited(.|\n)*already in use"
        ):
            provider.create(ClusterRequest("one"), quiet)
    assert planes.processes() == []
    assert provider.names() == []


@on_a_standing_one
def test_port_that_another_program_got_meanwhile_is_an_obstacle(
    provider: EmbeddedProvider, folder: ClusterFolder
) -> None:
    made(provider, "one")
    assert provider.state("one").obstacle is None
    provider.stop("one")
    record = folder.record()
    assert record is not None
    port = record.ports["kube-apiserver"]
    with socket.create_server(("127.0.0.1", port)):
        obstacle = provider.state("one").obstacle
        with pytest.raises(UcpError) as refused:
            provider.start("one")
    assert str(refused.value) == str(obstacle)
    assert f"port {port} of kube-apiserver in cluster one is already in use" in str(obstacle)
    assert f"next: stop it: kill {os.getpid()}" in str(obstacle)
    assert provider.state("one").obstacle is None
    provider.start("one")


@on_a_standing_one
def test_hanging_kwokctl_is_killed_at_the_deadline(
    tmp_path: Path, provider: EmbeddedProvider, folder: ClusterFolder
) -> None:
    made(provider, "one")
    provider.stop("one")
    hanging = tmp_path / "kwokctl"
    hanging.write_text("#!/bin/sh\nexec /bin/sleep 600\n")
    hanging.chmod(0o700)
    real = folder.kwokctl.readlink()
    folder.link(folder.kwokctl, hanging)
    with pytest.raises(DeadlineExceeded, match="kwokctl"):
        provider.start("one", timeout=1)
    folder.link(folder.kwokctl, real)
    provider.start("one")
    assert provider.state("one").running


@pytest.mark.slow
@on_a_standing_one
def test_moved_programs_and_folders_are_found_again(
    planes: ControlPlanes, provider: EmbeddedProvider, folder: ClusterFolder
) -> None:
    made(provider, "one").apply(namespace("precious"))
    provider.stop("one")
    for link in (folder.kwokctl, folder.program("etcd"), folder.program("kwok-controller")):
        folder.link(link, Path("/nowhere") / link.name)
    here, elsewhere = planes.folder().parent, planes.root / "elsewhere"
    here.rename(elsewhere)
    moved = provider.elsewhere(elsewhere / "clusters")
    try:
        moved.start("one")
        assert Kube(moved.kubeconfig("one")).find(NAMESPACE, "precious")
        moved.stop("one")
    finally:
        elsewhere.rename(here)
    provider.start("one")
    assert Kube(provider.kubeconfig("one")).find(NAMESPACE, "precious")


@on_a_standing_one
def test_lock_of_a_cluster_in_use_is_awaited_until_the_deadline(
    provider: EmbeddedProvider, folder: ClusterFolder
) -> None:
    made(provider, "one")
    begun, done = threading.Event(), threading.Event()

    def hold() -> None:
        with provider._locked(folder, 1):
            begun.set()
            done.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    begun.wait(10)
    try:
        with pytest.raises(DeadlineExceeded, match="lock of cluster one"):
            provider.stop("one", timeout=0.3)
    finally:
        done.set()
        holder.join()
    assert provider.state("one").running


@on_a_standing_one
def test_cluster_can_be_inspected_and_deleted_without_programs(
    planes: ControlPlanes, provider: EmbeddedProvider
) -> None:
    made(provider, "one")
    bare = EmbeddedProvider(planes.folder(), None, ports=planes.ports)
    assert bare.state("one").ready
    assert bare.kubeconfig("one") == provider.kubeconfig("one")
    with pytest.raises(ProgramMissing, match="not installed"):
        bare.create(ClusterRequest("two"), quiet)
    bare.stop("one")
    bare.delete("one")
    assert planes.processes() == []


def test_path_with_a_comma_is_refused(tmp_path: Path, planes: ControlPlanes) -> None:
    awkward = EmbeddedProvider(tmp_path / "a,b", planes.toolbox, ports=planes.ports)
    with pytest.raises(UcpError, match="comma"):
        awkward.create(ClusterRequest("one"), quiet)


@pytest.mark.parametrize("nodes", ["-1", "many", "1001", ""])
def test_invalid_number_of_nodes_is_refused(provider: EmbeddedProvider, nodes: str) -> None:
    with pytest.raises(UcpError, match="nodes of one"):
        provider.preflight(ClusterRequest("one", parameters={"nodes": nodes}))


WITHOUT_NETWORK = """
import json, sys
from pathlib import Path
from k8s_ucp.cluster_provider import ClusterRequest
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.clusters.ports import Ports

class Programs:
    def path(self, program):
        return Path(json.loads(sys.argv[2])[program])

root = Path(sys.argv[1])
provider = EmbeddedProvider(root / "clusters", Programs(), ports=Ports(root / "ports.json"))
try:
    provider.create(ClusterRequest("one"), print)
    provider.stop("one")
    made = ClusterFolder(root / "clusters", "one").home / "kwok.yaml"
    lines = made.read_text().splitlines(keepends=True)
    newer = ("--advertise-address=", "--endpoint-reconciler-type=", "--controllers=")
    newer += ("--disable-admission-plugins=",)
    older = [each for each in lines if not any(word in each for word in newer)]
    assert len(older) == len(lines) - len(newer)
    stages = f"--config={root}/clusters/one/stages.yaml"
    made.write_text("".join(older).replace(stages, f"--config={made}"))
    provider.start("one")
    after = made.read_text().replace("'", "").split()
    assert sorted(after) == sorted("".join(lines).replace("'", "").split())
    print("both started")
finally:
    provider.delete("one")
"""


def test_clusters_run_on_a_machine_without_a_network(tmp_path: Path, planes: ControlPlanes) -> None:
    """Such as a laptop with its radio off; a cluster of an older version starts there, too."""
    alone = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if os.getuid() != 0 or subprocess.run([*alone, "true"], check=False).returncode != 0:
        pytest.skip("only root makes network namespaces, with unshare and ip")
    paths = {each: str(planes.toolbox.path(each)) for each in (*programs.RUN, "kwokctl")}
    words = [sys.executable, "-c", WITHOUT_NETWORK, str(tmp_path / "own"), json.dumps(paths)]
    (tmp_path / "own").mkdir()
    ended = subprocess.run(
        [*alone, *words], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "both started" in ended.stdout
