"""Getting into app clusters: the two identities with the admin's rights, the probe with Argo CD's.

Connections for probes are kept, since a new TLS handshake every time costs more than the question.
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
"""How long a new API server's start is waited for before others get their turn."""
_AGAIN = BackOff(start=0.5, cap=5.0)
_RENEW_EVERY = 12
"""Refusals in a row between two attempts to make the identity anew, which the first begins."""
_RENEW_SOON = (3, 7)
"""And at these, since what was refused may be another token by then."""


@dataclass
class _Line:
    """What is remembered of one source's cluster."""

    version: str = ""
    kube: Kube | None = None
    failures: int = 0
    refusals: int = 0
    silent_since: float | None = None


class AppAccess:
    """Safe to share between threads; a key is worked on by one of them at a time."""

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
        """Make the identities and take a token for Argo CD's. Raises NoAccess, KubeError.

        The cluster is ready afterwards: one that just starts serves before it knows any role, and
        an Argo CD that was turned away looks again late.
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
        """The kubeconfig's identity was turned down: no token that was remembered is used again."""
        self._clients.refused()

    def withdraw(self, auth_info: AuthInfo | NoAccess | None, secret: Object) -> str:
        """Take our identities off a cluster that is let go, so that no token of theirs counts.

        As the kubeconfig's identity, or as Argo CD's own where there is none any more. Answers why
        they may still be there; empty: they are gone.
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
        """The API server says that it is ready, asked with the kubeconfig's own identity."""
        try:
            admin = self._clients.open(auth_info)
        except NoAccess:
            return True
        try:
            return admin.ready(timeout=PROBE_SECONDS)
        finally:
            admin.close()

    def probe(self, key: str, secret: Object, namespaces: tuple[str, ...]) -> None:
        """Ask the cluster something as Argo CD would. Raises KubeError where that fails."""
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
            line.silent_since = line.silent_since or self._clock()
            raise
        line.failures = line.refusals = 0
        line.silent_since = None

    def silent_for(self, key: str, secret: Object, namespaces: tuple[str, ...]) -> float:
        """Seconds for which the cluster has been of no use to Argo CD; asks it now."""
        try:
            self.probe(key, secret, namespaces)
        except KubeError:
            line = self._line(key)
            line.silent_since = line.silent_since or self._clock()
            return self._clock() - line.silent_since
        return 0.0

    def pause(self, key: str) -> float:
        """One more failure: seconds until the cluster is asked again."""
        line = self._line(key)
        line.failures += 1
        return _AGAIN.delay(line.failures, 0.5)

    def worth_renewing(self, key: str) -> bool:
        """The identity was turned down: making it anew helps the first times, not every time."""
        refusals = self._line(key).refusals
        return refusals in _RENEW_SOON or refusals % _RENEW_EVERY == 1

    def renewed(self, key: str) -> None:
        """The cluster Secret was written: the next probe uses what it holds now."""
        line = self._line(key)
        line.failures = 0
        self._close(line)

    def forget(self, key: str) -> None:
        """The registration changed or went: start afresh."""
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
