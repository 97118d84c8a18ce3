"""The verbs of the Kubernetes API, with plain dicts in and out."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from urllib3.exceptions import HTTPError

from k8s_ucp.errors import UcpError
from k8s_ucp.kube.connection import LARGEST, REQUEST_SECONDS, Connection
from k8s_ucp.kube.discovery import api_groups, api_resources
from k8s_ucp.kube.errors import KubeError, NotFound, TooLarge, Unreachable, refusal
from k8s_ucp.kube.identity import KubeconfigToken, TokenFile, TokenSource
from k8s_ucp.kube.kinds import KNOWN, SERVICE_ACCOUNT, Kind, Object
from k8s_ucp.kube.kubeconfig import TOKEN, current_context, read_kubeconfig
from k8s_ucp.kube.object_form import is_event, is_list, is_object
from k8s_ucp.responses.limits import RequestLimits

FIELD_MANAGER = "k8s-ucp"
PAGE = 500
"""Objects per page of a list; fewer if a page is too large."""
MOST_OBJECTS = 100_000
LIST_SECONDS = 300.0
"""Limits of a whole list, since the server decides how many pages it has."""
SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")

PatchType = Literal["merge", "json", "strategic"]

_PATCH_CONTENT = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


class Kube(Connection):
    """Client of one API server with one identity. Safe to share between threads."""

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        token: TokenSource | None = None,
        longest: float = float("inf"),
        largest: int = LARGEST,
    ) -> None:
        """See Connection."""
        super().__init__(config, token=token, longest=longest, largest=largest)
        self._discovered: dict[tuple[str, str], Kind] = {}
        self._lock = threading.Lock()

    @classmethod
    def from_file(cls, path: Path) -> Kube:
        """Read a kubeconfig file; a token is read again when the server rejects it.

        Raises UcpError if the file is missing or can't be used.
        """
        config = read_kubeconfig(path)
        user = current_context(config)[1]
        alone = user.get("token") and not user.get("client-certificate-data")
        return cls(config, token=KubeconfigToken(path, user["token"]) if alone else None)

    @classmethod
    def in_cluster(cls, *, longest: float = float("inf")) -> Kube:
        """The cluster of this pod, as its ServiceAccount; the kubelet renews the token.

        Raises UcpError outside of a pod.
        """
        host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
        port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        try:
            authority = (SERVICE_ACCOUNT_FOLDER / "ca.crt").read_bytes()
        except OSError as error:
            raise UcpError(f"not in a pod with a ServiceAccount: {error.strerror}") from error
        if not host:
            raise UcpError("not in a pod: KUBERNETES_SERVICE_HOST is not set")
        cluster = {
            "server": f"https://{f'[{host}]' if ':' in host else host}:{port}",
            "certificate-authority-data": base64.b64encode(authority).decode(),
        }
        config = {
            "clusters": [{"name": "pod", "cluster": cluster}],
            "contexts": [{"name": "pod", "context": {"cluster": "pod"}}],
            "current-context": "pod",
        }
        return cls(config, token=TokenFile(SERVICE_ACCOUNT_FOLDER / "token"), longest=longest)

    def ready(self, *, timeout: float = 2.0) -> bool:
        """Whether the server reports that it is ready."""
        try:
            self.request("GET", "/readyz", timeout=timeout, text=True)
        except KubeError:
            return False
        return True

    def server_certificate(self) -> bytes:
        """The server's certificate as PEM, not verified. Raises KubeError."""
        where = urlsplit(self.server)
        try:
            pem = ssl.get_server_certificate((where.hostname or "", where.port or 443), timeout=2.0)
        except (OSError, ValueError) as error:
            raise Unreachable(f"{self.server}: {error}") from error
        return pem.encode()

    def version(self) -> str:
        """Kubernetes version of the server, such as v1.35.4."""
        found = self.request("GET", "/version").get("gitVersion")
        if not found:
            raise Unreachable(f"{self.server} is not a Kubernetes API server (GET /version)")
        return str(found)

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Raises NotFound."""
        path = kind.path(namespace, name)
        found: Object = self.request("GET", path)
        if not is_object(found):
            raise Unreachable(f"GET {self.server}{path}: the response is not an object")
        return found

    def find(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        """Like get, but None if the object or its kind does not exist."""
        try:
            return self.get(kind, name, namespace)
        except NotFound:
            return None

    def list_all(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
    ) -> list[Object]:
        """All objects of a kind, read in pages; apiVersion and kind are filled in."""
        items, _ = self.list_with_version(kind, namespace, labels=labels, fields=fields)
        return items

    def list_with_version(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        timeout: float = REQUEST_SECONDS,
        keep: Callable[[Object], Object | None] = lambda item: item,
    ) -> tuple[list[Object], str]:
        """The objects, and the resource version to watch from. timeout: seconds for one page.

        keep: reduces each object, or drops it (None), so that at most one page is held in full.
        Raises KubeError.
        """
        query = _present(labelSelector=labels, fieldSelector=fields, limit=str(PAGE))
        items: list[Object] = []
        until, count = time.monotonic() + LIST_SECONDS, 0
        while True:
            if count > MOST_OBJECTS or time.monotonic() > until:
                raise TooLarge(
                    f"GET {self.server}{kind.path(namespace)}: pagination of the list does not end"
                )
            try:
                page = self.request("GET", kind.path(namespace), query=query, timeout=timeout)
            except TooLarge:
                if query["limit"] == "1":
                    raise
                query["limit"] = str(max(1, int(query["limit"]) // 8))
                continue
            if not is_list(page):
                raise Unreachable(
                    f"GET {self.server}{kind.path(namespace)}: the response is not a list"
                )
            count += len(page["items"])
            for item in page["items"]:
                item.setdefault("apiVersion", kind.api_version)
                item.setdefault("kind", kind.kind)
                kept = keep(item)
                if kept is not None:
                    items.append(kept)
            following = page["metadata"].get("continue")
            if not following:
                return items, page["metadata"].get("resourceVersion", "")
            query["continue"] = following

    def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        since: str,
        labels: str | None = None,
        fields: str | None = None,
        seconds: float = 240,
        silence: float | None = None,
    ) -> Iterator[tuple[str, Object]]:
        """Changes after `since` as (ADDED|MODIFIED|DELETED|BOOKMARK, object).

        Ends when the server ends it (after `seconds`); `silence` is the longest wait in seconds
        for one event. Raises Expired if `since` is too old, Unreachable if the connection breaks.
        """
        query = _present(
            watch="true",
            resourceVersion=since,
            labelSelector=labels,
            fieldSelector=fields,
            allowWatchBookmarks="true",
            timeoutSeconds=str(int(seconds)),
        )
        path = kind.path(namespace)
        wait = silence or seconds + REQUEST_SECONDS
        limits = RequestLimits(time.monotonic() + wait, self._largest)
        raw = self._send("GET", path, query, None, "application/json", limits)
        # From here on the timeout is per event; the server ends the watch, or we do.
        limits.wait, limits.until = wait, time.monotonic() + seconds + wait
        try:
            for line in _lines(raw, limits):
                what, item = _event(line)
                if what == "ERROR":
                    raise refusal("WATCH", path, item.get("code"), item)
                yield what, item
        except (HTTPError, OSError, ValueError, RecursionError) as error:
            raise self._unreachable("WATCH", path, error, limits) from error
        finally:
            with contextlib.suppress(HTTPError, OSError):
                raw.close()

    def create(self, item: Object) -> Object:
        """Create an object. Raises Conflict if it exists."""
        kind, namespace, _ = self._kind_and_key(item)
        answer: Object = self.request(
            "POST", kind.path(namespace), query={"fieldManager": FIELD_MANAGER}, body=item
        )
        return answer

    def apply(
        self,
        item: Object,
        *,
        force: bool = True,
        manager: str = FIELD_MANAGER,
        dry_run: bool = False,
        subresource: str = "",
    ) -> Object:
        """Server-side apply: sets our fields as given and keeps those of others.

        subresource: apply only that, such as `status`. Raises NotFound if there is no object.
        """
        kind, namespace, name = self._kind_and_key(item)
        query = _present(
            fieldManager=manager,
            force="true" if force else "false",
            dryRun="All" if dry_run else None,
        )
        answer: Object = self.request(
            "PATCH",
            kind.path(namespace, name) + (f"/{subresource}" if subresource else ""),
            query=query,
            body=json.dumps(item),
            content="application/apply-patch+yaml",
        )
        return answer

    def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        change: Any,
        *,
        type: PatchType = "merge",
        subresource: str = "",
    ) -> Object:
        """Patch one object, or a subresource of it such as `status`."""
        path = kind.path(namespace, name) + (f"/{subresource}" if subresource else "")
        answer: Object = self.request(
            "PATCH",
            path,
            query={"fieldManager": FIELD_MANAGER},
            body=change,
            content=_PATCH_CONTENT[type],
        )
        return answer

    def replace(self, item: Object, *, subresource: str = "") -> Object:
        """Write the whole object. Raises Conflict if it changed since it was read."""
        kind, namespace, name = self._kind_and_key(item)
        path = kind.path(namespace, name) + (f"/{subresource}" if subresource else "")
        answer: Object = self.request("PUT", path, query={"fieldManager": FIELD_MANAGER}, body=item)
        return answer

    def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        propagation: str = "Background",
    ) -> bool:
        """Delete one object; False if it did not exist.

        uid: delete only the object with this UID; otherwise raises Conflict.
        """
        body: Object = {"propagationPolicy": propagation}
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            self.request("DELETE", kind.path(namespace, name), body=body)
        except NotFound:
            return False
        return True

    def request_token(
        self, namespace: str, service_account: str, *, seconds: int
    ) -> tuple[str, str]:
        """A token of a ServiceAccount: (token, granted expiry as RFC 3339). Raises KubeError."""
        answer = self.request(
            "POST",
            SERVICE_ACCOUNT.path(namespace, service_account) + "/token",
            body={
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": seconds},
            },
        )
        status = answer.get("status") if isinstance(answer, dict) else None
        status = status if isinstance(status, dict) else {}
        token = status.get("token")
        if not isinstance(token, str) or not TOKEN.fullmatch(token):
            raise Unreachable(f"{self.server} returned no usable token for a TokenRequest")
        return token, str(status.get("expirationTimestamp", ""))

    def kind_of(self, api_version: str, kind: str) -> Kind:
        """Look up a kind on the server; the result is cached. Raises NotFound."""
        known = KNOWN.get((api_version, kind)) or self._discovered.get((api_version, kind))
        if known:
            return known
        resources = api_resources(self, api_version)
        with self._lock:
            for each in resources:
                self._discovered[api_version, each.kind.kind] = each.kind
        found = self._discovered.get((api_version, kind))
        if not found:
            raise NotFound(f"{self.server} has no kind {kind} in {api_version}", status=404)
        return found

    def namespaced_kinds(self) -> list[Kind]:
        """Every namespaced kind that can be listed, each in one version.

        Raises KubeError, also if a single API group does not respond.
        """
        versions = ["v1", *chain.from_iterable(api_groups(self).values())]
        with ThreadPoolExecutor(8, "discover") as pool:
            resources = list(pool.map(partial(api_resources, self), versions))
        found: dict[tuple[str, str], Kind] = {}
        for each in chain.from_iterable(resources):
            if each.kind.namespaced and "list" in each.verbs:
                found.setdefault((each.kind.group, each.kind.plural), each.kind)
        return list(found.values())

    def _kind_and_key(self, item: Object) -> tuple[Kind, str | None, str]:
        kind = self.kind_of(item["apiVersion"], item["kind"])
        metadata = item["metadata"]
        namespace = metadata.get("namespace", "default") if kind.namespaced else None
        return kind, namespace, metadata["name"]


def _lines(raw: Any, limits: RequestLimits) -> Iterator[bytes]:
    parts: list[bytes] = []
    for chunk in raw.stream(65536, decode_content=False):
        first, *others = chunk.split(b"\n")
        parts.append(first)
        for each in others:
            line, parts = b"".join(parts), [each]
            limits.restart()
            if line.strip():
                yield line


def _event(line: bytes) -> tuple[str, Object]:
    """(type, object) of a line of a watch. Raises ValueError."""
    event = json.loads(line)
    if not is_event(event):
        raise ValueError("the response is not an event of a watch")
    return event["type"], event["object"]


def _present(**query: str | None) -> dict[str, str]:
    return {name: value for name, value in query.items() if value is not None}
