"""A core whose writers are pods: they are scaled to zero, and back to their replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from k8s_ucp.components.pods.component import STATEFUL_SET
from k8s_ucp.components.pods.writers import PodWriters
from k8s_ucp.kube import DEPLOYMENT, Kube, Object
from tests.control_planes import control_planes, deployment, made, namespace

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

WRITERS = {
    (STATEFUL_SET, "argocd", "argocd-application-controller"): 2,
    (DEPLOYMENT, "crossplane-system", "crossplane"): 1,
    (DEPLOYMENT, "crossplane-system", "provider-aws-ec2"): 1,
    (DEPLOYMENT, "ucp-clusters", "reconciler"): 1,
}
SERVER = (DEPLOYMENT, "argocd", "argocd-server")


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory, toolbox: Toolbox) -> Iterator[Object]:
    with control_planes(tmp_path_factory.mktemp("writers"), toolbox) as planes:
        provider = planes.provider()
        made(provider, "demo-core").close()
        yield dict(provider.kubeconfig("demo-core"))


@pytest.fixture
def kube(config: Object) -> Iterator[Kube]:
    kube = Kube(config)
    for (kind, where, name), replicas in {**WRITERS, SERVER: 1}.items():
        kube.apply(namespace(where))
        item = deployment(name)
        item["metadata"]["namespace"] = where
        item["kind"] = kind.kind
        item["spec"]["replicas"] = replicas
        if kind is STATEFUL_SET:
            item["spec"]["serviceName"] = name
        kube.apply(item)
    yield kube
    kube.close()


def replicas(kube: Kube) -> dict[str, int]:
    return {
        name: kube.get(kind, name, where)["spec"]["replicas"]
        for kind, where, name in (*WRITERS, SERVER)
    }


def test_only_writers_are_scaled_down_and_restored(config: Object, kube: Kube) -> None:
    before = replicas(kube)
    writers = PodWriters(lambda: Kube(config))
    assert writers.stop()[0] == "StatefulSet argocd-application-controller"
    assert replicas(kube) == {name: int(name == SERVER[2]) for name in before}
    # Another instance, like that of a restarted guard.
    other = PodWriters(lambda: Kube(config))
    assert other.stop() == []
    assert len(other.resume()) == len(WRITERS)
    assert replicas(kube) == before
    assert other.resume() == []


def test_adopted_components_are_not_scaled_down(config: Object, kube: Kube) -> None:
    before = replicas(kube)
    writers = PodWriters(lambda: Kube(config), adopted=("argocd", "crossplane"))
    assert writers.stop() == ["Deployment reconciler"]
    assert replicas(kube) == {**before, "reconciler": 0}
    writers.resume()
