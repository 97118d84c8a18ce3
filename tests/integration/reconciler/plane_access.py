"""What tests take from their control planes: processes, and tokens signed with their keys."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import psutil

from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.clusters.embedded.processes import find_own
from tests.integration.reconciler.conftest import Planes


def api_server(planes: Planes, name: str) -> psutil.Process:
    folder = ClusterFolder(planes.folder / "clusters", name)
    for identity in find_own(folder):
        if Path(identity.executable).name == "kube-apiserver":
            return psutil.Process(identity.pid)
    raise AssertionError(f"{name} has no API server")


def expired_token(planes: Planes, cluster: str, like: str) -> str:
    """A token signed by the cluster's own key that expired long ago. like: a valid token."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    def decoded(part: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return found

    def encoded(content: bytes) -> str:
        return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

    head, body, _ = like.split(".")
    claims = {**decoded(body), "iat": 1_600_000_000, "nbf": 1_600_000_000, "exp": 1_600_003_600}
    text = f"{head}.{encoded(json.dumps(claims).encode())}"
    keys = ClusterFolder(planes.folder / "clusters", cluster).root.rglob("admin.key")
    key = serialization.load_pem_private_key(next(keys).read_bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    numbers = decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{text}.{encoded(b''.join(each.to_bytes(32, 'big') for each in numbers))}"
