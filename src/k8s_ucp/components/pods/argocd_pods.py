"""Argo CD in pods: the Secrets that it needs before it starts, and access from this machine."""

from __future__ import annotations

import secrets

from k8s_ucp.components import argocd
from k8s_ucp.components.host import redis
from k8s_ucp.components.host.machine import Host
from k8s_ucp.components.host.program import Program
from k8s_ucp.components.pods.component import POD
from k8s_ucp.kube import SECRET, Kube, Object
from k8s_ucp.loopback import ADDRESS
from k8s_ucp.timestamps import parse_stamp

FORWARD = "argocd-forward"
PORTS = (FORWARD,)


def prepare(kube: Kube) -> None:
    """Create the two Secrets that its pods need, if missing; the namespace must exist."""
    if kube.find(SECRET, redis.SECRET, redis.NAMESPACE) is None:
        kube.apply(redis.password_secret(secrets.token_urlsafe(24)))
    argocd.ensure_signing_key(kube)


def forward(host: Host, port: int, service: str = argocd.SERVER) -> Program:
    """Program that forwards a loopback port of this machine to Argo CD's server.

    service: name of the server's Service, which may differ if others run it.
    """
    argv = (
        *(str(host.toolbox.path("kubectl")), "--kubeconfig", str(host.kubeconfig)),
        *("--namespace", argocd.NAMESPACE, "port-forward", "--address", ADDRESS),
        *(f"service/{service}", f"{port}:80"),
    )
    return Program(FORWARD, argv, host.folder(argocd.NAME), {"HOME": str(host.folder(argocd.NAME))})


def controller_since(kube: Kube) -> float:
    """When the application controller's container started, in seconds since the epoch."""
    pods = kube.list_all(
        POD, argocd.NAMESPACE, labels=f"app.kubernetes.io/name={argocd.CONTROLLER}"
    )
    started = [text for pod in pods if (text := _started(pod))]
    return parse_stamp(max(started, default=None)) or 0.0


def _started(pod: Object) -> str | None:
    for each in (pod.get("status") or {}).get("containerStatuses") or []:
        running = (each.get("state") or {}).get("running")
        if running:
            return str(running["startedAt"])
    return None
