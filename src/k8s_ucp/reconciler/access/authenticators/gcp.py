"""Google Cloud: an access token for the environment's service account, by google-auth.

GKE's connection Secrets contain no credential; clusters accept the service account's tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from k8s_ucp.errors import UcpError
from k8s_ucp.reconciler.access.authenticators.base import (
    AuthInfo,
    Cloud,
    CloudAuthenticator,
    NoAccess,
    kubeconfig,
)
from k8s_ucp.reconciler.access.authenticators.cloud_access import as_mapping, unusable

GCP = "gcp"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
LIFETIME = 3600.0
_KEYS = ("client_email", "private_key", "token_uri")


class Gcp(CloudAuthenticator):
    """A service-account key, exchanged at its token_uri."""

    name = GCP

    def connect(self, auth_info: AuthInfo, cloud: Cloud) -> dict[str, Any]:
        text = cloud.credential(GCP)
        key = f"{GCP} {hashlib.sha256(text.encode()).hexdigest()}"
        token = cloud.remembered(key, lambda: _take(text, cloud))
        return kubeconfig(auth_info.cluster, {"token": token})


def _take(text: str, cloud: Cloud) -> tuple[str, float]:
    from google.auth.exceptions import GoogleAuthError
    from google.oauth2.service_account import Credentials

    account = as_mapping(GCP, text, *_KEYS)
    try:
        found = Credentials.from_service_account_info(  # type: ignore[no-untyped-call]
            account, scopes=[SCOPE]
        )
    except (GoogleAuthError, ValueError) as error:
        raise unusable(GCP, "contains no usable private key") from error
    try:
        found.refresh(_Transport(cloud))
    except UcpError:
        raise
    except GoogleAuthError as error:
        raise NoAccess(
            "TokenRefused", f"Google Cloud rejected the key of {account['client_email']}"
        ) from error
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        # google-auth doesn't check the form of a response.
        raise NoAccess(
            "TokenRefused", "the response of the token endpoint of Google Cloud contains no token"
        ) from error
    return str(found.token), LIFETIME


class _Answer:
    """An HTTP response in the form that google-auth reads."""

    def __init__(self, status: int, data: bytes) -> None:
        self.status = status
        self.data = data
        self.headers: Mapping[str, str] = {}


class _Transport:
    """Sends google-auth's requests with `Cloud.send`, which bounds them."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ARG002 (that of Cloud.send is shorter)
        **_: Any,
    ) -> _Answer:
        return _Answer(*self._cloud.send(method, url, headers or {}, body=body))
