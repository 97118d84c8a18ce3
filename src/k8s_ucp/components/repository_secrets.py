"""Argo CD's way into the user's repositories."""

from __future__ import annotations

from k8s_ucp.git.environment import Credential
from k8s_ucp.gitops.publish.repositories import read_addresses
from k8s_ucp.kube import Object
from k8s_ucp.names import ARGOCD_NAMESPACE, MANAGED_BY, OURS
from k8s_ucp.topology import Topology
from k8s_ucp.workspace import GitopsFolder


def repository_secrets(
    topology: Topology, folder: GitopsFolder, *, read: Credential | None, write: Credential | None
) -> list[Object]:
    """What lets Argo CD read the user's repositories, where a token was given for them.

    read: one that may only read. It comes first: whoever gets at Argo CD's Secrets gets this one.
    """
    credential = read or write
    if credential is None or topology.spec.git.provider == "local":
        return []
    urls = read_addresses(topology, folder)
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
