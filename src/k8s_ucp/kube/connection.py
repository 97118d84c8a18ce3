"""Requests to one API server as one identity, every one of them bounded.

The official client does transport and TLS; its generated model classes are not used, since most
objects here (Argo CD, Crossplane, our own) have none.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from urllib3.exceptions import ClosedPoolError, HTTPError

from k8s_ucp.kube.errors import TooLarge, Unreachable, plain, refusal
from k8s_ucp.kube.identity import CredentialFiles, TokenSource
from k8s_ucp.kube.kubeconfig import current_context, proxy_of
from k8s_ucp.kube.limits import RequestLimits, bound, bounded

REQUEST_SECONDS = 10.0
LARGEST = 64 * 1024 * 1024
"""Bytes of an answer of a server that we trust: a page of a list, with its objects at their largest
now and then."""
LARGEST_OF_OTHERS = 4 * 1024 * 1024
"""The same of an app cluster. One object fits in always; what somebody made to be large takes up
twenty times as much once it is parsed."""

_IMPORTING = threading.Lock()
"""Of threads that import a package's parts at once, one may see the package half made."""


class Connection:
    """Safe to share between threads."""

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        token: TokenSource | None = None,
        longest: float = float("inf"),
        largest: int = LARGEST,
    ) -> None:
        """config: a kubeconfig whose current context holds inlined data only.

        token: takes the place of the user's credentials; after a 401 it is asked once more.
        longest: seconds that any answer may take, whatever the request allows; not for watches.
        largest: bytes that any answer may have, or any event of a watch.
        Exec plugins and file references are never followed: they raise UcpError.
        """
        with _IMPORTING:
            # A fifth of a second, most of it for cloud logins that are not used here: it is spent
            # when the first connection is made, while servers come up, and not by every command.
            from kubernetes.client.configuration import Configuration
            from kubernetes.client.exceptions import ApiException
            from kubernetes.client.rest import RESTClientObject

        cluster, user = current_context(config)
        if token is not None:
            user = {}
        self._token = token
        self._longest = longest
        self._largest = largest
        self.server = str(cluster["server"])
        self._files = CredentialFiles()
        settings = Configuration(host=self.server)
        # The kubeconfig's alone: HTTPS_PROXY would lead requests to 127.0.0.1 away.
        settings.proxy, settings.no_proxy = proxy_of(cluster), ""
        settings.retries = False
        settings.connection_pool_maxsize = 16
        settings.verify_ssl = not cluster.get("insecure-skip-tls-verify", False)
        authority = cluster.get("certificate-authority-data")
        if authority:
            settings.ca_cert_data = base64.b64decode(authority).decode()
        if cluster.get("tls-server-name"):
            settings.tls_server_name = cluster["tls-server-name"]
        if user.get("client-certificate-data"):
            settings.cert_file = self._files.add(user["client-certificate-data"])
            settings.key_file = self._files.add(user["client-key-data"])
        self._headers = {"Accept": "application/json", "User-Agent": "k8s-ucp"}
        if user.get("token"):
            self._headers["Authorization"] = f"Bearer {user['token']}"
        self._rest = RESTClientObject(settings)
        bound(self._rest.pool_manager)
        self._client_error: type[Exception] = ApiException

    def close(self) -> None:
        """Close connections and forget credentials."""
        self._rest.close()
        self._files.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content: str = "application/json",
        timeout: float = REQUEST_SECONDS,
    ) -> Any:
        """One request; the decoded JSON answer, or the text where it isn't JSON.

        timeout: seconds for all of it, however the answer trickles in. Raises KubeError.
        """
        limit = min(timeout, self._longest)
        limits = RequestLimits(time.monotonic() + limit, self._largest, seconds=limit)
        response = self._send(method, path, query, body, content, limits)
        text = self._read(method, path, response, limits).decode(errors="replace")
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        content: str,
        limits: RequestLimits,
    ) -> Any:
        """An answer whose headers are there. Raises KubeError."""
        url = f"{self.server}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = content

        def send() -> Any:
            wait = limits.remaining()
            with bounded(limits):
                return self._rest.request(  # type: ignore[no-untyped-call]
                    method,
                    url,
                    headers=headers,
                    body=body,
                    _request_timeout=(min(wait, REQUEST_SECONDS), wait),
                )

        def send_as(rejected: str | None = None) -> Any:
            if self._token is not None:
                headers["Authorization"] = f"Bearer {self._token(rejected=rejected)}"
            try:
                return send()
            except ClosedPoolError:
                # Another thread's failure closed it before anything was sent.
                return send()

        try:
            response = send_as()
            if response.status == 401 and self._token is not None:
                self._read(method, path, response, limits)
                response = send_as(headers["Authorization"].removeprefix("Bearer "))
        except (HTTPError, OSError, self._client_error) as error:
            raise self._unreachable(method, path, error, limits) from error
        if 300 <= response.status < 400:
            # Never followed: it would lead our credential somewhere else.
            response.response.close()
            raise Unreachable(f"{method} {self.server}{path}: unexpected redirect")
        if response.status >= 400:
            text = self._read(method, path, response, limits)
            sent = headers.get("Authorization", "").removeprefix("Bearer ")
            if sent:
                # Its words end up in logs and conditions: it may repeat what it was sent.
                text = text.replace(sent.encode(), b"***")
            try:
                answer = json.loads(text or b"{}")
            except (ValueError, RecursionError):
                answer = {}
            raise refusal(method, path, response.status, answer)
        return response

    def _read(self, method: str, path: str, response: Any, limits: RequestLimits) -> bytes:
        """The whole content, as it was sent: what is packed is not unpacked."""
        try:
            return b"".join(response.response.stream(65536, decode_content=False))
        except (HTTPError, OSError, ValueError) as error:
            raise self._unreachable(method, path, error, limits) from error

    def _unreachable(
        self, method: str, path: str, error: Exception, limits: RequestLimits
    ) -> Unreachable:
        # Other idle connections went the same way to the same server: one that is half-open would
        # cost the next request its whole timeout.
        self._rest.close()
        if limits.exceeded:
            where = f"{method} {self.server}{path}"
            return TooLarge(f"{where}: the response is larger than {limits.largest} bytes")
        words = plain(error, limits.seconds)
        return Unreachable(f"{self.server} is not responding: {words} ({method} {path})")
