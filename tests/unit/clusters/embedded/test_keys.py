"""Certificates and keys of a new cluster."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.clusters.embedded.keys import are_usable, make_keys


def test_certificates_have_the_subjects_that_kwokctl_would_issue(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path, "one")
    make_keys(folder)

    authority, admin = (
        x509.load_pem_x509_certificate(folder.certificate(f"{name}.crt").read_bytes())
        for name in ("ca", "admin")
    )
    admin.verify_directly_issued_by(authority)
    assert authority.subject.rfc4514_string() == "CN=kwok-ca"
    assert admin.subject.rfc4514_string() == "CN=kwok-admin,O=system:masters"
    names = admin.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "kubernetes.default.svc" in names.get_values_for_type(x509.DNSName)
    assert "127.0.0.1" in map(str, names.get_values_for_type(x509.IPAddress))
    for name, certificate in (("ca", authority), ("admin", admin)):
        file = folder.certificate(f"{name}.key")
        key = load_pem_private_key(file.read_bytes(), None)
        assert isinstance(key, EllipticCurvePrivateKey)
        assert key.public_key() == certificate.public_key()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_each_cluster_has_its_own_certificate_authority(tmp_path: Path) -> None:
    folders = [ClusterFolder(tmp_path, name) for name in ("one", "two")]
    for each in folders:
        make_keys(each)
    assert len({each.certificate("ca.crt").read_bytes() for each in folders}) == 2


@pytest.mark.parametrize("name", ["ca.crt", "admin.crt", "admin.key"])
def test_lost_or_damaged_keys_are_told_from_usable_ones(tmp_path: Path, name: str) -> None:
    folder, other = (ClusterFolder(tmp_path, each) for each in ("one", "two"))
    make_keys(folder)
    make_keys(other)
    assert are_usable(folder)
    for years in (11, -11):
        assert not are_usable(folder, datetime.now(UTC) + timedelta(days=years * 365))
    file = folder.certificate(name)
    for content in (b"", b"\0" * 200, other.certificate(name).read_bytes()):
        file.write_bytes(content)
        assert not are_usable(folder)
    file.unlink()
    assert not are_usable(folder)
    make_keys(folder)
    assert are_usable(folder)


def test_certificates_stay_valid_if_the_clock_was_years_ahead(tmp_path: Path) -> None:
    """Nothing replaces them, so the cluster could not be started after the clock's correction."""
    folder = ClusterFolder(tmp_path, "one")
    make_keys(folder)
    for name in ("ca", "admin"):
        found = x509.load_pem_x509_certificate(folder.certificate(f"{name}.crt").read_bytes())
        assert found.not_valid_before_utc < datetime.now(UTC) - timedelta(days=5 * 365)
