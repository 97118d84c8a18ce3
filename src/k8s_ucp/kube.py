"""The door to Kubernetes API servers: plain dicts in, plain dicts out, every request bounded.

The official client does transport and TLS; its generated model classes are not used, since most
objects here (Argo CD, Crossplane, our own) have none. Foreign errors become ours at this door and
carry method, path and the server's message, never a header or a body.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import quote, urlencode

from ruamel.yaml import YAML
from urllib3.exceptions import ClosedPoolError, HTTPError

from k8s_ucp.errors import UcpError

FIELD_MANAGER = "k8s-ucp"
REQUEST_SECONDS = 10.0
SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TOKEN_FILE_SECONDS = 60.0

Object = dict[str, Any]
PatchType = Literal["merge", "json", "strategic"]

_PATCH_CONTENT = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


class KubeError(UcpError):
    """An API server refused or failed a request. status: HTTP code, 0 where none came back."""

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        self.status = status
        self.reason = reason
        super().__init__(message)


class NotFound(KubeError):
    """The object, or its kind, does not exist."""


class Conflict(KubeError):
    """It exists already, or changed since it was read, or another manager owns a field."""


class Forbidden(KubeError):
    """Known identity, not allowed (403)."""


class Unauthorized(KubeError):
    """The credential is not accepted (401): expired, revoked or wrong."""


class Invalid(KubeError):
    """The server refused the content (400, 422)."""


class Expired(KubeError):
    """The resource version is too old to watch from (410): list again."""


class Unreachable(KubeError):
    """No answer: refused, timed out, TLS failure, or the server is failing (5xx, 429)."""


_BY_STATUS: dict[int, type[KubeError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: Unreachable,
}


@dataclass(frozen=True)
class Kind:
    """Where objects of one kind live in the API."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """URL path of the collection, or of one object when a name is given."""
        root = "/api/v1" if self.api_version == "v1" else f"/apis/{self.api_version}"
        scope = f"/namespaces/{quote(namespace)}" if self.namespaced and namespace else ""
        tail = f"/{quote(name, safe='')}" if name else ""
        return f"{root}{scope}/{self.plural}{tail}"


NAMESPACE = Kind("v1", "Namespace", "namespaces", namespaced=False)
SECRET = Kind("v1", "Secret", "secrets")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
SERVICE = Kind("v1", "Service", "services")
NODE = Kind("v1", "Node", "nodes", namespaced=False)
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
EVENT = Kind("v1", "Event", "events")
PERSISTENT_VOLUME = Kind("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
ROLE = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE_BINDING = Kind(
    "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
CRD = Kind(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
)
APPLICATION = Kind("argoproj.io/v1alpha1", "Application", "applications")
APPLICATION_SET = Kind("argoproj.io/v1alpha1", "ApplicationSet", "applicationsets")
APP_PROJECT = Kind("argoproj.io/v1alpha1", "AppProject", "appprojects")
LOCAL_CLUSTER = Kind("k8s-ucp.io/v1alpha1", "LocalCluster", "localclusters")
SYNCER = Kind("k8s-ucp.io/v1alpha1", "Syncer", "syncers")

_KNOWN = {
    (each.api_version, each.kind): each
    for each in (
        NAMESPACE,
        SECRET,
        CONFIG_MAP,
        SERVICE_ACCOUNT,
        SERVICE,
        NODE,
        DEPLOYMENT,
        LEASE,
        EVENT,
        PERSISTENT_VOLUME,
        ROLE,
        ROLE_BINDING,
        CLUSTER_ROLE_BINDING,
        CRD,
        APPLICATION,
        APPLICATION_SET,
        APP_PROJECT,
        LOCAL_CLUSTER,
        SYNCER,
    )
}


class TokenSource(Protocol):
    """Where a connection's token comes from, asked for every request."""

    def __call__(self, *, rejected: str | None = None) -> str:
        """The token to use now; rejected: the server just turned this one down, so not it again.

        Raises KubeError, UcpError.
        """


class Kube:
    """One API server as one identity. Safe to share between threads."""

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        token: TokenSource | None = None,
        longest: float = float("inf"),
    ) -> None:
        """config: a kubeconfig whose current context holds inlined data only.

        token: takes the place of the user's credentials; after a 401 it is asked once more.
        longest: seconds that any answer may take, whatever the request allows; not for watches.
        Exec plugins and file references are never followed: they raise UcpError.
        """
        # A fifth of a second, most of it for cloud logins that are not used here: it is spent when
        # the first connection is made, while servers come up, and not by every command.
        from kubernetes.client.configuration import Configuration
        from kubernetes.client.exceptions import ApiException
        from kubernetes.client.rest import RESTClientObject

        cluster, user = current_context(config)
        if token is not None:
            user = {}
        self._token = token
        self._longest = longest
        self.server = str(cluster["server"])
        self._files = _CredentialFiles()
        settings = Configuration(host=self.server)
        settings.proxy = None
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
        self._client_error: type[Exception] = ApiException
        self._discovered: dict[tuple[str, str], Kind] = {}
        self._lock = threading.Lock()

    @classmethod
    def from_file(cls, path: Path) -> Kube:
        """Read a kubeconfig file. Raises UcpError when there is none or it can't be used."""
        return cls(read_kubeconfig(path))

    @classmethod
    def in_cluster(
        cls, folder: Path = SERVICE_ACCOUNT_FOLDER, *, longest: float = float("inf")
    ) -> Kube:
        """The cluster whose pod this is, as its ServiceAccount; the kubelet renews the token.

        Raises UcpError outside of a pod.
        """
        host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
        port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        try:
            authority = (folder / "ca.crt").read_bytes()
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
        return cls(config, token=_TokenFile(folder / "token"), longest=longest)

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
        """One request; the decoded JSON answer, or the text where it isn't JSON."""
        limit = min(timeout, self._longest)
        response = self._send(method, path, query, body, content, limit)
        try:
            text = response.read().decode()
        except (HTTPError, OSError) as error:
            raise self._unreachable(method, path, error) from error
        try:
            return json.loads(text)
        except ValueError:
            return text

    def ready(self, *, timeout: float = 2.0) -> bool:
        """The server says that it is ready."""
        try:
            self.request("GET", "/readyz", timeout=timeout)
        except KubeError:
            return False
        return True

    def version(self) -> str:
        """Kubernetes version of the server, such as v1.35.4."""
        return str(self.request("GET", "/version")["gitVersion"])

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Raises NotFound."""
        answer: Object = self.request("GET", kind.path(namespace, name))
        return answer

    def find(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        """Like get, None where it (or its kind) does not exist."""
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
        """All objects of a kind, in pages of 500; apiVersion and kind are filled in."""
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

        keep: what of each is returned, None for nothing; never more than a page is held whole.
        """
        query = _present(labelSelector=labels, fieldSelector=fields, limit="500")
        items: list[Object] = []
        while True:
            page = self.request("GET", kind.path(namespace), query=query, timeout=timeout)
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
        for one event. Raises Expired when `since` is too old, Unreachable on a broken connection.
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
        response = self._send(
            "GET", path, query, None, "application/json", silence or seconds + REQUEST_SECONDS
        )
        raw = response.response
        try:
            for line in _lines(raw):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise _error("WATCH", path, event["object"].get("code", 0), event["object"])
                yield event["type"], event["object"]
        except (HTTPError, OSError, ValueError) as error:
            raise self._unreachable("WATCH", path, error) from error
        finally:
            with contextlib.suppress(HTTPError, OSError):
                raw.close()

    def create(self, item: Object) -> Object:
        """Raises Conflict where it exists."""
        kind, namespace, _ = self._place(item)
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
        timeout: float = 30.0,
    ) -> Object:
        """Server-side apply: our fields become as given, others' fields stay.

        subresource: apply to that part only, such as `status`; NotFound where there is no object.
        """
        kind, namespace, name = self._place(item)
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
            timeout=timeout,
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
        """Patch one object, or its subresource such as `status`."""
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
        """Write the whole object; Conflict when it changed since it was read."""
        kind, namespace, name = self._place(item)
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
        """Delete one object; False where there was none.

        uid: only if it is still that object (Conflict otherwise).
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
        """A token of a ServiceAccount: (token, expiry as RFC 3339; the granted one)."""
        answer = self.request(
            "POST",
            SERVICE_ACCOUNT.path(namespace, service_account) + "/token",
            body={
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": seconds},
            },
        )
        return answer["status"]["token"], answer["status"]["expirationTimestamp"]

    def kind_of(self, api_version: str, kind: str) -> Kind:
        """Look a kind up on the server (remembered). Raises NotFound."""
        known = _KNOWN.get((api_version, kind)) or self._discovered.get((api_version, kind))
        if known:
            return known
        root = "/api/v1" if api_version == "v1" else f"/apis/{api_version}"
        listing = self.request("GET", root)
        with self._lock:
            for each in listing["resources"]:
                if "/" not in each["name"]:
                    self._discovered[api_version, each["kind"]] = Kind(
                        api_version, each["kind"], each["name"], each["namespaced"]
                    )
        found = self._discovered.get((api_version, kind))
        if not found:
            raise NotFound(f"{self.server} has no kind {kind} in {api_version}", status=404)
        return found

    def _place(self, item: Object) -> tuple[Kind, str | None, str]:
        kind = self.kind_of(item["apiVersion"], item["kind"])
        metadata = item["metadata"]
        namespace = metadata.get("namespace", "default") if kind.namespaced else None
        return kind, namespace, metadata["name"]

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        content: str,
        timeout: float,
    ) -> Any:
        url = f"{self.server}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = content
        limits = (min(timeout, REQUEST_SECONDS), timeout)

        def send() -> Any:
            return self._rest.request(  # type: ignore[no-untyped-call]
                method, url, headers=headers, body=body, _request_timeout=limits
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
                response.read()
                response = send_as(headers["Authorization"].removeprefix("Bearer "))
        except (HTTPError, OSError, self._client_error) as error:
            raise self._unreachable(method, path, error) from error
        if response.status >= 400:
            try:
                answer = json.loads(response.read() or b"{}")
            except (ValueError, HTTPError):
                answer = {}
            raise _error(method, path, response.status, answer)
        return response

    def _unreachable(self, method: str, path: str, error: Exception) -> Unreachable:
        # Other idle connections went the same way to the same server: one that is half-open would
        # cost the next request its whole timeout.
        self._rest.close()
        return Unreachable(f"{method} {self.server}{path}: {_plain(error)}")


class _TokenFile:
    """A pod's projected token: the kubelet writes it anew long before it expires."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text = ""
        self._read_at = 0.0

    def __call__(self, *, rejected: str | None = None) -> str:
        now = time.monotonic()
        if rejected is not None or not self._text or now - self._read_at > _TOKEN_FILE_SECONDS:
            try:
                self._text = self._path.read_text(encoding="ascii").strip()
            except OSError as error:
                raise UcpError(f"can't read the pod's token: {error.strerror}") from error
            self._read_at = now
        return self._text


class _CredentialFiles:
    """Client certificates as files that never reach a disk where the system allows it.

    ssl.SSLContext.load_cert_chain takes paths only, and reads them again for every connection.
    """

    def __init__(self) -> None:
        self._descriptors: list[int] = []
        self._paths: list[Path] = []

    def add(self, data: str) -> str:
        content = base64.b64decode(data)
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("k8s-ucp-credential", os.MFD_CLOEXEC)
            os.write(descriptor, content)
            self._descriptors.append(descriptor)
            return f"/proc/self/fd/{descriptor}"
        descriptor, name = tempfile.mkstemp(prefix="ucp-")
        os.write(descriptor, content)
        os.close(descriptor)
        self._paths.append(Path(name))
        return name

    def close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)
        for path in self._paths:
            path.unlink(missing_ok=True)
        self._descriptors, self._paths = [], []

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            self.close()


def read_kubeconfig(path: Path) -> dict[str, Any]:
    """Parse a kubeconfig file. Raises UcpError when it is missing or is no mapping."""
    try:
        content = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UcpError(f"can't read the kubeconfig {path}: {error.strerror}") from error
    if not isinstance(content, dict):
        raise UcpError(f"{path} is not a kubeconfig")
    return content


def current_context(config: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(cluster, user) of the current context.

    Raises UcpError when there is none, or when it refers to files or exec plugins.
    """

    def named(section: str, key: str, name: Any) -> dict[str, Any]:
        for each in config.get(section) or []:
            if isinstance(each, dict) and each.get("name") == name:
                return dict(each.get(key) or {})
        raise UcpError(f"kubeconfig: {section} has no entry {name!r}")

    context = named("contexts", "context", config.get("current-context"))
    cluster = named("clusters", "cluster", context.get("cluster"))
    user = named("users", "user", context.get("user")) if context.get("user") else {}
    if not cluster.get("server"):
        raise UcpError("kubeconfig: the cluster has no server")
    for part, entry in (("cluster", cluster), ("user", user)):
        for field in ("certificate-authority", "client-certificate", "client-key", "tokenFile"):
            if entry.get(field):
                raise UcpError(f"kubeconfig: the {part} refers to a file ({field}); inline it")
    for field in ("exec", "auth-provider"):
        if user.get(field):
            raise UcpError(f"kubeconfig: the user needs {field}, which is never run")
    return cluster, user


def _lines(raw: Any) -> Iterator[bytes]:
    rest = b""
    for chunk in raw.stream(65536, decode_content=False):
        rest += chunk
        while b"\n" in rest:
            line, rest = rest.split(b"\n", 1)
            if line.strip():
                yield line


def _present(**query: str | None) -> dict[str, str]:
    return {name: value for name, value in query.items() if value is not None}


def _plain(error: BaseException) -> str:
    """The innermost reason, without the object addresses urllib3 puts around it."""
    reason = getattr(error, "reason", None)
    text = str(reason if reason is not None else error) or type(error).__name__
    return text.split("object at 0x")[-1].split(">: ")[-1].split(">, ")[-1].strip("'\")")


def _error(method: str, path: str, status: int, answer: Any) -> KubeError:
    reason = answer.get("reason", "") if isinstance(answer, dict) else ""
    message = answer.get("message", "") if isinstance(answer, dict) else ""
    kind = _BY_STATUS.get(status) or (Unreachable if status >= 500 else KubeError)
    text = f"{method} {path}: {status} {message or reason or 'no message'}"
    return kind(text, status=status, reason=reason)
