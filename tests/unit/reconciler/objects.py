"""Objects as an API server returns them, for unit tests of the reconciler."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from k8s_ucp import names
from k8s_ucp.reconciler.access.authenticators.base import AuthInfo, kubeconfig
from k8s_ucp.reconciler.access.cluster_secret import Registration, build
from k8s_ucp.reconciler.access.kubeconfig import read
from k8s_ucp.reconciler.access.kubeconfig_verification import digest_of, proven
from k8s_ucp.reconciler.access.sources import KubeconfigSource, describe
from k8s_ucp.reconciler.access.tokens import Token

Object = dict[str, Any]


def _authority() -> str:
    """A certificate that no client trusts, as base64 of PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .sign(key, hashes.SHA256())
    )
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


AUTHORITY = _authority()
NOW = 1_900_000_000.0


def local_cluster(name: str = "demo-stage", **changes: Any) -> Object:
    """changes: uid, labels, annotations, spec, status, metadata."""
    labels = {names.ENVIRONMENT: name.removeprefix("demo-"), names.TOPOLOGY: "demo"}
    return {
        "apiVersion": "k8s-ucp.io/v1alpha1",
        "kind": "LocalCluster",
        "metadata": {
            "name": name,
            "namespace": names.CLUSTERS_NAMESPACE,
            "uid": changes.get("uid", f"uid-of-{name}"),
            "generation": 1,
            "resourceVersion": "10",
            "labels": {**labels, **changes.get("labels", {})},
            "annotations": changes.get("annotations", {}),
            **changes.get("metadata", {}),
        },
        "spec": {"provider": "embedded", "machine": "here", **changes.get("spec", {})},
        **({"status": changes["status"]} if "status" in changes else {}),
    }


def config(server: str = "https://127.0.0.1:6443", **user: str) -> Object:
    return kubeconfig(
        {"server": server, "certificate-authority-data": AUTHORITY}, user or {"token": "admin"}
    )


def kubeconfig_secret(owner: Object, content: Any = None) -> Object:
    text = json.dumps(content if content is not None else config())
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"{owner['metadata']['name']}-kubeconfig",
            "namespace": owner["metadata"]["namespace"],
            "uid": "uid-of-secret",
            "resourceVersion": "11",
            "labels": {names.MANAGED_BY: names.OURS},
            "ownerReferences": [
                {
                    "apiVersion": owner["apiVersion"],
                    "kind": owner["kind"],
                    "name": owner["metadata"]["name"],
                    "uid": owner["metadata"]["uid"],
                    "controller": True,
                }
            ],
        },
        "data": {"kubeconfig": base64.b64encode(text.encode()).decode()},
    }


def vouching(owner: Object, content: Any = None) -> Object:
    """A LocalCluster whose controller has recorded the digest of its kubeconfig."""
    digest = digest_of(content if content is not None else config())
    notes = {**owner["metadata"]["annotations"], names.KUBECONFIG_DIGEST: digest}
    return {**owner, "metadata": {**owner["metadata"], "annotations": notes}}


def source(owner: Object | None = None, content: Any = None) -> KubeconfigSource:
    owner = vouching(owner or local_cluster(), content)
    return describe(kubeconfig_secret(owner, content), owner)


def auth_info(of: KubeconfigSource) -> AuthInfo:
    return proven(of, read(of.kubeconfig, of.known))


def cluster_secret(
    of: KubeconfigSource, *, lifetime: float = 86_400, issued: float = NOW
) -> Object:
    secret = build(of, auth_info(of), Token("eyJsecret", issued, issued + lifetime))
    secret["metadata"].update(uid="uid-of-cluster-secret", resourceVersion="12")
    return secret


def registration(of: KubeconfigSource, **changes: Any) -> Registration:
    return Registration.of(cluster_secret(of, **changes))


def condition(type: str, status: str, reason: str = "Reason") -> Object:
    return {
        "type": type,
        "status": status,
        "reason": reason,
        "message": "words",
        "observedGeneration": 1,
        "lastTransitionTime": "2029-01-01T00:00:00Z",
    }
