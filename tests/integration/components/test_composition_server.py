"""The composition function's process serves only clients with a certificate of its CA."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import crossplane.function.proto.v1.run_function_pb2 as messages
import grpc
import pytest
from crossplane.function.proto.v1.run_function_pb2_grpc import FunctionRunnerServiceStub

from k8s_ucp.components.host.certificates import sign
from k8s_ucp.git.repository import Repository
from tests.unit.components.host.authorities import authority
from tests.unit.compositions.platform import asked, claim

FUNCTIONS = {
    "first": "def compose(req, rsp):\n    rsp.context.update({'by': 'first'})\n",
    "second": "def compose(req, rsp):\n    raise ValueError(req.meta.tag)\n",
    "dead": "import os\n\ndef compose(req, rsp):\n    os._exit(1)\n",
}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, bytes, bytes]]:
    """(address, CA certificate, CA key) of a running server."""
    certificate, key = authority("crossplane")
    signed, private = sign("function", certificate, key)
    (tmp_path / "ca.crt").write_bytes(certificate)
    (tmp_path / "tls.crt").write_text(signed)
    (tmp_path / "tls.key").write_text(private)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    argv = [sys.executable, "-P", "-m", "k8s_ucp.compositions.server"]
    argv += ["--address", address, "--certificates", str(tmp_path)]
    repository = Repository(tmp_path / "core.git")
    repository.folder.mkdir()
    repository.git("init", "--quiet", "--bare", "--initial-branch=main")
    argv += ["--repository", str(repository.folder), "--branch", "refs/heads/main"]
    argv += ["--code", str(tmp_path / "code")]
    for name in FUNCTIONS:
        argv += ["--function", f"{name}={tmp_path / name}.sock"]
    code = {f"api/functions/{name}/main.py": text.encode() for name, text in FUNCTIONS.items()}
    made = repository.write_commit("Functions\n", code, parent=None)
    repository.git("update-ref", "refs/heads/main", made)
    process = subprocess.Popen(argv)
    yield address, certificate, key
    process.terminate()
    process.wait(10)


def call(
    address: str, credentials: grpc.ChannelCredentials, seconds: float = 60
) -> messages.RunFunctionResponse:
    # Go's client, and so Crossplane, expects this name behind a UNIX socket by default.
    options = [("grpc.ssl_target_name_override", "localhost")]
    with grpc.secure_channel(address, credentials, options) as channel:
        stub = FunctionRunnerServiceStub(channel)
        return stub.RunFunction(asked(claim()), timeout=seconds, wait_for_ready=True)


def test_clients_without_a_certificate_are_rejected(served: tuple[str, bytes, bytes]) -> None:
    address, certificate, key = served
    signed, private = sign("crossplane", certificate, key, client=True)
    known = grpc.ssl_channel_credentials(certificate, private.encode(), signed.encode())
    response = call(address, known)
    assert "instance" in response.desired.resources
    with pytest.raises(grpc.RpcError):
        call(address, grpc.ssl_channel_credentials(certificate), seconds=5)


def test_each_user_function_is_served_on_its_own_socket(
    served: tuple[str, bytes, bytes], tmp_path: Path
) -> None:
    address, certificate, key = served
    signed, private = sign("crossplane", certificate, key, client=True)
    known = grpc.ssl_channel_credentials(certificate, private.encode(), signed.encode())
    dead, second, first = (
        call(f"unix:{tmp_path / name}.sock", known) for name in ("dead", "second", "first")
    )
    (result,) = dead.results
    assert result.message == "function dead: its process ended with exit status 1"
    assert [each.message for each in second.results] == ["ValueError: tag (main.py:2)"]
    assert first.context["by"] == "first"
    assert "instance" in call(address, known).desired.resources
    with pytest.raises(grpc.RpcError):
        call(f"unix:{tmp_path}/first.sock", grpc.ssl_channel_credentials(certificate), seconds=5)
