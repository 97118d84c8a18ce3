"""Process of the simulated cloud: its resources survive its end, whatever ended it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from k8s_ucp.aws.client import AwsAccount
from k8s_ucp.cloud.admin import CloudAdmin
from k8s_ucp.cloud.faults import CloudFault
from k8s_ucp.cloud.keys import CloudKeys, settle_keys
from k8s_ucp.cloud.ledger import RESET, remaining
from k8s_ucp.cloud.run import run
from k8s_ucp.components.component import probe
from k8s_ucp.errors import UcpError
from k8s_ucp.managed.external import CloudFailed

REGION = "eu-west-3"


@contextmanager
def running(folder: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """Yield the process once it answers; kill it at the end, as the kernel would."""
    command = ["-P", "-m", "k8s_ucp.cloud.run", "--folder", str(folder), "--port", str(port)]
    with (folder / "log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, *command], stdout=log, stderr=subprocess.STDOUT, text=True
        )
    try:
        until = time.monotonic() + 60
        while not (health := probe(port, "/_ucp/health")).ready:
            assert process.poll() is None and time.monotonic() < until, health.message
            time.sleep(0.1)
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def account_of(keys: CloudKeys, port: int) -> AwsAccount:
    return AwsAccount(f"http://127.0.0.1:{port}", keys.access_key, keys.secret_key, "ucp/demo")


def loaded(read: Callable[[], set[str]]) -> set[str]:
    """What is read, once the modules of its service are loaded: on a busy machine after a while."""
    until = time.monotonic() + 120
    while True:
        try:
            return read()
        except CloudFailed:
            assert time.monotonic() < until


def test_ids_and_ledger_survive_a_kill_and_a_reset_empties_the_cloud(tmp_path: Path) -> None:
    folder, port = tmp_path / "cloud", free_port()
    keys = settle_keys(folder)
    account, admin = account_of(keys, port), CloudAdmin(port, keys.token)

    def vpcs() -> set[str]:
        found = account.call("ec2", REGION, "DescribeVpcs")["Vpcs"]
        return {each["VpcId"] for each in found}

    def make_vpc() -> str:
        made = account.call("ec2", REGION, "CreateVpc", CidrBlock="10.0.0.0/16")
        return str(made["Vpc"]["VpcId"])

    with running(folder, port):
        loaded(vpcs)
        emptied = make_vpc()
        with pytest.raises(UcpError, match="the token is not valid"):
            CloudAdmin(port, "guessed").reset()
        admin.reset()
        # moto creates the default VPC at the first request, with an id of its own.
        before = vpcs()
        made = make_vpc()
        assert vpcs() == before | {made}
        assert made != emptied and emptied not in before
        with pytest.raises(UcpError, match="another process runs the simulated cloud"):
            run(folder, free_port())

    with running(folder, port):
        assert loaded(vpcs) == before | {made}
        entries = admin.ledger()
        assert [each.operation for each in entries] == ["CreateVpc", RESET, "CreateVpc"]
        assert remaining(entries) == {(REGION, "vpc", made): 1}
        assert "ucp/demo" in entries[-1].caller
        assert admin.ledger(since=entries[1].number) == entries[2:]

        scope = "Credential=guessed/20260101/eu-west-3/ec2/aws4_request"
        sent = f"POST / HTTP/1.1\r\nHost: x\r\nAuthorization: AWS4-HMAC-SHA256 {scope}\r\n"
        with socket.create_connection(("127.0.0.1", port), timeout=20) as stranger:
            stranger.sendall(f"{sent}Content-Length: 1000000\r\n\r\n".encode())
            # Its body, which never comes, isn't awaited.
            assert b" 403 " in stranger.recv(4096).partition(b"\r\n")[0] + b" "

        admin.add_fault(CloudFault("throttle", operation="DeleteVpc", times=1))
        admin.add_fault(CloudFault("unavailable", service="rds"))
        with pytest.raises(CloudFailed, match="RequestLimitExceeded"):
            account.call("ec2", REGION, "DeleteVpc", VpcId=made)
        assert [each.kind for each in admin.faults()] == ["unavailable"]
        admin.clear_faults()
        assert admin.faults() == ()

    private = [each for each in folder.iterdir() if each.name not in ("lock", "log")]
    assert len(private) == 3
    assert all(each.stat().st_mode & 0o077 == 0 for each in private)
    log = (folder / "log").read_text()
    assert f"ec2:CreateVpc {made} 200" in log
    assert "HTTP" not in log
    assert not any(secret in log for secret in (keys.secret_key, keys.token, keys.access_key))


@pytest.mark.slow
def test_preloaded_modules_change_no_id(tmp_path: Path) -> None:
    folder, port = tmp_path / "cloud", free_port()
    account, log = account_of(settle_keys(folder), port), folder / "log"

    def vpcs() -> set[str]:
        found = account.call("ec2", REGION, "DescribeVpcs")["Vpcs"]
        return {each["VpcId"] for each in found}

    with running(folder, port):
        until = time.monotonic() + 120
        while "loaded ec2" not in log.read_text():
            assert time.monotonic() < until
            time.sleep(0.1)
        assert not (folder / "recording.jsonl").exists()
        made = loaded(vpcs)
    with running(folder, port):
        assert loaded(vpcs) == made, "played again before anything was loaded"
