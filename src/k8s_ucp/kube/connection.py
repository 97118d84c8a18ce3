"""Requests to one API server with one identity, all of them bounded.

The official client's generated model classes are not used, since most objects here (Argo CD,
Crossplane, our own) have none.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from urllib3 import BaseHTTPResponse, PoolManager, Timeout
from urllib3.exceptions import ClosedPoolError, HTTPError

from k8s_ucp.kube.errors import TooLarge, Unreachable, plain, refusal
from k8s_ucp.kube.identity import TokenSource
from k8s_ucp.kube.kubeconfig import current_context, proxy_of
from k8s_ucp.kube.transport import open_pool
from k8s_ucp.responses.limits import RequestLimits, bounded

REQUEST_SECONDS = 10.0
LARGEST = 64 * 1024 * 1024
"""Largest response in bytes of a server that we trust: a page of a list with some objects of the
largest size."""
LARGEST_OF_OTHERS = 4 * 1024 * 1024
"""The same for app clusters. Any single object fits; one that is large on purpose takes twenty
times as much memory when parsed."""


class Connection:
    """Connection to one API server. Safe to share between threads."""

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        token: TokenSource | None = None,
        longest: float = float("inf"),
        largest: int = LARGEST,
    ) -> None:
        """config: a kubeconfig whose current context has inlined data only.

        token: replaces the user's credentials; after a 401 it is called once more.
        longest: upper limit in seconds for every request, except watches.
        largest: upper limit in bytes for every response, or event of a watch.
        Raises UcpError for exec plugins and file references, which are never followed.
        """
        cluster, user = current_context(config)
        if token is not None:
            user = {}
        self._cluster, self._user, self._proxy = cluster, user, proxy_of(cluster)
        self._token = token
        self._longest = longest
        self._largest = largest
        self.server = str(cluster["server"])
        self._headers = {"Accept": "application/json", "User-Agent": "k8s-ucp"}
        if user.get("token"):
            self._headers["Authorization"] = f"Bearer {user['token']}"
        self.warnings: set[str] = set()
        """Warnings of the server, such as deprecated API versions."""
        self._opening = threading.Lock()
        self._opened: PoolManager | None = None

    def close(self) -> None:
        """Close idle connections."""
        if self._opened is not None:
            self._opened.clear()

    def _pool(self) -> PoolManager:
        with self._opening:
            if self._opened is None:
                try:
                    self._opened = open_pool(self._cluster, self._user, self._proxy)
                except (OSError, ValueError) as error:
                    # Without its text, which may quote the credential.
                    raise Unreachable(
                        f"failed to connect to {self.server}: the kubeconfig's address, "
                        "certificates or key are not valid"
                    ) from error
            return self._opened

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content: str = "application/json",
        timeout: float = REQUEST_SECONDS,
        text: bool = False,
    ) -> Any:
        """Send a request; returns the JSON object of the response. Raises KubeError.

        timeout: seconds for the whole exchange, even if the response trickles in. text: the
        response is text, which is returned.
        """
        limit = min(timeout, self._longest)
        limits = RequestLimits(time.monotonic() + limit, self._largest, seconds=limit)
        response = self._send(method, path, query, body, content, limits)
        answer = self._read(method, path, response, limits)
        if text:
            return answer.decode(errors="replace")
        if not isinstance(found := _parsed(answer), dict):
            # Such as the login page of a proxy.
            raise Unreachable(f"{method} {self.server}{path}: the response is not a JSON object")
        return found

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        content: str,
        limits: RequestLimits,
    ) -> BaseHTTPResponse:
        """Send a request; returns once the headers are read. Raises KubeError."""
        url = f"{self.server}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = content

        def send() -> BaseHTTPResponse:
            wait = limits.remaining()
            with bounded(limits):
                return self._pool().request(
                    method,
                    url,
                    headers=headers,
                    body=body if body is None or isinstance(body, str) else json.dumps(body),
                    timeout=Timeout(connect=min(wait, REQUEST_SECONDS), read=wait),
                    retries=False,
                    # Never followed: it would send our credential to another server.
                    redirect=False,
                    preload_content=False,
                )

        def send_as(rejected: str | None = None) -> BaseHTTPResponse:
            if self._token is not None:
                headers["Authorization"] = f"Bearer {self._token(rejected=rejected)}"
            try:
                return send()
            except ClosedPoolError:
                # Another thread's failure closed the pool before anything was sent.
                return send()

        try:
            response = send_as()
            if response.status == 401 and self._token is not None:
                self._read(method, path, response, limits)
                response = send_as(headers["Authorization"].removeprefix("Bearer "))
        except (HTTPError, OSError) as error:
            raise self._unreachable(method, path, error, limits) from error
        if 300 <= response.status < 400:
            response.close()
            raise Unreachable(f"{method} {self.server}{path}: unexpected redirect")
        if response.status >= 400:
            text = self._read(method, path, response, limits)
            sent = headers.get("Authorization", "").removeprefix("Bearer ")
            raise refusal(method, path, response.status, _answer(text, sent))
        self.warnings.update(_warnings(response.headers.getlist("Warning")))
        return response

    def _read(
        self, method: str, path: str, response: BaseHTTPResponse, limits: RequestLimits
    ) -> bytes:
        """The whole content as it was sent: not decompressed, which would evade the limit."""
        try:
            return b"".join(response.stream(65536, decode_content=False))
        except (HTTPError, OSError, ValueError) as error:
            raise self._unreachable(method, path, error, limits) from error

    def _unreachable(
        self, method: str, path: str, error: Exception, limits: RequestLimits
    ) -> Unreachable:
        # Close idle connections to the same server, too: if one is half-open, the next request
        # would wait for its whole timeout.
        self.close()
        if limits.exceeded:
            where = f"{method} {self.server}{path}"
            return TooLarge(f"{where}: the response is larger than {limits.largest} bytes")
        message = plain(error, limits.seconds)
        return Unreachable(f"{self.server} is not responding: {message} ({method} {path})")


def _answer(text: bytes, token: str) -> Any:
    """The parsed body of an error, without the token; {} if it isn't valid JSON."""
    if token:
        # The server may echo the token, and its message ends up in logs and conditions.
        text = text.replace(token.encode(), b"***")
    return _parsed(text) or {}


def _parsed(text: bytes) -> Any:
    """The JSON; None if it isn't valid."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _warnings(headers: Iterable[str]) -> Iterator[str]:
    """Texts of warnings with the code 299, which Kubernetes uses: 299 - "text"."""
    for each in headers:
        if found := _WARNING.match(each):
            yield re.sub(r"\\(.)", r"\1", found[1])


_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
