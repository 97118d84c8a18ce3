"""All components on a real core cluster: healthy, private, and restarted after any crash."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from k8s_ucp import process, yaml_io
from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.components import argocd
from k8s_ucp.components.argocd import initial_credentials
from k8s_ucp.components.host.certificates import Certificates
from k8s_ucp.compositions.composite_kinds import composite_kind
from k8s_ucp.gitops.render.values import function_package
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.crossplane_objects import composites, resources_of_claims
from k8s_ucp.inspect.status import reasons
from k8s_ucp.kube import CRD, FUNCTION_REVISION, SECRET, Kind, Kube, KubeError, Object
from k8s_ucp.tools.toolbox import Toolbox
from tests.changing_files import modes_below
from tests.control_planes import control_planes, eventually
from tests.person import commit_all
from tests.unit.compositions import own_kinds
from tests.unit.compositions.platform import claim, composed, definitions

from .broken_claims import both_tell, declare_broken, told
from .platform_api import POSTGRES, define_platform
from .stack import PROGRAMS, Stack, stack

pytestmark = pytest.mark.engines

FUNCTION = Kind("pkg.crossplane.io/v1", "Function", "functions", namespaced=False)
KILLED_ALONE = ("redis", argocd.CONTROLLER, "function", "watcher")
"""End-to-end tests kill all programs, several at once."""
BACK_SECONDS = 150.0
"""Generous timeout of a restart; the benchmarks measure how long it takes on an idle machine."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, toolbox: Toolbox) -> Iterator[Stack]:
    root = tmp_path_factory.mktemp("stack")
    runtime = Path(f"/tmp/ucp-test-{os.getpid()}/stack")
    with control_planes(root, toolbox) as planes, stack(planes, runtime, toolbox) as found:
        yield found
    assert not runtime.exists()
    runtime.parent.rmdir()


@pytest.fixture(scope="module")
def platform(running: Stack) -> Stack:
    """The running stack with the platform's own kinds."""
    define_platform(running.kube)
    return running


def test_each_program_runs_exactly_once(running: Stack) -> None:
    assert set(running.pids()) == set(PROGRAMS)
    assert sorted(each.pid for each in running.processes()) == sorted(running.pids().values())


def test_every_listener_is_on_loopback(running: Stack) -> None:
    for name, pid in running.pids().items():
        found = process.listeners(pid)
        assert all(address == "127.0.0.1" for address, _ in found), (name, found)
        if name not in ("watcher", "redis"):
            assert found, name


def test_programs_listen_on_exactly_the_reserved_ports(running: Stack) -> None:
    """Redis has a socket only. The stand-in for it has a port, too, which nobody uses."""
    pids = [pid for name, pid in running.pids().items() if name != "redis"]
    ports = {port for pid in pids for _, port in process.listeners(pid)}
    assert ports == set(running.host.ports.values())


def test_no_argument_or_log_contains_a_secret(running: Stack) -> None:
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
"""First bytes of an HTTP/2 client: the connection preface, and an empty SETTINGS frame."""


def hello(stack: Stack, client: Certificates | None, *, secured: bool = True) -> bytes:
    """The repo-server's first response. Raises OSError if it closes the connection."""
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


def test_the_repo_server_rejects_clients_without_its_certificate(
    running: Stack, tmp_path: Path
) -> None:
    """It would run any program for its clients, and every user of the machine can connect."""
    settings = b"\0\0"
    answer = hello(running, running.argocd.certificates)
    assert answer.startswith(settings) and answer[3] == 4
    others = Certificates(tmp_path / "others")
    others.ensure()
    for client in (None, others):
        with pytest.raises(OSError):
            hello(running, client)
    with suppress(ConnectionError):
        # A TLS alert, or nothing.
        assert hello(running, None, secured=False)[:1] in (b"", b"\x15")


def test_state_files_are_private(running: Stack) -> None:
    for path, mode in modes_below(running.host.state.components).items():
        assert not mode & 0o077, (path, oct(mode))


def test_a_second_start_changes_nothing(running: Stack) -> None:
    before = running.pids()
    version = running.kube.get(SECRET, "argocd-secret", argocd.NAMESPACE)["metadata"]
    running.up()
    assert running.pids() == before
    after = running.kube.get(SECRET, "argocd-secret", argocd.NAMESPACE)["metadata"]
    assert after["resourceVersion"] == version["resourceVersion"]


def test_a_source_build_has_no_web_ui(running: Stack) -> None:
    assert argocd.ui_available(running.host.ports[argocd.SERVER]) is False


def test_an_application_is_synced(running: Stack, tmp_path: Path) -> None:
    """Involves redis, the repo-server with its wrappers and kustomize, and the controller."""
    repository = tmp_path / "a repo"
    repository.mkdir()
    (repository / "kustomization.yaml").write_text("resources: [it.yaml]\nnamePrefix: my-\n")
    (repository / "it.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: it}\ndata: {a: b}\n"
    )
    commit_all(repository)
    state = applied(running, "it", repository, ".")
    eventually(lambda: state()[0] == "Synced", state)
    maps = running.kube.kind_of("v1", "ConfigMap")
    assert running.kube.get(maps, "my-it", "default")["data"] == {"a": "b"}


def test_a_repository_reads_no_file_outside_of_it(running: Stack, tmp_path: Path) -> None:
    """The repo-server runs as the user, and builds repositories of teams."""
    secret, chart = tmp_path / "secret.yaml", tmp_path / "repository/chart"
    secret.write_text("word: s3cret\n")
    template = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: read}\ndata: {a: {{ .Values.word }}}\n"
    )
    for path, text in {
        "Chart.yaml": "{apiVersion: v2, name: x, version: 1.0.0}\n",
        "templates/it.yaml": template,
        ".argocd-source.yaml": f'helm: {{valueFiles: ["x,{secret}"]}}\n',
        "x": "other: 1\n",
        f"x,{secret}": "word: own\n",
    }.items():
        file = chart / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    commit_all(chart.parent)
    state = applied(running, "values", chart.parent, "chart")
    eventually(lambda: state()[0] == "Synced", state)
    maps = running.kube.kind_of("v1", "ConfigMap")
    assert running.kube.get(maps, "read", "default")["data"] == {"a": "own"}


def applied(
    stack: Stack, name: str, repository: Path, path: str
) -> Callable[[], tuple[object, object]]:
    """Create an Application; returns what reads its sync status and its conditions."""
    stack.kube.apply(
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": name, "namespace": argocd.NAMESPACE},
            "spec": {
                "project": "default",
                "source": {
                    "repoURL": f"file://{repository}",
                    "path": path,
                    "targetRevision": "main",
                },
                "destination": {"name": "in-cluster", "namespace": "default"},
                "syncPolicy": {"automated": {}},
            },
        }
    )
    kind = stack.kube.kind_of("argoproj.io/v1alpha1", "Application")

    def state() -> tuple[object, object]:
        status = stack.kube.get(kind, name, argocd.NAMESPACE).get("status", {})
        return status.get("sync", {}).get("status"), status.get("conditions")

    return state


def test_a_claim_is_composed_and_becomes_ready(platform: Stack) -> None:
    kube = platform.kube
    kube.apply(claim(name="orders", namespace="team-a"))
    eventually(
        lambda: (
            {each["metadata"]["name"] for each in children(kube)}
            == {each["metadata"]["name"] for each in composed(claim()) if each["kind"] != "Secret"}
        ),
        lambda: conditions(kube, "orders"),
        60,
    )
    found = {each["kind"]: each for each in children(kube)}
    assert found["Instance"]["metadata"]["annotations"]["crossplane.io/external-name"] == (
        "demo-orders-in-ns-team-a"
    )
    eventually(
        lambda: "Ready" in conditions(kube, "orders"), lambda: conditions(kube, "orders"), 60
    )
    claims = [each for each in composites(kube) if each["metadata"]["name"] == "orders"]
    seen = ClusterSnapshot(True, claims=claims, resources=resources_of_claims(kube, claims))
    assert "not reconciled yet" in reasons(seen)["claim Postgres team-a/orders"]
    # What a provider does once the cloud has created them.
    details = {"host": "db.example.org", "port": "5432", "username": "app", "password": "quiet"}
    kube.apply(SECRET.object("orders-instance", "team-a", stringData=details))
    for each in found.values():
        now = "2026-01-01T00:00:00Z"
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "Available",
            "lastTransitionTime": now,
        }
        head = {"apiVersion": each["apiVersion"], "kind": each["kind"]}
        place = {"name": each["metadata"]["name"], "namespace": "team-a"}
        status = {"conditions": [ready]}
        kube.apply({**head, "metadata": place, "status": status}, subresource="status")
    eventually(
        lambda: conditions(kube, "orders").get("Ready", ("",))[0] == "True",
        lambda: conditions(kube, "orders"),
        60,
    )
    secret = kube.get(SECRET, "orders-connection", "team-a")["data"]
    assert {key: b64decode(value).decode() for key, value in secret.items()} == {
        "endpoint": "db.example.org",
        "port": "5432",
        "username": "app",
        "password": "quiet",
        "database": "app",
    }


def test_crds_of_the_platform_equal_those_that_crossplane_generates(platform: Stack) -> None:
    """CRDs that Crossplane creates, and those that a start applies before their definitions."""

    wanted = {each["metadata"]["name"]: composite_kind(each) for each in definitions().definitions}

    def made() -> list[Object]:
        return [platform.kube.get(CRD, name) for name in wanted]

    eventually(lambda: all(map(is_controlled, made())), made)
    for each in made():
        assert each["spec"] == wanted[each["metadata"]["name"]]["spec"]


def is_controlled(item: Object) -> bool:
    return any(each.get("controller") for each in item["metadata"].get("ownerReferences", ()))


def test_a_package_in_the_cache_needs_no_registry(running: Stack) -> None:
    """As with our function's package in pods placement; here no pod runs for it."""
    kube, name = running.kube, "in-the-cache"
    revisions = partial(
        kube.list_all, FUNCTION_REVISION, labels=f"pkg.crossplane.io/package={name}"
    )
    (content,) = yaml_io.load(function_package.config_map("any"))["binaryData"].values()
    cache = running.host.folder("crossplane", "packages")
    (cache / function_package.FILE).write_bytes(b64decode(content))
    spec = {"package": function_package.REFERENCE, "packagePullPolicy": "Never"}
    kube.apply(FUNCTION.object(name, spec=spec))

    def is_read() -> bool:
        found = [each.get("status") or {} for each in revisions()]
        return [each.get("capabilities") for each in found] == [["composition"]]

    eventually(is_read, revisions)
    kube.delete(FUNCTION, name)
    eventually(lambda: not revisions(), revisions)


def test_status_and_doctor_report_why_a_claim_is_not_composed(platform: Stack) -> None:
    broken = declare_broken(platform.kube)

    def all_told() -> bool:
        said = told(platform)
        return all(both_tell(said, name, reason) for name, reason in broken.items())

    eventually(all_told, partial(told, platform))


def test_probes_of_the_function_write_nothing_to_its_log(running: Stack) -> None:
    running.wait_well(BACK_SECONDS)
    logs = [
        each.read_text() for each in running.host.state.logs.iterdir() if "function" in each.name
    ]
    assert logs
    assert not any("Handshake" in each for each in logs)


@pytest.mark.slow
def test_user_functions_compose_resources_or_report_errors(platform: Stack) -> None:
    running, kube = platform, platform.kube
    files = own_kinds.files()
    running.push({own_kinds.MAIN: files[own_kinds.MAIN]})
    for name in ("definition", "composition"):
        kube.apply(yaml_io.load(files[f"api/stores/{name}.yaml"]))
    stores = Kind("example.org/v1", "Store", "stores")
    buckets = Kind("s3.aws.m.upbound.io/v1beta1", "Bucket", "buckets")
    served = f"{stores.plural}.example.org"
    eventually(lambda: established(kube, served), lambda: f"{served} is not established")

    def store(name: str) -> None:
        place = {"name": name, "namespace": "team-a"}
        kube.apply({**yaml_io.load(files["store.yaml"]), "metadata": place})

    def says(name: str, kind: str, text: str) -> None:
        eventually(
            lambda: text in " ".join(conditions(kube, name, stores).get(kind, ())),
            lambda: conditions(kube, name, stores),
            60,
        )

    store("photos")
    store("draft-1")
    says("photos", "Synced", "True")
    found = kube.get(buckets, "photos", "team-a")
    assert found["metadata"]["annotations"]["crossplane.io/external-name"] == "example-photos"
    says("draft-1", "Synced", "drafts get no store")
    # Another commit takes effect without a restart.
    before = running.pids()
    running.push({own_kinds.MAIN: "import time\ndef compose(req, rsp):\n    time.sleep(600)\n"})
    store("films")
    kube.apply(claim(name="beside", namespace="team-a"))
    eventually(
        lambda: conditions(kube, "beside").get("Synced", ("",))[0] == "True",
        lambda: conditions(kube, "beside"),
        60,
    )
    says("films", "Synced", "function stores: no answer within 10 seconds")
    assert running.pids() == before
    for name in ("photos", "draft-1", "films"):
        kube.delete(stores, name, "team-a")


def established(kube: Kube, name: str) -> bool:
    with suppress(KubeError):
        found = kube.get(CRD, name).get("status", {}).get("conditions") or []
        return any((e["type"], e["status"]) == ("Established", "True") for e in found)
    return False


def children(kube: Kube) -> list[Object]:
    return [
        each
        for kind in (*KINDS.values(),)
        for each in kube.list_all(kind.kind, "team-a")
        if each["metadata"]["labels"]["crossplane.io/composite"] == "orders"
    ]


def conditions(kube: Kube, name: str, kind: Kind = POSTGRES) -> dict[str, tuple[str, str]]:
    """(status, message) by type."""
    found = kube.get(kind, name, "team-a").get("status", {}).get("conditions", [])
    return {each["type"]: (each["status"], each.get("message", "")) for each in found}


@pytest.mark.parametrize(
    "name",
    [
        each if each in KILLED_ALONE else pytest.param(each, marks=pytest.mark.soak)
        for each in PROGRAMS
    ],
)
def test_a_killed_program_is_restarted(running: Stack, name: str) -> None:
    killed = running.pid(name)
    os.kill(killed, signal.SIGKILL)
    running.wait_for_new(name, killed, BACK_SECONDS)
    running.wait_well(BACK_SECONDS)


def test_a_killed_supervisord_is_restarted_with_each_program_once(running: Stack) -> None:
    before = running.pids()
    supervisor = running.placement.supervisor()
    assert supervisor
    os.kill(supervisor.pid, signal.SIGKILL)
    for name, pid in before.items():
        running.wait_for_new(name, pid, BACK_SECONDS)
    running.wait_well(BACK_SECONDS)
    eventually(lambda: len(running.processes()) == len(PROGRAMS), running.processes)
    assert sorted(each.pid for each in running.processes()) == sorted(running.pids().values())
    # A dead process may remain as a zombie where nobody reaps orphans; identify recognizes that.
    assert [process.identify(pid) for pid in before.values()] == [None] * len(before)


def test_a_deleted_supervisor_socket_is_replaced(running: Stack) -> None:
    (running.placement.runtime / "supervisor.sock").unlink()
    eventually(running.placement.is_running, running.placement.states)
    running.wait_well(BACK_SECONDS)
    eventually(lambda: len(running.processes()) == len(PROGRAMS), running.processes)


def test_a_killed_api_server_is_restarted(running: Stack) -> None:
    folder = running.host.state.clusters
    [server] = [
        each
        for each in process.working_in(folder)
        if Path(each.executable).name == "kube-apiserver"
    ]
    os.kill(server.pid, signal.SIGKILL)
    eventually(lambda: running.kube.ready(), running.placement.states, BACK_SECONDS)
    running.wait_well(BACK_SECONDS)


@pytest.mark.slow
def test_stop_is_fast_and_a_start_restores_the_same_components(running: Stack) -> None:
    password = running.redis.password()
    began = time.monotonic()
    running.placement.stop_all()
    assert time.monotonic() - began < 20
    assert not running.processes()
    assert not running.placement.runtime.exists()
    time.sleep(2)
    assert not running.processes(), "something brought it back"
    running.up()
    assert running.redis.password() == password
    assert set(running.pids()) == set(PROGRAMS)
