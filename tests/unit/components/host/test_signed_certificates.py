"""Certificates for ucp's functions that Crossplane's certificate authority signs."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509

from k8s_ucp.clusters import certificate_signing
from k8s_ucp.components.host.certificates import is_signed, sign
from tests.unit.components.host.authorities import KEY, authority


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
