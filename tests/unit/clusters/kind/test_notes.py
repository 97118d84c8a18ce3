"""A kind cluster that may be in use is never removed because its node could not be queried.

The container engine is a fake; commands for a node's shell run on this machine, on a folder.
"""

from __future__ import annotations

import base64
import datetime
import http.server
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from k8s_ucp.cluster_provider import ClusterRequest, Reach
from k8s_ucp.clusters.container_engine import ContainerEngine, ContainerNode, EngineInfo
from k8s_ucp.clusters.kind import provider as kind
from k8s_ucp.clusters.kind.nodes import KindNodes
from k8s_ucp.clusters.kind.provider import KindProvider
from k8s_ucp.clusters.ports import Ports
from k8s_ucp.errors import CommandFailed, ProgramMissing, UcpError

NAME = "demo-core"
REQUEST = ClusterRequest(NAME)
ADMIN = {
    "clusters": [{"cluster": {"certificate-authority-data": "QQ=="}}],
    "users": [{"user": {"client-certificate-data": "QQ==", "client-key-data": "QQ=="}}],
}


class Engine(ContainerEngine):
    """Has one node of ours, whose `/kind` and `/etc/kubernetes` are folders of this machine."""

    def __init__(self, root: Path) -> None:
        super().__init__("docker")
        self.root = root
        self.there, self.removed = True, False
        self.api_port = 1
        self.failure: CommandFailed | None = None
        """Raised instead of running a program in the node."""
        for each in ("kind", "etc/kubernetes"):
            (root / each).mkdir(parents=True)
        (root / "kind/version").write_text("v1.37.0\n")

    @property
    def note(self) -> Path:
        return self.root / "kind/k8s-ucp.json"

    def info(self) -> EngineInfo:
        return EngineInfo(memory=16 * 10**9, cgroup=2, rootless=False)

    def nodes(self, cluster: str | None = None) -> list[ContainerNode]:
        ports = {6443: ("127.0.0.1", self.api_port)}
        node = ContainerNode("1", f"{NAME}-control-plane", NAME, True, "us", ports=ports)
        return [node] if self.there else []

    def remove(self, nodes: Sequence[ContainerNode], *, timeout: float) -> None:
        self.there, self.removed = False, True

    def network(self, name: str) -> str | None:
        return None

    def image_id(self, image: str) -> str | None:
        return "sha256:1"

    def run(self, *words: str, timeout: float = 20, stdin: str | None = None) -> str:
        assert words[0] == "exec", words
        if self.failure:
            raise self.failure
        inside = words[words.index("1") + 1 :]
        argv = [
            each.replace("/kind/", f"{self.root}/kind/").replace("/etc/", f"{self.root}/etc/")
            for each in inside
        ]
        done = subprocess.run(
            argv, input=stdin or "", capture_output=True, text=True, timeout=timeout, check=False
        )
        if done.returncode:
            raise CommandFailed(["docker", *words], done.returncode, done.stderr)
        return done.stdout


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setenv("UCP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kind, "ANSWER_SECONDS", 0.3)
    return Engine(tmp_path / "node")


@pytest.fixture
def provider(engine: Engine, tmp_path: Path) -> KindProvider:
    ports = Ports(tmp_path / "ports.json")
    return KindProvider(tmp_path / "state", None, owner="us", engine=engine, ports=ports)


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """The creation of the cluster by this workspace was interrupted."""
    file = tmp_path / "state" / NAME / kind.BEGUN
    file.parent.mkdir(parents=True)
    file.write_text("")
    return file


def create(provider: KindProvider, timeout: float = 60) -> None:
    provider.create(REQUEST, lambda line: None, timeout=timeout)


@pytest.mark.parametrize(
    ("code", "output"),
    [
        (1, "Error response from daemon: container 1 is not running"),
        (126, "OCI runtime exec failed: exec failed: unable to start container process"),
        (1, "cat: write error: No space left on device"),
        (137, ""),
    ],
)
@pytest.mark.parametrize("noted", [False, True])
def test_a_cluster_whose_note_cannot_be_read_is_kept(
    engine: Engine, provider: KindProvider, begun: Path, code: int, output: str, noted: bool
) -> None:
    if noted:
        engine.note.write_text("{}")
    engine.failure = CommandFailed(["docker", "exec"], code, output)
    with pytest.raises(UcpError, match="failed to check the kind cluster demo-core"):
        create(provider)
    assert not engine.removed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "clusters: [",
        "[]",
        "clusters: []",
        "clusters: [{cluster: {}}]",
        "clusters: a\nusers: b",
        "clusters: [{cluster: {certificate-authority-data: QQ==}}]\nusers: [{user: []}]",
        "users: " + "[" * 300,
    ],
)
def test_a_damaged_admin_kubeconfig_is_reported_and_read_again(engine: Engine, text: str) -> None:
    config = engine.root / "etc/kubernetes/admin.conf"
    config.write_text(text)
    nodes = KindNodes(engine, "us")
    state = nodes.state(NAME)
    assert state.running
    assert "has no valid /etc/kubernetes/admin.conf" in state.message
    config.write_text(json.dumps(ADMIN))
    found = nodes.config(engine.nodes()[0], Reach.MACHINE)
    assert found["users"][0]["user"] == ADMIN["users"][0]["user"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"archives": ', "[" * 2000])
def test_a_truncated_note_still_proves_that_the_cluster_was_complete(
    engine: Engine, provider: KindProvider, begun: Path, text: str
) -> None:
    engine.note.write_text(text)
    assert KindNodes(engine, "us").read_note(engine.nodes()[0]) == {}
    with pytest.raises(UcpError, match="an API server that serves cluster demo-core"):
        create(provider, timeout=0.5)
    assert not engine.removed


def test_an_unresponsive_cluster_without_a_note_is_kept(
    engine: Engine, provider: KindProvider
) -> None:
    with pytest.raises(UcpError, match="may have been in use") as caught:
        create(provider)
    assert not engine.removed
    assert f"docker rm --force --volumes {NAME}-control-plane" in str(caught.value.next)


def test_the_remains_of_an_interrupted_creation_are_removed_and_created_again(
    engine: Engine, provider: KindProvider, begun: Path
) -> None:
    with pytest.raises(ProgramMissing, match="kind is not installed"):
        create(provider)
    assert engine.removed


@pytest.mark.parametrize("status", [200, 401, 500])
def test_a_cluster_whose_api_server_answers_is_kept(
    engine: Engine, provider: KindProvider, begun: Path, api: ApiServer, status: int
) -> None:
    """The cluster can't be completed either, because the API server lists no node."""
    engine.api_port = api.port
    api.status = status
    (engine.root / "etc/kubernetes/admin.conf").write_text(api.kubeconfig())
    with pytest.raises(UcpError, match="may have been in use"):
        create(provider)
    assert not engine.removed


def test_a_complete_cluster_without_a_note_gets_one(
    engine: Engine, provider: KindProvider, begun: Path, api: ApiServer
) -> None:
    engine.api_port = api.port
    api.items = [{"metadata": {"name": "x"}}]
    (engine.root / "etc/kubernetes/admin.conf").write_text(api.kubeconfig())
    create(provider)
    assert json.loads(engine.note.read_text()) == {"archives": {}}
    assert not begun.exists()
    assert not engine.removed


def test_a_note_is_written_atomically(engine: Engine) -> None:
    nodes = KindNodes(engine, "us")
    (node,) = engine.nodes()
    assert nodes.read_note(node) is None
    nodes.write_note([node], {"archives": {}})
    assert nodes.read_note(node) == {"archives": {}}

    class CutOff(Engine):
        """Its client is killed while it sends."""

        def run(self, *words: str, timeout: float = 20, stdin: str | None = None) -> str:
            return super().run(*words, timeout=timeout, stdin=(stdin or "")[:5])

    cut_off = CutOff(engine.root.parent / "other")
    cut_off.root = engine.root
    with pytest.raises(CommandFailed):
        KindNodes(cut_off, "us").write_note([node], {"archives": {"a": "b"}})
    assert nodes.read_note(node) == {"archives": {}}


def test_a_missing_note_proves_nothing_if_the_folder_of_the_node_is_unreadable(
    engine: Engine,
) -> None:
    (engine.root / "kind/version").unlink()
    with pytest.raises(UcpError, match="failed to check"):
        KindNodes(engine, "us").read_note(engine.nodes()[0])


class ApiServer:
    """Answers every request with the same status; lists contain `items`."""

    def __init__(self) -> None:
        self.status = 200
        self.items: list[object] = []
        world = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps({"items": world.items, "metadata": {}}).encode()
                self.send_response(world.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = int(self.server.server_address[1])
        self.certificate, self.key = _certificate()

    def kubeconfig(self) -> str:
        """As kubeadm writes it, but in JSON, which is YAML too."""
        data = base64.b64encode(self.certificate).decode()
        key = base64.b64encode(self.key).decode()
        return json.dumps(
            {
                "clusters": [{"name": "k", "cluster": {"certificate-authority-data": data}}],
                "users": [
                    {
                        "name": "a",
                        "user": {"client-certificate-data": data, "client-key-data": key},
                    }
                ],
            }
        )


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiServer]:
    made = ApiServer()
    file = tmp_path / "server.pem"
    file.write_bytes(made.key + made.certificate)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)
    made.server.socket = tls.wrap_socket(made.server.socket, server_side=True)
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def _certificate() -> tuple[bytes, bytes]:
    import ipaddress

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "api")])
    now = datetime.datetime.now(datetime.UTC)
    local = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(local, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return (
        made.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
