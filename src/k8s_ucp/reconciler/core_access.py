"""The reconciler's own way into the core cluster: never more than its ServiceAccount may.

In a pod that comes by itself. As a host process it has the admin's kubeconfig beside it, and uses
that for one thing only: to ask for tokens of the same ServiceAccount. They live for an hour, in
memory; after a long sleep, when the last one has expired, it asks again.
"""

from __future__ import annotations

import threading
from pathlib import Path

from k8s_ucp.kube import Kube, KubeError, read_kubeconfig
from k8s_ucp.reconciler import marks, tokens
from k8s_ucp.reconciler.clock import Clock
from k8s_ucp.reconciler.settings import Settings
from k8s_ucp.reconciler.tokens import Token

LIFETIME = 3600.0
ANSWER_SECONDS = 5.0
"""A connection that went silent costs no more than this."""


def connect(settings: Settings, clock: Clock) -> Kube:
    """The core cluster, as the reconciler. Raises UcpError."""
    if settings.kubeconfig is None:
        return Kube.in_cluster(longest=ANSWER_SECONDS)
    config = read_kubeconfig(settings.kubeconfig)
    token = OwnToken(settings.kubeconfig, clock) if settings.limited else None
    return Kube(config, token=token, longest=ANSWER_SECONDS)


class OwnToken:
    """Tokens of the reconciler's ServiceAccount, renewed when due or turned down."""

    def __init__(self, admin: Path, clock: Clock) -> None:
        self._admin = admin
        self._clock = clock
        self._token: Token | None = None
        self._lock = threading.Lock()

    def __call__(self, *, rejected: str | None = None) -> str:
        token = self._token
        usable = token is not None and token.text != rejected
        if token and usable and self._clock() < token.renew_at(marks.RECONCILER):
            return token.text
        with self._lock:
            if self._token and self._token is not token:
                return self._token.text
            try:
                self._token = self._ask()
            except KubeError:
                if token is None or not usable or self._clock() >= token.expires_at:
                    raise
                return token.text
            return self._token.text

    def _ask(self) -> Token:
        admin = Kube(read_kubeconfig(self._admin), longest=ANSWER_SECONDS)
        try:
            return tokens.request(
                admin,
                marks.CLUSTERS_NAMESPACE,
                marks.RECONCILER,
                lifetime=LIFETIME,
                clock=self._clock,
            )
        finally:
            admin.close()
