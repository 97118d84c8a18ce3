"""Kubeconfig and cluster Secrets, as tests plant them."""

from __future__ import annotations

import json
from typing import Any

from k8s_ucp import names
from k8s_ucp.kube import Object
from k8s_ucp.reconciler.access.kubeconfig_verification import digest_of
from tests.integration.reconciler.world import ARGOCD, CLUSTERS, Clusters


def person_s_secret(labels: dict[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "cluster-demo-stage", "namespace": ARGOCD, "labels": labels},
        "stringData": {"name": "mine", "server": "https://mine.example", "config": "{}"},
    }


def kubeconfig_secret(world: Clusters, name: str, namespace: str, **metadata: Any) -> Object:
    text = json.dumps(world.provider.configs["demo-prod"])
    return world.core.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace, **metadata},
            "stringData": {"kubeconfig": text},
        }
    )


def plant(world: Clusters, text: str) -> None:
    """Declare a LocalCluster with this kubeconfig; no controller runs that would restore it."""
    owner = world.declare(annotations=vouched(text))
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    world.core.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "demo-stage-kubeconfig",
                "namespace": CLUSTERS,
                "ownerReferences": [reference],
            },
            "stringData": {"kubeconfig": text},
        }
    )


def vouched(text: str) -> dict[str, str]:
    """The annotation with the kubeconfig's digest, as the local-cluster controller sets it."""
    try:
        return {names.KUBECONFIG_DIGEST: digest_of(json.loads(text))}
    except ValueError:
        return {}
