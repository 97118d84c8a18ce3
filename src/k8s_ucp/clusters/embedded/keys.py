"""The keys of a new cluster: its authority, and what its admin and its programs show.

kwokctl would make RSA keys, which take a tenth of a second of CPU, and more at every connection.
Names, group and uses are those that it writes.
"""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.workspace import make_private_folder, write_private_file

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

LIFETIME = timedelta(days=3650)
_BACK = timedelta(days=1)
"""Clocks are set back sometimes."""
_NAMES = (
    *("kubernetes", "kubernetes.default", "kubernetes.default.svc"),
    *("kubernetes.default.svc.cluster.local", "localhost"),
)
_ADDRESSES = ("127.0.0.1", "::1")


def make_keys(folder: ClusterFolder) -> None:
    """Write authority and admin, certificates and keys, where kwokctl makes none that are there."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    signing, private = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kwok-ca")])
    admin = x509.Name(
        [
            x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "system:masters"),
            x509.NameAttribute(x509.NameOID.COMMON_NAME, "kwok-admin"),
        ]
    )
    for each in (folder.kwok / "clusters", folder.home, folder.certificate("ca.crt").parent):
        make_private_folder(each)
    _write(folder, "ca", signing, _signed(authority, signing, authority, signing))
    _write(folder, "admin", private, _signed(admin, private, authority, signing))


def _write(
    folder: ClusterFolder, name: str, key: EllipticCurvePrivateKey, certificate: x509.Certificate
) -> None:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    text = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    write_private_file(folder.certificate(f"{name}.key"), text.decode())
    public = certificate.public_bytes(Encoding.PEM).decode()
    write_private_file(folder.certificate(f"{name}.crt"), public)


def _signed(
    subject: x509.Name,
    key: EllipticCurvePrivateKey,
    issuer: x509.Name,
    signing: EllipticCurvePrivateKey,
) -> x509.Certificate:
    """Of the authority itself where it is both; of who serves and calls where it isn't."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID

    is_authority = subject == issuer
    now = datetime.now(UTC)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    of_issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key())
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACK)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(own, critical=False)
        .add_extension(of_issuer, critical=False)
    )
    if not is_authority:
        names: list[x509.GeneralName] = [
            *map(x509.DNSName, _NAMES),
            *(x509.IPAddress(ipaddress.ip_address(each)) for each in _ADDRESSES),
        ]
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False).add_extension(
            x509.SubjectAlternativeName(names), critical=False
        )
    return builder.sign(signing, hashes.SHA256())
