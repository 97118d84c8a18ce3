"""Certificates of the repo-server: created once, private, renewed in time, for one topology."""

from __future__ import annotations

import socket
import ssl
import stat
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from k8s_ucp.clusters.certificate_signing import LIFETIME
from k8s_ucp.components.argocd import APPLICATION_SETS, CONTROLLER, REPO_SERVER, SERVER, ArgoCD
from k8s_ucp.components.host.certificates import RENEWAL, Certificates
from k8s_ucp.components.host.machine import Host
from k8s_ucp.components.host.program import section


def made(folder: Path) -> Certificates:
    certificates = Certificates(folder / "certificates")
    certificates.ensure()
    return certificates


def shake(server: Certificates, client: Certificates | None, trusted: Certificates) -> bytes:
    """The server's response to a client with these certificates."""
    there = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(server.authority))
    there.verify_mode = ssl.CERT_REQUIRED
    there.load_cert_chain(*server.server)
    here = ssl.create_default_context(cafile=str(trusted.authority))
    here.verify_flags |= ssl.VERIFY_X509_STRICT
    if client:
        here.load_cert_chain(*client.client)
    one, other = socket.socketpair()

    def serve() -> None:
        try:
            with there.wrap_socket(one, server_side=True) as found:
                found.sendall(b"in")
        except OSError:
            one.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with here.wrap_socket(other, server_hostname="127.0.0.1") as found:
            return found.recv(2)
    finally:
        other.close()
        thread.join()


def test_only_clients_of_the_same_topology_are_accepted(tmp_path: Path) -> None:
    ours, others = made(tmp_path / "ours"), made(tmp_path / "others")
    assert shake(ours, ours, ours) == b"in"
    for client in (None, others):
        with pytest.raises(OSError):
            shake(ours, client, ours)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(others, others, ours)


def test_keys_are_private_and_reused(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "a folder")
    digest = certificates.ensure()
    files = {each: each.read_bytes() for each in certificates.folder.rglob("*") if each.is_file()}
    assert len(files) == 5
    for each in files:
        assert stat.S_IMODE(each.stat().st_mode) == 0o600
        assert stat.S_IMODE(each.parent.stat().st_mode) == 0o700
    assert certificates.ensure() == digest
    assert {each: each.read_bytes() for each in files} == files


def test_certificates_are_renewed_before_they_expire(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    digest = certificates.ensure()
    end = datetime.now(UTC) + LIFETIME
    assert certificates.ensure(end - RENEWAL * 1.1) == digest
    assert certificates.ensure(end - RENEWAL * 0.9) != digest


def test_a_damaged_or_readable_key_is_replaced(tmp_path: Path) -> None:
    certificates = made(tmp_path)
    other = made(tmp_path / "other")
    before = certificates.ensure()
    for path in (certificates.authority, *certificates.server, *certificates.client):
        for harm in (
            path.unlink,
            lambda path=path: path.write_bytes(b"x"),
            lambda path=path: path.write_bytes(other.client[path.suffix == ".key"].read_bytes()),
        ):
            harm()
            now = certificates.ensure()
            assert now != before, path
            before = now
    certificates.client[1].chmod(0o640)
    assert certificates.ensure() != before


def test_the_repo_server_requires_client_certificates(host: Host) -> None:
    """A client of the repo-server can make it run any program."""
    programs = {each.name: each for each in ArgoCD(host).programs()}
    certificates = ArgoCD(host).certificates
    server = programs[REPO_SERVER]
    assert "--disable-tls" not in server.argv
    assert server.argv[server.argv.index("--client-ca-path") + 1] == str(certificates.authority)
    assert server.env["ARGOCD_APP_CONF_PATH"] == str(certificates.folder)
    for name in (SERVER, CONTROLLER, APPLICATION_SETS):
        argv = programs[name].argv
        assert "--repo-server-plaintext" not in argv
        for flag, path in zip(
            ("ca-cert-path", "client-cert-path", "client-cert-key-path"),
            (certificates.authority, *certificates.client),
            strict=True,
        ):
            assert argv[argv.index(f"--repo-server-{flag}") + 1] == str(path)
            assert path.exists()


def test_programs_are_restarted_when_certificates_change(host: Host) -> None:
    before = {each.name: section(each) for each in ArgoCD(host).programs()}
    assert {each.name: section(each) for each in ArgoCD(host).programs()} == before
    ArgoCD(host).certificates.authority.unlink()
    after = {each.name: section(each) for each in ArgoCD(host).programs()}
    assert not before.items() & after.items()
