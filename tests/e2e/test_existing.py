"""An environment on a cluster that somebody else made: used, left as it was found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from k8s_ucp.clusters.existing.adoption import MARK, MARK_NAMESPACE
from k8s_ucp.kube import (
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    DEPLOYMENT,
    LOCAL_CLUSTER,
    NAMESPACE,
    SECRET,
    Kube,
)
from tests.backing_clusters import merged
from tests.control_planes import ControlPlanes, control_planes, made, namespace
from tests.e2e.world import World, until

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

CONTEXT = "admin@their/cluster"
TOPOLOGY = f"""apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {{name: demo}}
spec:
  environments:
    - {{name: stage, cluster: {{provider: existing, context: "{CONTEXT}"}}}}
  apps:
    - {{name: echo, image: ealen/echo-server, tag: 0.9.2}}
"""


@pytest.fixture
def theirs(tmp_path: Path, toolbox: Toolbox) -> Iterator[ControlPlanes]:
    with control_planes(tmp_path, toolbox) as planes:
        yield planes


def test_it_is_used_and_left_as_it_was_found(world: World, theirs: ControlPlanes) -> None:
    provider = theirs.provider()
    kube = made(provider, "their-cluster")
    kube.create(namespace("of-theirs"))
    before = everything(kube)
    config = merged({CONTEXT: provider.kubeconfig("their-cluster")})
    (world.home / ".kube").mkdir()
    (world.home / ".kube" / "config").write_text(json.dumps(config))
    (world.workspace / "ucp.yaml").write_text(TOPOLOGY)

    world.ucp("start", "--yes")
    (stage,) = world.status()["environments"]
    assert stage["cluster"] == {
        **stage["cluster"],
        "provider": "existing",
        "ready": True,
        "registered": True,
        "simulated": False,
    }
    assert kube.get(DEPLOYMENT, "echo", "echo")["spec"]["template"]["spec"]["containers"]
    assert kube.get(CONFIG_MAP, MARK, MARK_NAMESPACE)["data"]["name"] == "demo-stage"

    refuses_another_workspace(world)

    world.ucp("stop", "--yes")
    assert provider.state("their-cluster").ready
    assert kube.find(DEPLOYMENT, "echo", "echo"), "what runs there runs on"
    world.ucp("start", "--yes")
    assert healthy(world)

    leave(world)
    core = world.kube("core")
    until("it is let go", lambda: core.list_all(LOCAL_CLUSTER, "ucp-clusters") == [])
    secret = "cluster-demo-stage"
    until("Argo CD forgets it", lambda: core.find(SECRET, secret, "argocd") is None, seconds=60)
    until("its namespaces are gone", lambda: everything(kube) == before, seconds=60)
    assert kube.find(CLUSTER_ROLE_BINDING, "k8s-ucp-argocd") is None
    assert kube.find(NAMESPACE, "of-theirs")
    assert provider.state("their-cluster").ready


def healthy(world: World) -> bool:
    found = world.application("echo-stage")
    return found is not None and (found["sync"], found["health"]) == ("Synced", "Healthy")


def everything(kube: Kube) -> set[str]:
    """What we could have brought: namespaces, Deployments, marks, rights, policies."""
    policies = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    admission = [kube.kind_of("admissionregistration.k8s.io/v1", each) for each in policies]
    kinds = (NAMESPACE, DEPLOYMENT, CONFIG_MAP, CLUSTER_ROLE_BINDING, *admission)
    return {
        f"{kind.kind} {each['metadata'].get('namespace', '')}/{each['metadata']['name']}"
        for kind in kinds
        for each in kube.list_all(kind)
        if each["metadata"]["name"] not in ("kube-root-ca.crt", "echo")
        or each["kind"] == "Deployment"
    }


def refuses_another_workspace(world: World) -> None:
    other = World(world.home / "other", world.home)
    other.workspace.mkdir()
    (other.workspace / "ucp.yaml").write_text(TOPOLOGY)
    refused = other.ucp("start", "--yes", expect=1)
    assert "is already used by a topology of another workspace" in refused.stderr
    assert "next: " in refused.stderr
    assert not (other.workspace / "gitops").exists()


def leave(world: World) -> None:
    with world.commit("apps", "Stop echo on stage") as clone:
        world.git(clone, "rm", "-rq", "apps/echo/overlays/stage")
    until("its Application is gone", lambda: world.application("echo-stage") is None)
    with world.commit("core", "Remove the environment stage") as clone:
        world.git(clone, "rm", "-rq", "clusters/overlays/stage")
        for file in (clone / "clusters").rglob("*.yaml"):
            lines = file.read_text().splitlines()
            kept = [line for line in lines if "stage" not in line]
            file.write_text("\n".join(kept) + "\n")
