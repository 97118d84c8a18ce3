"""Start Argo CD's processes, and give them the Application that brings all others."""

from __future__ import annotations

import time
from dataclasses import dataclass

from k8s_ucp.components import argocd
from k8s_ucp.components.manifests import Manifest, apply_all, read
from k8s_ucp.gitops.publish.repositories import read_addresses
from k8s_ucp.kube import APPLICATION, Object
from k8s_ucp.names import ARGOCD_NAMESPACE, MANAGED_BY, OURS
from k8s_ucp.pipeline import Report
from k8s_ucp.steps.context import Context, await_ready


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
    for secret in repository_secrets(context):
        context.kube.apply(secret)


def first_applications(context: Context) -> list[Manifest]:
    """The root Application, and of what it brings the one that takes longest.

    Root takes that one over when it syncs; meanwhile the app clusters are being made.
    """
    folder = f"bootstrap/{context.topology.spec.core.provider}"
    files = context.published.core.read(folder)
    wanted = (f"{folder}/{name}.yaml" for name in ("root", "clusters"))
    return read({path: files[path] for path in wanted if path in files})


def repository_secrets(context: Context) -> list[Object]:
    """What lets Argo CD read the user's repositories, where a token was given for them.

    One that may only read comes first: whoever gets at Argo CD's Secrets gets this one.
    """
    credential = context.git_read_credential or context.git_credential
    if credential is None or context.topology.spec.git.provider == "local":
        return []
    urls = read_addresses(context.topology, context.gitops)
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": f"repository-{name}",
                "namespace": ARGOCD_NAMESPACE,
                "labels": {"argocd.argoproj.io/secret-type": "repository", MANAGED_BY: OURS},
            },
            "stringData": {
                "type": "git",
                "url": url,
                "username": credential.username,
                "password": credential.password,
            },
        }
        for name, url in (("core", urls.core), ("apps", urls.apps))
        if url.startswith(("http://", "https://"))
    ]
