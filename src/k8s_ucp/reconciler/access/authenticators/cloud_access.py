"""The clouds' credentials and token endpoints, as authenticators use them.

Requests have a timeout and a size limit, follow no redirects, and use https only (except to this
machine, for tests). Errors name the host and its response, never the request.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from k8s_ucp.clouds import CLOUDS, read_object
from k8s_ucp.kube import SECRET, Kube, Unreachable
from k8s_ucp.loopback import is_loopback
from k8s_ucp.names import CROSSPLANE_NAMESPACE
from k8s_ucp.reconciler.access.authenticators.base import NoAccess
from k8s_ucp.reconciler.runtime.clock import Clock
from k8s_ucp.responses.limits import RequestLimits, bound, bounded

NAMESPACE = CROSSPLANE_NAMESPACE
KEY = "creds"
SECONDS = 10.0
LARGEST = 1_000_000
SPARE = 60.0
"""Cached tokens are not used in the last seconds of their lives."""


class CloudAccess:
    """Implements `Cloud`. Safe to share between threads."""

    def __init__(self, core: Kube, clock: Clock) -> None:
        self._core = core
        self._clock = clock
        self._http = urllib3.PoolManager(
            num_pools=4, timeout=urllib3.Timeout(SECONDS), retries=False
        )
        bound(self._http)
        self._tokens: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def now(self) -> float:
        return self._clock()

    def credential(self, cloud: str) -> str:
        """The text of the key `creds` in the cloud's Secret. Raises NoAccess, KubeError."""
        name = CLOUDS[cloud].secret
        secret = self._core.find(SECRET, name, NAMESPACE)
        content = ((secret or {}).get("data") or {}).get(KEY)
        if not content:
            what = (
                f"Secret {NAMESPACE}/{name} does not exist"
                if secret is None
                else (f"Secret {NAMESPACE}/{name} has no key {KEY}")
            )
            raise NoAccess(
                "CredentialsMissing",
                f"credentials of {cloud} are required, but {what}; write the "
                "credential to creds/, then run ucp start",
            )
        try:
            return base64.b64decode(content).decode()
        except ValueError as error:
            raise unusable(cloud, "is not text") from error

    def fetch(
        self, url: str, *, form: Mapping[str, str] | None = None, bearer: str = ""
    ) -> dict[str, Any]:
        """POST a form, or GET; returns the JSON. Raises NoAccess (refused), Unreachable."""
        headers = {"Accept": "application/json", "User-Agent": "k8s-ucp"}
        if bearer:
            headers["Authorization"] = f"Bearer {bearer}"
        if form is None:
            status, body = self.send("GET", url, headers)
        else:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            status, body = self.send("POST", url, headers, body=urlencode(form).encode())
        host = urlsplit(url).hostname
        if status >= 500 or status == 429:
            raise Unreachable(f"the token endpoint of {host} returned {status}")
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if status >= 300 or not isinstance(answer, dict):
            word = answer.get("error") or answer.get("id") if isinstance(answer, dict) else ""
            error_code = f" ({word[:80]})" if isinstance(word, str) and word else ""
            raise NoAccess(
                "TokenRefused", f"the token endpoint of {host} returned {status}{error_code}"
            )
        return answer

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        *,
        body: bytes | None = None,
    ) -> tuple[int, bytes]:
        """Send a request; returns status and content. Raises NoAccess (no TLS), Unreachable."""
        parts = urlsplit(url)
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise NoAccess("CredentialsInvalid", f"{parts.hostname} requires TLS")
        limits = RequestLimits(time.monotonic() + SECONDS, LARGEST)
        try:
            with bounded(limits):
                # Not decompressed, which would evade the limit.
                answer = self._http.request(
                    method,
                    url,
                    headers=dict(headers),
                    body=body,
                    redirect=False,
                    decode_content=False,
                )
            return int(answer.status), answer.data
        except (HTTPError, OSError) as error:
            raise Unreachable(
                f"the token endpoint of {parts.hostname} is not responding: {type(error).__name__}"
            ) from error

    def remembered(self, key: str, take: Callable[[], tuple[str, float]]) -> str:
        """A cached token, or else the one that `take` returns: (text, lifetime in seconds)."""
        with self._lock:
            text, until = self._tokens.get(key, ("", 0.0))
        if text and self._clock() < until:
            return text
        text, seconds = take()
        with self._lock:
            self._tokens[key] = (text, self._clock() + seconds - SPARE)
        return text

    def forget(self) -> None:
        """Drop all cached tokens, since a cluster rejected one."""
        with self._lock:
            self._tokens.clear()


def unusable(cloud: str, why: str) -> NoAccess:
    """The error for a credential that exists but can't be used; never contains its text."""
    return NoAccess(
        "CredentialsInvalid", f"the credential in Secret {NAMESPACE}/{CLOUDS[cloud].secret} {why}"
    )


def as_mapping(cloud: str, text: str, *keys: str) -> Mapping[str, Any]:
    """The credential as JSON with these keys. Raises NoAccess, which names what is missing."""
    try:
        return read_object(text, *keys)
    except ValueError as error:
        raise unusable(cloud, str(error).removeprefix("it ")) from error
