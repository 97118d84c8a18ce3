"""Certificates that clusters serve or store, and when they expire."""

from __future__ import annotations

import base64
import binascii
import contextlib
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.doctor.finding import Finding
from k8s_ucp.kube import (
    SECRET,
    Kind,
    Kube,
    Object,
    mapping_in,
    mappings_in,
    namespaced_name,
)

SOON_SECONDS = 14 * 86400.0
_WEBHOOKS = tuple(
    Kind("admissionregistration.k8s.io/v1", kind, f"{kind.lower()}s", namespaced=False)
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
)


@dataclass(frozen=True)
class Certificate:
    """One certificate of a cluster. ends: seconds since the epoch."""

    cluster: str
    of: str
    ends: float
    next: str


def read_certificates(cluster: str, kube: Kube) -> list[Certificate]:
    """Certificates of the API server, webhooks and Secrets. Unreadable ones are left out."""
    found: list[Certificate] = []
    for read in (_of_server, _of_webhooks, _of_secrets):
        with contextlib.suppress(UcpError):
            found += [
                Certificate(cluster, of, ends, advice)
                for of, pem, advice in read(kube)
                if (ends := end_of(pem)) is not None
            ]
    return found


def expiring(certificates: Iterable[Certificate], now: float) -> Iterator[Finding]:
    """Findings for certificates that expire within 14 days or have expired."""
    for each in certificates:
        left = each.ends - now
        if left > SOON_SECONDS:
            continue
        ended = left <= 0
        days = f"{abs(left) / 86400:.0f} days"
        yield Finding(
            f"certificate/{each.cluster}/{each.of.replace(' ', '/')}",
            "error" if ended else "warning",
            f"the certificate of {each.of} on {each.cluster} "
            + (f"expired {days} ago" if ended else f"expires in {days}"),
            each.next,
        )


def end_of(pem: bytes) -> float | None:
    """When the first certificate of a PEM text expires; None if there is none."""
    from cryptography import x509

    with warnings.catch_warnings():
        # Others' CAs deviate from the standard; only the expiry is read here.
        warnings.simplefilter("ignore")
        try:
            found = x509.load_pem_x509_certificates(pem)
        except ValueError:
            return None
        return min(each.not_valid_after_utc.timestamp() for each in found)


def _of_server(kube: Kube) -> Iterator[tuple[str, bytes, str]]:
    advice = "renew the cluster's certificates (kubeadm certs renew all), then: ucp start"
    yield "kube-apiserver", kube.server_certificate(), advice


def _of_webhooks(kube: Kube) -> Iterator[tuple[str, bytes, str]]:
    for kind in _WEBHOOKS:
        for item in kube.list_all(kind):
            name = f"{kind.kind} {item['metadata']['name']}"
            for each in mappings_in(item, "webhooks"):
                if bundle := _decoded(mapping_in(each, "clientConfig").get("caBundle")):
                    yield name, bundle, "restart the controller that the webhook belongs to"
                    break


def _of_secrets(kube: Kube) -> Iterator[tuple[str, bytes, str]]:
    secrets, _version = kube.list_with_version(
        SECRET, fields="type=kubernetes.io/tls", keep=_without_key
    )
    for item in secrets:
        name = f"Secret {namespaced_name(item)}"
        if pem := _decoded(item["data"].get("tls.crt")):
            yield name, pem, f"write a new certificate to the {name}, or let its issuer do so"


def _without_key(secret: Object) -> Object:
    data = mapping_in(secret, "data")
    return {**secret, "data": {name: data[name] for name in ("tls.crt",) if name in data}}


def _decoded(text: Any) -> bytes:
    try:
        return base64.b64decode(str(text or ""), validate=True)
    except (binascii.Error, ValueError):
        return b""
