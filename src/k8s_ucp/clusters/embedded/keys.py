"""Creates the keys of a cluster: its CA, and the key of its admin and its programs.

kwokctl would create RSA keys, which cost a tenth of a second of CPU, and more on every connection.
Names, group and key usages are those that kwokctl writes.
"""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from k8s_ucp.clusters.certificate_signing import sign_authority, sign_program
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.workspace import make_private_folder, write_private_file

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_NAMES = (
    *("kubernetes", "kubernetes.default", "kubernetes.default.svc"),
    *("kubernetes.default.svc.cluster.local", "localhost"),
)
_ADDRESSES = ("127.0.0.1", "::1")


def make_keys(folder: ClusterFolder) -> None:
    """Write certificates and keys of CA and admin; kwokctl keeps those that exist."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID

    signing, private = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kwok-ca")])
    admin = x509.Name(
        [
            x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "system:masters"),
            x509.NameAttribute(x509.NameOID.COMMON_NAME, "kwok-admin"),
        ]
    )
    names: list[x509.GeneralName] = [
        *map(x509.DNSName, _NAMES),
        *(x509.IPAddress(ipaddress.ip_address(each)) for each in _ADDRESSES),
    ]
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    authority = sign_authority(name, signing, signs_data=True)
    for each in (folder.kwok / "clusters", folder.home, folder.certificate("ca.crt").parent):
        make_private_folder(each)
    _write(folder, "ca", signing, authority)
    signed = sign_program(admin, private, authority, signing, uses, names)
    _write(folder, "admin", private, signed)


def are_usable(folder: ClusterFolder, now: datetime | None = None) -> bool:
    """Whether the files that its programs need are complete, valid now, and belong together."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        authority, certificate = (
            x509.load_pem_x509_certificate(folder.certificate(each).read_bytes())
            for each in ("ca.crt", "admin.crt")
        )
        key = load_pem_private_key(folder.certificate("admin.key").read_bytes(), None)
        certificate.verify_directly_issued_by(authority)
    except (FileNotFoundError, ValueError, TypeError, InvalidSignature):
        return False
    now = now or datetime.now(UTC)
    are_valid = all(
        each.not_valid_before_utc <= now < each.not_valid_after_utc
        for each in (authority, certificate)
    )
    return are_valid and certificate.public_key() == key.public_key()


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
