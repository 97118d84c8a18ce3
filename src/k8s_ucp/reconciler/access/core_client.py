"""The reconciler's client of the core cluster, limited to the rights of its ServiceAccount.

In a pod, that is the pod's identity. On the host, the admin's kubeconfig is used only to request
tokens of the same ServiceAccount. They live for an hour, in memory; when the last one has expired,
after a long sleep, a new one is requested. Only the backup reads the core cluster as admin.
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
"""Limit for each request, so that a silent connection costs no more."""


def connect(
    settings: Settings,
    clock: Clock,
    *,
    namespace: str = names.CLUSTERS_NAMESPACE,
    name: str = names.RECONCILER,
) -> Kube:
    """Connect to the core cluster as a ServiceAccount. Raises UcpError."""
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
    """Source of tokens of a ServiceAccount. admin: kubeconfig that may request them."""

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
