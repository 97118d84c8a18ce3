"""DigitalOcean: its API exchanges an API token for a token of a cluster."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import quote

from k8s_ucp.clouds import is_token
from k8s_ucp.reconciler.access.authenticators.base import (
    AuthInfo,
    Cloud,
    CloudAuthenticator,
    NoAccess,
    kubeconfig,
)
from k8s_ucp.reconciler.access.authenticators.cloud_access import as_mapping, unusable

DIGITALOCEAN = "digitalocean"
API = "https://api.digitalocean.com"
LIFETIME = 3600
"""Requested lifetime in seconds."""


class DigitalOcean(CloudAuthenticator):
    """The API token, exchanged for a token of the cluster."""

    name = DIGITALOCEAN

    def connect(self, auth_info: AuthInfo, cloud: Cloud) -> dict[str, Any]:
        cluster = _cluster(auth_info)
        if not cluster:
            raise NoAccess(
                "ClusterUnknown",
                "neither the kubeconfig nor its owner specifies the DigitalOcean cluster id",
            )
        text = cloud.credential(DIGITALOCEAN)
        key = hashlib.sha256(json.dumps([text, auth_info.authority]).encode()).hexdigest()
        token = cloud.remembered(
            f"{DIGITALOCEAN} {cluster} {key}",
            lambda: _take(text, cluster, auth_info.authority, cloud),
        )
        return kubeconfig(auth_info.cluster, {"token": token})


def _cluster(auth_info: AuthInfo) -> str:
    if auth_info.plugin is None or not auth_info.cluster_info.as_a_whole:
        return auth_info.cluster_info.id
    # doctl kubernetes cluster kubeconfig exec-credential --version=... <id>
    words = [each for each in auth_info.arguments if not each.startswith("-")]
    return words[-1] if "exec-credential" in words[:-1] else auth_info.cluster_info.id


def _take(text: str, cluster: str, authority: str | None, cloud: Cloud) -> tuple[str, float]:
    answer = cloud.fetch(
        f"{API}/v2/kubernetes/clusters/{quote(cluster, safe='')}/credentials"
        f"?expiry_seconds={LIFETIME}",
        bearer=_api_token(text),
    )
    token = answer.get("token")
    if not isinstance(token, str) or not token:
        raise NoAccess("TokenRefused", "the response of DigitalOcean contains no token")
    returned = answer.get("certificate_authority_data")
    if isinstance(returned, str) and authority and returned.split() != authority.split():
        raise NoAccess(
            "SourceDiffers",
            "the CA in the kubeconfig differs from that of the DigitalOcean cluster "
            f"{cluster}; delete the Secret to have its owner recreate it",
        )
    return token, float(LIFETIME)


def _api_token(text: str) -> str:
    """The token of a credential, which is the token itself or `{"token": "..."}`."""
    try:
        json.loads(text)
    except ValueError:
        token = text.strip()
        if not is_token(token):
            raise unusable(DIGITALOCEAN, "is not a valid API token") from None
        return token
    return str(as_mapping(DIGITALOCEAN, text, "token")["token"])
