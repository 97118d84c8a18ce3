"""What a first start applies before Argo CD runs: clusters that the core repository declares."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from k8s_ucp.components.manifests import Manifest
from k8s_ucp.gitops.publish.repositories import PublishResult
from k8s_ucp.names import TRACKING_ID
from k8s_ucp.steps.startup.declared_clusters import declared_clusters
from k8s_ucp.tools.toolbox import Toolbox
from tests.integration.gitops.conftest import World
from tests.unit.gitops.topologies import demo

pytestmark = pytest.mark.engines
LIST, APPLICATION = "clusters/kustomization.yaml", "bootstrap/embedded/clusters.yaml"


def found(result: PublishResult, toolbox: Toolbox) -> list[Manifest]:
    context: Any = SimpleNamespace(published=result, toolbox=toolbox, topology=demo())
    return declared_clusters(context)


def test_they_are_what_argocd_would_apply_with_its_mark(world: World, toolbox: Toolbox) -> None:
    world.start()
    # A cluster that nobody but this commit knows, and an object that is none.
    world.edit("core", LIST, "  - overlays/prod\n", "  - overlays/prod\n  - more.yaml\n")
    more = """apiVersion: k8s-ucp.io/v1alpha1
kind: LocalCluster
metadata: {name: demo-qa, namespace: ucp-clusters}
spec: {provider: embedded, machine: m}
---
apiVersion: v1
kind: Secret
metadata: {name: mine, namespace: ucp-clusters}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: elsewhere, namespace: argocd}
"""
    world.push("core", {"clusters/more.yaml": more.encode()})
    objects = {each.name: json.loads(each.text) for each in found(world.start(), toolbox)}
    assert sorted(objects) == ["demo-prod", "demo-qa", "demo-stage", "k8s-ucp-environments"]
    assert objects["k8s-ucp-environments"]["data"] == {"stage": "", "prod": ""}
    assert objects["demo-stage"]["metadata"]["labels"]["k8s-ucp.io/environment"] == "stage"
    marks = {name: each["metadata"]["annotations"][TRACKING_ID] for name, each in objects.items()}
    assert marks["demo-qa"] == "clusters:k8s-ucp.io/LocalCluster:ucp-clusters/demo-qa"
    assert marks["k8s-ucp-environments"] == "clusters:/ConfigMap:ucp-clusters/k8s-ucp-environments"
    other = "argocd.argoproj.io/sync-options"
    assert "Delete=false" in objects["demo-prod"]["metadata"]["annotations"][other]


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (
            APPLICATION,
            "    path: clusters\n",
            "    path: clusters\n    kustomize: {namePrefix: a-}\n",
        ),
        (LIST, "overlays/prod\n", "overlays/prod\n  - is-not-there.yaml\n"),
        (LIST, "  - overlays/prod\n", "  - https://127.0.0.1:1/nobody.yaml\n"),
    ],
    ids=["another Application", "a file that is not there", "an address nobody answers at"],
)
def test_argocd_alone_applies_what_is_not_as_generated(
    path: str, old: str, new: str, world: World, toolbox: Toolbox
) -> None:
    result = world.start()
    assert len(found(result, toolbox)) == 3
    world.edit("core", path, old, new)
    assert found(world.start(), toolbox) == []
