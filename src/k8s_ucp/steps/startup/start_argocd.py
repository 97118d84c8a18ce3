"""Start Argo CD's processes, and give them the Application that brings all others."""

from __future__ import annotations

import time
from dataclasses import dataclass

from k8s_ucp.components import argocd
from k8s_ucp.components.manifests import Manifest, apply_all, read
from k8s_ucp.context import Context, await_ready
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.kube import APPLICATION
from k8s_ucp.names import ARGOCD_NAMESPACE


@dataclass(frozen=True)
class StartArgoCD:
    id: str = "start-argocd"
    title: str = "Start Argo CD"

    def run(self, context: Context, report: Report) -> None:
        apply_repository_secrets(context)
        now = time.time()
        new = context.placement.start([*context.redis.programs(), *context.argocd.programs()])
        if argocd.CONTROLLER in new:
            context.argocd_since = now
        apply_root(context, report)
        report("waiting until it is ready")
        await_ready(context, argocd.NAME, context.argocd.ready)


def apply_root(context: Context, report: Report) -> None:
    """The Applications that are applied by hand, where they are missing or may have changed."""
    if context.kube.find(APPLICATION, "root", ARGOCD_NAMESPACE) is None or (
        context.published.core.changed
    ):
        report("root application")
        apply_all(context.kube, first_applications(context))


def apply_repository_secrets(context: Context) -> None:
    """What opens the repositories to Argo CD; its namespace must exist."""
    for secret in context.repository_secrets():
        context.kube.apply(secret)


def first_applications(context: Context) -> list[Manifest]:
    """The root Application, and of what it brings the one that takes longest.

    Root takes that one over when it syncs; meanwhile the app clusters are being made.
    """
    folder = f"bootstrap/{context.topology.spec.core.provider}"
    files = context.published.core.read(folder)
    wanted = (f"{folder}/{name}.yaml" for name in ("root", "clusters"))
    return read({path: files[path] for path in wanted if path in files})
