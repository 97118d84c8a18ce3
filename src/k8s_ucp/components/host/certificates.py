"""Certificates with which programs of a topology authenticate to each other on this machine.

Any process on the machine can connect to a loopback port; only the topology's own programs have a
key from a private folder. The CA signs one certificate for the server and one for its clients, then
its key is discarded: before expiry everything is recreated.
"""

from __future__ import annotations

import hashlib
import ipaddress
import stat
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

from k8s_ucp.clusters.certificate_signing import key_of, sign_authority, sign_program
from k8s_ucp.loopback import ADDRESS
from k8s_ucp.workspace import make_private_folder, write_private_file

if TYPE_CHECKING:
    from cryptography import x509

    from k8s_ucp.clusters.certificate_signing import SigningKey

RENEWAL = timedelta(days=365)
"""With less time until expiry they are recreated at a start."""


@dataclass(frozen=True)
class Certificates:
    """folder: a private folder for these files alone."""

    folder: Path

    @property
    def authority(self) -> Path:
        """CA certificate with which each side verifies the other."""
        return self.folder / "ca.crt"

    @property
    def server(self) -> tuple[Path, Path]:
        """(certificate, key), where Argo CD's repo-server expects them in its own folder."""
        return self.folder / "reposerver/tls/tls.crt", self.folder / "reposerver/tls/tls.key"

    @property
    def client(self) -> tuple[Path, Path]:
        """(certificate, key)"""
        return self.folder / "client.crt", self.folder / "client.key"

    def ensure(self, now: datetime | None = None) -> str:
        """Create them if they are missing, damaged, not private or about to expire.

        Returns a digest; programs that use them must be restarted when it changes.
        """
        now = now or datetime.now(UTC)
        if not self._is_good(now):
            self._make(now)
        public = (self.authority, self.server[0], self.client[0])
        return hashlib.sha256(b"".join(each.read_bytes() for each in public)).hexdigest()[:16]

    def _is_good(self, now: datetime) -> bool:
        from cryptography import x509
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            authority = x509.load_pem_x509_certificate(self.authority.read_bytes())
            if not _is_valid(authority, now):
                return False
            for certificate, key in (self.server, self.client):
                found = x509.load_pem_x509_certificate(certificate.read_bytes())
                private = load_pem_private_key(key.read_bytes(), None)
                found.verify_directly_issued_by(authority)
                if found.public_key() != private.public_key() or not _is_valid(found, now):
                    return False
                if stat.S_IMODE(key.stat().st_mode) & 0o077:
                    return False
        except (OSError, ValueError, TypeError, InvalidSignature):
            return False
        return True

    def _make(self, now: datetime) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
        )
        from cryptography.x509.oid import ExtendedKeyUsageOID

        signing = ec.generate_private_key(ec.SECP256R1())
        authority = sign_authority(_subject("k8s-ucp"), signing, now=now, length=0)
        sides = (
            ("server", self.server, ExtendedKeyUsageOID.SERVER_AUTH),
            ("client", self.client, ExtendedKeyUsageOID.CLIENT_AUTH),
        )
        make_private_folder(self.folder)
        for name, (certificate, key), use in sides:
            private = ec.generate_private_key(ec.SECP256R1())
            subject = _subject(f"k8s-ucp-{name}")
            signed = sign_program(subject, private, authority, signing, [use], _names(), now=now)
            for each in reversed(certificate.relative_to(self.folder).parents):
                make_private_folder(self.folder / each)
            text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            write_private_file(key, text.decode())
            write_private_file(certificate, signed.public_bytes(Encoding.PEM).decode())
        write_private_file(self.authority, authority.public_bytes(Encoding.PEM).decode())


def sign(name: str, authority: bytes, key: bytes, *, client: bool = False) -> tuple[str, str]:
    """Sign a certificate for a program on this machine: (certificate, key); all in PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )
    from cryptography.x509.oid import ExtendedKeyUsageOID

    private = ec.generate_private_key(ec.SECP256R1())
    with warnings.catch_warnings():
        # The country in the subject of Crossplane's CA is "Earth".
        warnings.filterwarnings("ignore", "Attribute's length", UserWarning)
        certificate = sign_program(
            _subject(name),
            private,
            x509.load_pem_x509_certificate(authority),
            cast("SigningKey", load_pem_private_key(key, None)),
            [ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH],
            _names(),
        )
    text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM).decode(), text.decode()


def is_signed(certificate: Path, authority: bytes) -> bool:
    """Whether the certificate exists, is signed by this CA and is not about to expire."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
        issuer = x509.load_pem_x509_certificate(authority)
        found.verify_directly_issued_by(issuer)
    except (OSError, ValueError, TypeError, InvalidSignature):
        return False
    named = [
        each.value
        for each in found.extensions
        if isinstance(each.value, x509.AuthorityKeyIdentifier)
    ]
    # OpenSSL finds no issuer without the CA's own key identifier.
    return key_of(issuer) in (None, *named) and _is_valid(found, datetime.now(UTC))


def _is_valid(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - RENEWAL


def _subject(name: str) -> x509.Name:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _names() -> list[x509.GeneralName]:
    """Subject alternative names of the loopback interface."""
    from cryptography import x509

    return [x509.IPAddress(ipaddress.ip_address(ADDRESS)), x509.DNSName("localhost")]
