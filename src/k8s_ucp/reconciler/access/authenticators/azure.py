"""Azure: a token of Microsoft Entra ID for the service principal, with AKS as audience."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import quote

from k8s_ucp.reconciler.access.authenticators.base import (
    AuthInfo,
    Cloud,
    CloudAuthenticator,
    NoAccess,
    kubeconfig,
)
from k8s_ucp.reconciler.access.authenticators.cloud_access import as_mapping

AZURE = "azure"
AUTHORITY = "https://login.microsoftonline.com"
LONGEST = 86_400.0
"""Longest lifetime of a token that is believed, in seconds."""
UNKNOWN = 300.0
"""Lifetime that is assumed if the response has no valid one."""
AKS = "6dae42f8-4368-4678-94ff-3960e28e3630"
"""Application ID of the AKS API servers, the same for all tenants."""


class Azure(CloudAuthenticator):
    """Client credentials of a service principal."""

    name = AZURE

    def connect(self, auth_info: AuthInfo, cloud: Cloud) -> dict[str, Any]:
        text = cloud.credential(AZURE)
        server = auth_info.argument("--server-id") or AKS
        key = f"{AZURE} {server} {hashlib.sha256(text.encode()).hexdigest()}"
        token = cloud.remembered(key, lambda: _take(text, server, cloud))
        return kubeconfig(auth_info.cluster, {"token": token})


def _take(text: str, server: str, cloud: Cloud) -> tuple[str, float]:
    principal = as_mapping(AZURE, text, "clientId", "clientSecret", "tenantId")
    authority = str(principal.get("activeDirectoryEndpointUrl") or AUTHORITY).rstrip("/")
    answer = cloud.fetch(
        f"{authority}/{quote(principal['tenantId'], safe='')}/oauth2/v2.0/token",
        form={
            "grant_type": "client_credentials",
            "client_id": principal["clientId"],
            "client_secret": principal["clientSecret"],
            "scope": f"{server}/.default",
        },
    )
    token = answer.get("access_token")
    if not isinstance(token, str):
        raise NoAccess("TokenRefused", "the response of Azure contains no access_token")
    try:
        seconds = float(answer.get("expires_in") or UNKNOWN)
    except (ValueError, TypeError, OverflowError):
        seconds = UNKNOWN
    return token, seconds if 0 < seconds <= LONGEST else UNKNOWN
