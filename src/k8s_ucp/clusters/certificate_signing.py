"""Signs certificates of authorities and of programs on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    SigningKey = EllipticCurvePrivateKey | RSAPrivateKey

LIFETIME = timedelta(days=3650)
"""Ten years: programs read their keys only at start, and a topology may run for long."""
_BACK = LIFETIME
"""Tolerates clocks that are set back, by years if the machine's clock was wrong at the first start.

Nothing replaces a cluster's certificates, so it could not be started until that time had come."""


def sign_authority(
    subject: x509.Name,
    key: EllipticCurvePrivateKey,
    *,
    now: datetime | None = None,
    length: int | None = None,
    signs_data: bool = False,
) -> x509.Certificate:
    """A self-signed certificate of an authority.

    length: how many intermediate authorities may follow below it; None for any number. signs_data:
    the key also signs data, not only certificates.
    """
    from cryptography import x509

    constraints = x509.BasicConstraints(True, length)
    return _sign(subject, key, None, key, now, constraints, signs_data=signs_data)


def sign_program(
    subject: x509.Name,
    key: EllipticCurvePrivateKey,
    authority: x509.Certificate,
    signing: SigningKey,
    uses: Sequence[x509.ObjectIdentifier],
    names: Sequence[x509.GeneralName],
    *,
    now: datetime | None = None,
) -> x509.Certificate:
    """A program's certificate. uses: server, client or both. names: its DNS names and addresses."""
    from cryptography import x509

    more = x509.ExtendedKeyUsage(uses), x509.SubjectAlternativeName(names)
    constraints = x509.BasicConstraints(False, None)
    return _sign(subject, key, authority, signing, now, constraints, *more, signs_data=True)


def _sign(
    subject: x509.Name,
    key: EllipticCurvePrivateKey,
    authority: x509.Certificate | None,
    signing: SigningKey,
    now: datetime | None,
    constraints: x509.BasicConstraints,
    *more: x509.ExtensionType,
    signs_data: bool,
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    now = now or datetime.now(UTC)
    usage = x509.KeyUsage(
        digital_signature=signs_data,
        key_cert_sign=constraints.ca,
        crl_sign=constraints.ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    issuer = key_of(authority) or x509.AuthorityKeyIdentifier.from_issuer_public_key(
        signing.public_key()
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.subject if authority else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACK)
        .not_valid_after(now + LIFETIME)
        .add_extension(constraints, critical=True)
        .add_extension(usage, critical=True)
    )
    for each in (own, issuer, *more):
        builder = builder.add_extension(each, critical=False)
    return builder.sign(signing, hashes.SHA256())


def key_of(authority: x509.Certificate | None) -> x509.AuthorityKeyIdentifier | None:
    """Key identifier in an authority's certificate. Go and this library compute it differently."""
    from cryptography import x509

    extensions = authority.extensions if authority else ()
    for each in extensions:
        if isinstance(each.value, x509.SubjectKeyIdentifier):
            return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(each.value)
    return None
