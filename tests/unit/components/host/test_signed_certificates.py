"""Certificates for ucp's functions that Crossplane's certificate authority signs."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from k8s_ucp.clusters import certificate_signing
from k8s_ucp.components.host.certificates import is_signed, sign

KEY = b"not SHA-1 of the key"


def authority(name: str) -> tuple[bytes, bytes]:
    """Certificate and key in PEM, as Crossplane creates them."""
    key = rsa.generate_private_key(65537, 2048)
    with warnings.catch_warnings(action="ignore"):
        earth = x509.NameAttribute(x509.NameOID.COUNTRY_NAME, "Earth", _validate=False)
    subject = x509.Name([earth, x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier(KEY), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM), private


def test_a_certificate_is_valid_only_for_the_authority_that_signed_it(tmp_path: Path) -> None:
    (ours, key), (other, _) = authority("one"), authority("two")
    file = tmp_path / "tls.crt"
    assert not is_signed(file, ours)
    file.write_text(sign("function", ours, key)[0])
    assert is_signed(file, ours)
    assert not is_signed(file, other)
    names = x509.load_pem_x509_certificate(file.read_bytes()).extensions
    found = names.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(each) for each in found.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    # Verifiers of the chain look up the issuer by this identifier.
    issuer = names.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert issuer.key_identifier == KEY


def test_a_certificate_with_another_authority_key_identifier_is_not_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions used the hash of the key instead of the authority's own identifier."""
    ours, key = authority("one")
    file = tmp_path / "tls.crt"
    with monkeypatch.context() as earlier:
        earlier.setattr(certificate_signing, "key_of", lambda _: None)
        file.write_text(sign("function", ours, key)[0])
    assert not is_signed(file, ours)
