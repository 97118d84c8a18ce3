"""Certificates that expire soon or have expired."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from k8s_ucp.clusters.certificate_signing import LIFETIME
from k8s_ucp.components.host.certificates import Certificates
from k8s_ucp.inspect.doctor.certificates import SOON_SECONDS, Certificate, end_of, expiring

NOW = 1_800_000_000.0
DAY = 86400.0


def of(ends: float) -> Certificate:
    return Certificate("demo-stage", "Secret shop/web-tls", ends, "renew it")


@pytest.mark.parametrize(
    ("left", "severity", "words"),
    [
        (SOON_SECONDS, "warning", "expires in 14 days"),
        (3 * DAY, "warning", "expires in 3 days"),
        (-2 * DAY, "error", "expired 2 days ago"),
    ],
)
def test_a_certificate_that_expires_soon_or_has_expired_is_reported(
    left: float, severity: str, words: str
) -> None:
    (found,) = expiring([of(NOW + left)], NOW)
    assert (found.id, found.severity, found.next) == (
        "certificate/demo-stage/Secret/shop/web-tls",
        severity,
        "renew it",
    )
    assert found.message == f"the certificate of Secret shop/web-tls on demo-stage {words}"


def test_a_certificate_that_does_not_expire_soon_is_not_reported() -> None:
    assert list(expiring([of(NOW + SOON_SECONDS + 1)], NOW)) == []


def test_the_earliest_expiry_of_a_chain_counts(tmp_path: Path) -> None:
    pems = []
    for number, year in enumerate((2026, 2025)):
        made = Certificates(tmp_path / str(number))
        made.ensure(datetime(year, 1, 1, tzinfo=UTC))
        pems.append(made.server[0].read_bytes())
    end = datetime(2025, 1, 1, tzinfo=UTC) + LIFETIME
    assert end_of(b"".join(pems)) == end.timestamp()


@pytest.mark.parametrize("text", [b"", b"no certificate", b"-----BEGIN CERTIFICATE-----\nx"])
def test_an_invalid_certificate_has_no_expiry(text: bytes) -> None:
    assert end_of(text) is None
