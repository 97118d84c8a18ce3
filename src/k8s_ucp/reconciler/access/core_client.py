"""The reconciler's own way into the core cluster: never more than its ServiceAccount may.

In a pod that comes by itself. As a host process it has the admin's kubeconfig beside it, and uses
that to ask for tokens of the same ServiceAccount. They live for an hour, in memory; after a long
sleep, when the last one has expired, it asks again. The backup alone reads the core as admin.
"""

from __future__ import annotations

from pathlib import Path

from k8s_ucp import names
from k8s_ucp.kube import Kube, read_kubeconfig
from k8s_ucp.reconciler.access import tokens
from k8s_ucp.reconciler.access.tokens import Renewing, Token
from k8s_ucp.reconciler.runtime.clock import Clock
from k8s_ucp.reconciler.runtime.settings import Settings

LIFETIME = 3600.0
ANSWER_SECONDS = 5.0
"""A connection that went silent costs no more than this."""


def connect(
    settings: Settings,
    clock: Clock,
    *,
    namespace: str = names.CLUSTERS_NAMESPACE,
    name: str = names.RECONCILER,
) -> Kube:
    """The core cluster, as a ServiceAccount: the reconciler's. Raises UcpError."""
    if settings.kubeconfig is None:
        return Kube.in_cluster(longest=ANSWER_SECONDS)
    config = read_kubeconfig(settings.kubeconfig)
    token = own_token(settings.kubeconfig, clock, namespace, name) if settings.limited else None
    return Kube(config, token=token, longest=ANSWER_SECONDS)


def own_token(
    admin: Path,
    clock: Clock,
    namespace: str = names.CLUSTERS_NAMESPACE,
    name: str = names.RECONCILER,
) -> Renewing:
    """Tokens of a ServiceAccount. admin: the kubeconfig that may ask for them."""

    def take() -> Token:
        kube = Kube(read_kubeconfig(admin), longest=ANSWER_SECONDS)
        try:
            return tokens.request(
                kube,
                namespace,
                name,
                lifetime=LIFETIME,
                clock=clock,
            )
        finally:
            kube.close()

    return Renewing(take, name, clock)
