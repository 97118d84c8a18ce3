"""An existing cluster for an environment: a control plane of its own."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.kube import CLUSTER_ROLE_BINDING, CONFIG_MAP, DEPLOYMENT, NAMESPACE, Kube
from tests.backing_clusters import merged
from tests.control_planes import control_planes, made, namespace
from tests.e2e.world import Workbench

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

ENVIRONMENT = "theirs"
NAME = "their-cluster"
CONTEXT = "admin@their/cluster"
_CLUSTER = f'cluster: {{provider: existing, context: "{CONTEXT}"}}'
_OTHER_TOPOLOGY = f"""apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {{name: demo}}
spec:
  environments:
    - {{name: {ENVIRONMENT}, {_CLUSTER}}}
  apps:
    - {{name: echo, image: ealen/echo-server, tag: 0.9.2}}
"""


@dataclass(frozen=True)
class TheirEnvironment:
    """before: the cluster's objects before it was used."""

    provider: EmbeddedProvider
    kube: Kube
    before: frozenset[str]


@contextlib.contextmanager
def their_environment(
    world: Workbench, folder: Path, toolbox: Toolbox
) -> Iterator[TheirEnvironment]:
    """Run a cluster that a start has adopted as an environment of the topology."""
    with control_planes(folder, toolbox) as planes:
        provider = planes.provider()
        kube = made(provider, NAME)
        kube.create(namespace("of-theirs"))
        before = everything(kube)
        config = merged({CONTEXT: provider.kubeconfig(NAME)})
        (world.home / ".kube").mkdir(exist_ok=True)
        (world.home / ".kube" / "config").write_text(json.dumps(config))
        file = world.workspace / "ucp.yaml"
        head, apps, rest = file.read_text().partition("  apps:")
        file.write_text(f"{head}    - name: {ENVIRONMENT}\n      {_CLUSTER}\n{apps}{rest}")
        world.ucp("start", "--yes")
        yield TheirEnvironment(provider, kube, before)
        kube.close()


def everything(kube: Kube) -> frozenset[str]:
    """Objects of kinds that ucp creates: namespaces, Deployments, ConfigMaps, RBAC, policies."""
    policies = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    admission = [kube.kind_of("admissionregistration.k8s.io/v1", each) for each in policies]
    kinds = (NAMESPACE, DEPLOYMENT, CONFIG_MAP, CLUSTER_ROLE_BINDING, *admission)
    return frozenset(
        f"{kind.kind} {each['metadata'].get('namespace', '')}/{each['metadata']['name']}"
        for kind in kinds
        for each in kube.list_all(kind)
        if each["metadata"]["name"] not in ("kube-root-ca.crt", "echo")
        or each["kind"] == "Deployment"
    )


def refuses_another_workspace(world: Workbench) -> None:
    other = Workbench(world.home / "other", world.home)
    other.workspace.mkdir()
    (other.workspace / "ucp.yaml").write_text(_OTHER_TOPOLOGY)
    refused = other.ucp("start", "--yes", expect=1)
    assert "is already used by a topology of another workspace" in refused.stderr
    assert "next: " in refused.stderr
    assert not (other.workspace / "gitops").exists()
