"""Certificate authorities as Crossplane creates them."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

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
