"""The registered app clusters, for controllers that write to them, and connections to them.

A cluster is registered while Argo CD has a cluster Secret of ours for it. `connect` uses the mirror
identity, which has only the rights that it was granted in target namespaces; `administer` uses the
kubeconfig's identity, to grant those rights.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from k8s_ucp import names
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import LARGEST_OF_OTHERS, NAMESPACE, Kube, NotFound, Object, labels_of
from k8s_ucp.reconciler.access import service_accounts, tokens
from k8s_ucp.reconciler.access.authenticators.base import AuthInfo, NoAccess, kubeconfig
from k8s_ucp.reconciler.access.cluster_clients import ClusterClients
from k8s_ucp.reconciler.access.cluster_secret import Registration
from k8s_ucp.reconciler.access.shared_informers import SharedInformers
from k8s_ucp.reconciler.access.tokens import Renewing, Token
from k8s_ucp.reconciler.runtime.clock import Clock
from k8s_ucp.reconciler.runtime.metrics import Metrics


class NotRegistered(UcpError):
    """No app cluster of that name is registered."""


@dataclass(frozen=True)
class RegisteredCluster:
    """One registered app cluster."""

    cluster: str
    environment: str | None
    """None while it is draining."""
    labels: Mapping[str, str]
    """Labels of its cluster Secret: environment, topology, provider, region, ..."""
    source: str
    """`<namespace>/<Secret>` of its kubeconfig."""

    @property
    def draining(self) -> bool:
        return names.DRAINING in self.labels


Listener = Callable[[str], None]
"""Called with the name of a cluster that was added, changed or removed. Must not block."""


class RegisteredClusters:
    """Safe to share between threads. Connections are opened on demand, and kept."""

    def __init__(
        self,
        informers: SharedInformers,
        clients: ClusterClients,
        metrics: Metrics,
        clock: Clock,
        *,
        topology: str,
        lifetime: float,
    ) -> None:
        self._informers = informers
        self._clients = clients
        self._metrics = metrics
        self._clock = clock
        self._topology = topology
        self._lifetime = lifetime
        self._listeners: list[Listener] = []
        self._lines: dict[str, tuple[str, Kube]] = {}
        self._lock = threading.Lock()
        informers.cluster_secrets.listen(self._changed)
        for each in informers.sources.values():
            each.listen(self._source_changed)

    def listen(self, listener: Listener) -> None:
        """Add a listener; only before the watches start."""
        self._listeners.append(listener)

    def all(self) -> list[RegisteredCluster]:
        """All registered clusters, sorted by name."""
        found = [_target(each) for each in self._informers.cluster_secrets.store.all()]
        return sorted((each for each in found if each), key=lambda each: each.cluster)

    def find(self, cluster: str) -> RegisteredCluster | None:
        """The registered cluster of that name."""
        return next((each for each in self.all() if each.cluster == cluster), None)

    def connect(self, cluster: str) -> Kube:
        """A connection to the cluster as the mirror identity, shared by all callers.

        Its token is requested and renewed automatically. Call this again after each failure, since
        the address may have changed. Raises NotRegistered, NoAccess, KubeError.
        """
        auth_info = self._auth_info(cluster)
        key = json.dumps(auth_info.cluster, sort_keys=True)
        with self._lock:
            known = self._lines.get(cluster)
            if known and known[0] == key:
                return known[1]
            token = Renewing(lambda: self._grant(cluster), cluster, self._clock)
            kube = Kube(kubeconfig(auth_info.cluster, {}), token=token, largest=LARGEST_OF_OTHERS)
            self._lines[cluster] = (key, kube)
        if known:
            known[1].close()
        return kube

    @contextlib.contextmanager
    def administer(self, cluster: str) -> Iterator[Kube]:
        """A temporary connection with the kubeconfig's identity. Raises the errors of `connect`."""
        admin = self._clients.open(self._auth_info(cluster))
        try:
            namespace = admin.find(NAMESPACE, names.IDENTITY_NAMESPACE)
            service_accounts.check_claim(namespace, self._topology)
            yield admin
        finally:
            admin.close()

    def close(self) -> None:
        with self._lock:
            lines, self._lines = list(self._lines.values()), {}
        for _, kube in lines:
            kube.close()

    def _grant(self, cluster: str) -> Token:
        """A new token of the mirror identity. Raises the errors of `connect`."""
        result = "failed"
        try:
            with self.administer(cluster) as admin:
                token = self._request(admin)
            result = "done"
            return token
        finally:
            self._metrics.renewals.labels(cluster, names.MIRROR_IDENTITY, result).inc()

    def _request(self, admin: Kube) -> Token:
        def request_token() -> Token:
            return tokens.request(
                admin,
                names.IDENTITY_NAMESPACE,
                names.MIRROR_IDENTITY,
                lifetime=self._lifetime,
                clock=self._clock,
            )

        try:
            return request_token()
        except NotFound:
            service_accounts.establish_mirror(admin, self._topology)
            return request_token()

    def _auth_info(self, cluster: str) -> AuthInfo:
        target = self.find(cluster)
        if target is None:
            raise NotRegistered(f"no app cluster {cluster} is registered")
        auth_info = self._clients.of(target.source)
        if auth_info is None:
            raise NoAccess("KubeconfigMissing", f"Secret {target.source} does not exist")
        return auth_info

    def _changed(self, before: Object | None, after: Object | None) -> None:
        was, now = (_target(each) if each else None for each in (before, after))
        if was != now:
            for name in {each.cluster for each in (was, now) if each}:
                if now is None:
                    self._drop(name)
                self._notify(name)

    def _source_changed(self, before: Object | None, after: Object | None) -> None:
        metadata: Mapping[str, Any] = (after or before or {})["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        for each in self.all():
            if each.source == key:
                self._notify(each.cluster)

    def _drop(self, cluster: str) -> None:
        with self._lock:
            known = self._lines.pop(cluster, None)
        if known:
            known[1].close()

    def _notify(self, cluster: str) -> None:
        for listener in self._listeners:
            listener(cluster)


def _target(secret: Object) -> RegisteredCluster | None:
    found = Registration.of(secret)
    if not found.ours or not found.source or not found.cluster:
        return None
    labels = dict(labels_of(secret))
    return RegisteredCluster(found.cluster, found.environment, labels, found.source)
