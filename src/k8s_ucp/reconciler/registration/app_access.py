"""Access to app clusters: sets up identities as admin, and probes with Argo CD's identity.

Connections of probes are kept open, since a TLS handshake costs more than the probe itself.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from k8s_ucp import names
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import (
    LARGEST_OF_OTHERS,
    Forbidden,
    Kube,
    KubeError,
    Object,
    Unauthorized,
    Unreachable,
)
from k8s_ucp.reconciler.access import service_accounts, tokens
from k8s_ucp.reconciler.access.authenticators.base import AuthInfo, NoAccess
from k8s_ucp.reconciler.access.cluster_secret import as_argocd
from k8s_ucp.reconciler.access.sources import KubeconfigSource
from k8s_ucp.reconciler.access.tokens import Token
from k8s_ucp.reconciler.controller import Runtime
from k8s_ucp.reconciler.runtime.work_queue import BackOff

PROBE_SECONDS = 3.0
READY_SECONDS = 3.0
"""How long to wait for a new API server to start before other clusters are served."""
_AGAIN = BackOff(start=0.5, cap=5.0)
_RENEW_EVERY = 12
"""Rejections in a row between attempts to recreate the identity; the first one causes one."""
_RENEW_SOON = (3, 7)
"""Further attempts after so many, since the token may have changed meanwhile."""


@dataclass
class _Line:
    """State of one source's cluster."""

    version: str = ""
    kube: Kube | None = None
    failures: int = 0
    refusals: int = 0
    silent_since: float | None = None
    """On the monotonic clock: neither the time that a machine is suspended nor a correction of the
    clock counts, since a cluster that was silent for long is deregistered without a drain."""


class AppAccess:
    """Safe to share between threads; one at a time works on a key."""

    def __init__(self, runtime: Runtime) -> None:
        self._clients = runtime.clients
        self._topology = runtime.settings.topology
        self._metrics = runtime.metrics
        self._clock = runtime.clock
        self._lines: dict[str, _Line] = {}
        self._lock = threading.Lock()

    def grant(
        self, source: KubeconfigSource, auth_info: AuthInfo, *, lifetime: float, fresh: bool
    ) -> Token:
        """Create the identities and request a token for Argo CD's. Raises NoAccess, KubeError.

        Waits until the cluster is ready: an API server that has just started responds before it
        knows roles, and an Argo CD that was rejected retries late.
        """
        result = "failed"
        try:
            admin = self._clients.open(auth_info)
            try:
                token = self._take(admin, source, lifetime=lifetime, fresh=fresh)
                _await_ready(admin)
            finally:
                admin.close()
            result = "done"
            return token
        finally:
            self._metrics.renewals.labels(source.cluster, names.ARGOCD_IDENTITY, result).inc()

    def _take(
        self, admin: Kube, source: KubeconfigSource, *, lifetime: float, fresh: bool
    ) -> Token:
        service_accounts.establish(admin, source, self._topology, fresh=fresh)
        return tokens.request(
            admin,
            names.IDENTITY_NAMESPACE,
            names.ARGOCD_IDENTITY,
            lifetime=lifetime,
            clock=self._clock,
        )

    def refused(self) -> None:
        """Drop cached tokens, since the kubeconfig's identity was rejected."""
        self._clients.refused()

    def withdraw(self, auth_info: AuthInfo | NoAccess | None, secret: Object) -> str:
        """Delete our identities from a deregistered cluster, which invalidates their tokens.

        Uses the kubeconfig's identity, or Argo CD's own if there is no kubeconfig. Returns why they
        may still exist; empty: they are deleted.
        """
        try:
            if isinstance(auth_info, AuthInfo):
                kube = self._clients.open(auth_info)
            else:
                config = as_argocd(secret)
                if config is None:
                    return "no access to the app cluster"
                kube = Kube(config, largest=LARGEST_OF_OTHERS)
        except UcpError as error:
            return error.message
        try:
            service_accounts.remove(kube, self._topology, timeout=PROBE_SECONDS)
        except UcpError as error:
            return error.message
        finally:
            kube.close()
        return ""

    def ready(self, auth_info: AuthInfo) -> bool:
        """Whether the API server reports ready to the kubeconfig's identity."""
        try:
            admin = self._clients.open(auth_info)
        except NoAccess:
            return True
        try:
            return admin.ready(timeout=PROBE_SECONDS)
        finally:
            admin.close()

    def probe(self, key: str, secret: Object, namespaces: tuple[str, ...]) -> None:
        """Send a request the way Argo CD would. Raises KubeError if it fails."""
        line = self._line(key)
        version = secret["metadata"].get("resourceVersion", "")
        if line.kube is None or line.version != version:
            config = as_argocd(secret)
            if config is None:
                raise Unauthorized("the cluster Secret has no token", status=401)
            self._close(line)
            line.kube, line.version = Kube(config, largest=LARGEST_OF_OTHERS), version
        try:
            service_accounts.probe(line.kube, namespaces, timeout=PROBE_SECONDS)
        except (Unauthorized, Forbidden):
            line.refusals += 1
            raise
        except KubeError:
            line.silent_since = line.silent_since or time.monotonic()
            raise
        line.failures = line.refusals = 0
        line.silent_since = None

    def silent_for(self, key: str, secret: Object, namespaces: tuple[str, ...]) -> float:
        """Probe the cluster; returns for how many seconds Argo CD could not use it."""
        try:
            self.probe(key, secret, namespaces)
        except KubeError:
            line = self._line(key)
            line.silent_since = line.silent_since or time.monotonic()
            return time.monotonic() - line.silent_since
        return 0.0

    def pause(self, key: str) -> float:
        """Count a failure; returns the seconds until the next attempt."""
        line = self._line(key)
        line.failures += 1
        return _AGAIN.delay(line.failures, 0.5)

    def worth_renewing(self, key: str) -> bool:
        """Whether to recreate a rejected identity now: not every time, since it may not help."""
        refusals = self._line(key).refusals
        return refusals in _RENEW_SOON or refusals % _RENEW_EVERY == 1

    def renewed(self, key: str) -> None:
        """The cluster Secret was written: the next probe uses its new content."""
        line = self._line(key)
        line.failures = 0
        self._close(line)

    def forget(self, key: str) -> None:
        """Forget a source's state, after its registration changed or was removed."""
        with self._lock:
            line = self._lines.pop(key, None)
        if line:
            self._close(line)

    def _line(self, key: str) -> _Line:
        with self._lock:
            return self._lines.setdefault(key, _Line())

    def _close(self, line: _Line) -> None:
        if line.kube:
            line.kube.close()
            line.kube = None


def _await_ready(kube: Kube) -> None:
    until = time.monotonic() + READY_SECONDS
    while not kube.ready(timeout=PROBE_SECONDS):
        if time.monotonic() > until:
            raise Unreachable("the app cluster's API server is not ready yet")
        time.sleep(0.05)
